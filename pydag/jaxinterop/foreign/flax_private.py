# SPDX-License-Identifier: Apache-2.0
"""How flax opens and builds the objects of NNX, which it doesn't promise: all is looked up here.

These are guesses: `registries/known_classes.py` compares them with what flax does.
A flax that has no such thing, or is still being imported, is asked for each object.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag.registry.classes import bases_of, inherits, names_in

# The attribute that says which attributes of an instance are children. It is the first static one.
_NODES = "_pytree__nodes"
# The slots of a Variable for its value and its metadata.
_RAW_VALUE, _METADATA = "_raw_value", "_var_metadata"
# The slot that says under which trace an instance was made.
_FRESH = "_trace_state"


# (children, aux_data, names of the children), as the core gets them of a flatten function.
OpenNode = tuple[tuple[Any, ...], Any, tuple[Any, ...] | None]


class Places(NamedTuple):
    """Where the instances of a class keep their parts, as `_core.add_layout` takes it."""

    slots: tuple[str, ...] = ()
    dict: str | None = None
    kinds: tuple[str, type, str] | None = None
    fresh: str | None = None
    make_fresh: Callable[[], Any] | None = None
    write: Callable[[Any, Any, Sequence[Any]], None] | None = None


class Layout(NamedTuple):
    """The parts of an instance and of those like it, as `_core.add_layout` takes them."""

    names: tuple[str, ...]
    children: tuple[int, ...]
    aux_data: Any


class Known(NamedTuple):
    """How a library opens and builds the instances of a class."""

    places: Places
    layout: Callable[[Any, OpenNode], Layout | None]
    """That of an instance, given what the library said of it; None where the core can't open it."""


def opened_by_flax(cls: type, entry: Any) -> Known | None:
    """How flax opens and builds the instances of a class; None where that isn't known.

    Args:
        entry: What JAX has registered for the class.
    """
    if "flax.nnx" not in sys.modules or _has_own(cls, "__getattribute__", "__del__", "__dict__"):
        return None
    for known in (_variables, _states, _pytrees):
        try:
            found: Known | None = known(cls, entry)
        except (AttributeError, KeyError):  # another release, or one that isn't whole yet
            continue
        if found is not None:
            return found
    return None


def variable_classes() -> tuple[type, type] | None:
    """`nnx.Variable` and `nnx.Param`; None where NNX isn't loaded."""
    library: Any = sys.modules.get("flax.nnx.variablelib")
    variable, param = getattr(library, "Variable", None), getattr(library, "Param", None)
    return (variable, param) if isinstance(variable, type) and isinstance(param, type) else None


def writer_of(cls: type) -> Callable[[Any, Sequence[Any]], None] | None:
    """How instances of NNX's classes are written, without flax's check of the trace."""
    classes = variable_classes()
    if classes is None:
        return None
    if inherits(cls, classes[0]):
        return lambda variable, children: object.__setattr__(variable, _RAW_VALUE, children[0])
    pytree = getattr(sys.modules.get("flax.nnx"), "Pytree", None)
    return _write_attributes if isinstance(pytree, type) and inherits(cls, pytree) else None


def named_details(cls: Any, aux_data: Any) -> list[tuple[str, Any]] | None:
    """The names and values in the aux_data of an NNX class; None for others."""
    library: Any = sys.modules.get("flax.nnx.pytreelib")
    if library is not None and cls is getattr(library, "PytreeState", None):
        return []
    if not isinstance(cls, type) or writer_of(cls) is None:
        return None
    try:
        pairs = zip(*aux_data[1:], strict=True) if inherits(cls, library.Pytree) else aux_data
        return [(str(name), value) for name, value in pairs if name != _NODES]
    except (TypeError, ValueError):  # a class with functions of its own
        return None


def is_module_class(cls: Any, namespace: str) -> bool:
    """Whether instances are modules: those of pydag and equinox, and what NNX makes."""
    if not isinstance(cls, type):
        return False
    return _core.is_module(cls, namespace) or writer_of(cls) is not None


def _write_attributes(node: Any, children: Sequence[Any]) -> None:
    attributes = vars(node)
    for name, child in zip(_core.open_one_level(node)[1], children, strict=True):
        if attributes[name] is not child:
            attributes[name] = child


def _has_own(cls: type, *names: str) -> bool:
    """Whether a class, or one that it inherits from, overrides one of these.

    What flax's own classes do is known: they look out for names that were given up.
    """
    known = [str(names_in(base).get("__module__")) for base in bases_of(cls)]
    bases = [x for x, m in zip(bases_of(cls), known, strict=True) if not m.startswith("flax.")]
    is_layout = type(type("C", (), {}).__dict__["__dict__"])  # what every class with a dict has
    return any(
        name in names_in(base) and not isinstance(names_in(base)[name], is_layout)
        for base in bases
        if base is not object
        for name in names
    )


def _variables(cls: type, entry: Any) -> Known | None:
    library: Any = sys.modules["flax.nnx.variablelib"]
    build = entry.from_iter
    if entry.to_iter is not library._variable_flatten or not isinstance(build, functools.partial):
        return None
    if build.func is not library._variable_unflatten or build.args[0] is not cls or build.keywords:
        return None  # pragma: no cover: another flax
    set_raw_value = library.Variable.set_raw_value

    def write(variable: Any, _: Any, children: Sequence[Any]) -> None:
        set_raw_value(variable, children[0])

    def layout(_: Any, parts: OpenNode) -> Layout:
        names = tuple(name for name, _ in parts[1])
        return Layout(names, (0,), tuple(([name], i) for i, name in enumerate(names, 1)))

    return Known(Places((_RAW_VALUE,), _METADATA, None, _FRESH, _trace_state(), write), layout)


def _states(cls: type, entry: Any) -> Known | None:
    library: Any = sys.modules["flax.nnx.pytreelib"]
    if cls is not library.PytreeState or entry.to_iter is not library._flatten_pytree_state:
        return None
    places = Places(("_initializing", "_is_setup"), None, None, _FRESH, _trace_state())
    return Known(places, lambda *_: Layout((), (), (0, 1)))


def _pytrees(cls: type, entry: Any) -> Known | None:
    library: Any = sys.modules["flax.nnx.pytreelib"]
    own = names_in(library.Pytree)
    is_flaxs = (
        entry.to_iter is own["_pytree__flatten"]
        and entry.from_iter.__func__ is own["_pytree__unflatten"].__func__
        and entry.from_iter.__self__ is cls
    )
    if not is_flaxs:
        return None
    kinds = _NODES, library.graphlib.HashableMapping, "_mapping"
    return Known(Places((), "", kinds, write=_assign_attributes), _layout_of_attributes)


def _layout_of_attributes(node: Any, parts: OpenNode) -> Layout | None:
    attributes, (keys, other_keys, _) = vars(node), parts[1]
    names = tuple(str(key) for key in (*keys, *other_keys))
    # An instance that says itself whether it has numbers as keys is flax's to open.
    if set(names) != attributes.keys() or "_pytree__has_int_keys" in attributes:
        return None
    others = tuple(range(len(keys), len(names)))
    return Layout(names, tuple(range(len(keys))), ([keys], [other_keys], others))


def _assign_attributes(node: Any, aux_data: Any, children: Sequence[Any]) -> None:
    """Assigns to the attributes: so the class decides what may be assigned, and when."""
    for key, child in zip(aux_data[0], children, strict=True):
        if vars(node).get(str(key)) is not child:
            setattr(node, str(key), child)


def _trace_state() -> Callable[[], Any]:
    found: Callable[[], Any] = sys.modules["flax.nnx.tracers"].TraceState
    return found
