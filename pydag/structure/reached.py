# SPDX-License-Identifier: Apache-2.0
"""What an object that pydag doesn't open leads to: its parts, its fields, and so on."""

import contextlib
import dataclasses
import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pydag._core as _core
from pydag.registry.classes import bases_of, cached_names, names_in
from pydag.registry.tables import ClassTable

from .listing import Walk, shorten

ATOMS = (str, bytes, bool, int, type(None))

_LONGEST = 600  # characters of a path

Parts = Iterable[tuple[str, Any]]
"""What an object leads to, each with the text of the step that leads there."""


class Step(NamedTuple):
    """Something that an object leads to, and how."""

    item: Any
    before: "Step | None" = None
    way: Any = ""  # a text; or a structure, and which of its leaves this is

    def path(self) -> str:
        """The path from the first object."""
        texts, step = [], self
        while step.before is not None:
            is_text = isinstance(step.way, str)
            texts.append(step.way if is_text else _core.path_texts(step.way[0], "")[step.way[1]])
            step = step.before
        return shorten("".join(reversed(texts)), _LONGEST)


def steps(
    first: Step, parts_of: Callable[[Any], Parts | None], namespace: str | None = None
) -> Iterator[Step]:
    """Everything that something leads to, itself included, each thing once; text is left out.

    Args:
        namespace: That in which nodes are opened; None if they aren't.
    """
    plain = (*ATOMS, float)
    walk = Walk([first], key=lambda step: id(step.item))
    for step in walk:
        yield step
        is_node = namespace is not None and not _core.is_leaf(step.item, namespace=namespace)
        found = _leaves(step, namespace or "") if is_node else None
        if found is None:
            pairs = parts_of(step.item) or ()
            found = [Step(part, step, way) for way, part in pairs if type(part) not in plain]
        walk.add(found)


def _leaves(step: Step, namespace: str) -> list[Step] | None:
    """The leaves of a node, but for text and numbers; None if it can't be opened."""
    try:
        leaves, spec = _core.flatten(step.item, namespace=namespace)
    except Exception:  # such as a cycle, which is opened node by node
        try:
            leaves, _, spec = _core.open_one_level(step.item, namespace=namespace)
        except Exception:
            return None
    wanted = [cls for cls, x in _core.one_of_each_class(leaves).items() if type(x) not in ATOMS]
    found = _core.positions_of_classes(leaves, wanted) if wanted else ()
    return [Step(leaves[i], step, (spec, i)) for i in found]


def parts(value: Any) -> Parts | None:
    """The parts that decide whether a value is a static value; None where its class alone does."""
    if type(value) is types.BuiltinMethodType:  # of an object's, such as `[].append`
        owner = value.__self__
        is_function = owner is None or isinstance(owner, types.ModuleType | type)
        return None if is_function else [(".__self__", owner)]
    if isinstance(value, functools.partial):
        numbered = [(f".args[{i}]", x) for i, x in enumerate(value.args)]
        named = [(f".keywords[{name!r}]", x) for name, x in value.keywords.items()]
        return [(".func", value.func), *numbered, *named]
    if isinstance(value, slice):
        return [(f".{name}", getattr(value, name)) for name in ("start", "stop", "step")]
    if isinstance(value, tuple):
        return [(f"[{i}]", x) for i, x in enumerate(value)]
    return [(" (an item)", x) for x in value] if isinstance(value, frozenset) else None


def closed_over(function: types.FunctionType) -> Iterator[Any]:
    """What a function closes over."""
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it is empty
            yield cell.cell_contents


_cached = ClassTable(lambda value: frozenset(cached_names(type(value)))).of


def attributes(item: Any) -> Parts:
    """The fields of a dataclass's instance, all attributes of any other object."""
    cls = type(item)
    own = names_in(cls)
    if "__dataclass_fields__" in own:
        names = [field.name for field in dataclasses.fields(cls)]
    elif "__attrs_attrs__" in own:
        names = [field.name for field in own["__attrs_attrs__"]]
    else:
        names = [name for base in bases_of(cls) for name in _core.own_slots(base)]
        names += [name for name in _read(item, "__dict__", {}) if name not in _cached(item)]
    return [(f".{name}", _read(item, name, None)) for name in names]


def _read(item: Any, name: str, default: Any) -> Any:
    try:
        return object.__getattribute__(item, name)
    except Exception:  # not set, or a property that isn't ready
        return default
