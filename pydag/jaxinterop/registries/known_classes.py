# SPDX-License-Identifier: Apache-2.0
"""Classes that the core opens and builds without a call of their library's functions.

Of some the fields are all that there is: equinox modules, `jax.tree_util.register_dataclass` (and
so `flax.struct`), chex dataclasses; unless the class has code of its own that would have to run.

For others the core stands in, where the library does it in a known way. What is known may be wrong
for another release, or for a class that does something else. So the core also opens the first
instance of a class, or of a layout (its attributes, and which of them are children), that the
library has opened, and builds the first that the library has built. If the two differ, the
library's functions are called for each instance. With `PYDAG_STAND_INS=0` in the environment they
always are. A GPT-2 of NNX, of 148 variables, is flattened 13 times faster by stand-ins, and copied
11 times.
"""

import contextlib
import dataclasses
import functools
import os
import sys
import types
from collections.abc import Iterable
from typing import Any, NamedTuple

import pydag._core as _core
from pydag.jaxinterop.foreign import equinox_private, jax_private
from pydag.jaxinterop.foreign.flax_private import Known, Layout, OpenNode, Places, opened_by_flax
from pydag.registry import past_constructor
from pydag.registry.classes import bases_of, inherits, names_in

Names = tuple[str, ...]


class KnownFields(NamedTuple):
    """The attributes that are all that there is to an instance."""

    data: Names
    meta: Names
    # Whether an instance with other attributes, or without some of these, is the library's to open.
    is_strict: bool


def known_fields(cls: type, entry: Any) -> KnownFields | None:
    """The fields of a class, given its entry in JAX's registry; None where its functions run."""
    if not _is_dataclass(cls):
        return None
    found = _of_equinox(cls)
    if found is None:
        found = _fields_of(cls, entry)
        if found is None:
            return None
        if found.is_strict and _has_own(cls, "__new__", "__post_init__"):
            return None
        if not found.is_strict and not _only_sets_fields(cls):
            return None
    is_taken = any(_is_taken(cls, name, found.is_strict) for name in found.data + found.meta)
    return None if is_taken else found


def _fields_of(cls: type, entry: Any) -> KnownFields | None:
    """The fields by which chex or JAX opens a dataclass, whatever runs when one is built."""
    names = tuple(sorted(f.name for f in dataclasses.fields(cls)))
    if _is_of_chex(entry):
        return KnownFields(names, (), True)
    of_jax = jax_private.dataclass_fields(entry)
    is_whole = of_jax is not None and {*of_jax[0], *of_jax[1]} == {*names}
    return KnownFields(*of_jax, False) if of_jax is not None and is_whole else None


def _is_dataclass(cls: type) -> bool:
    return isinstance(names_in(cls).get("__dataclass_fields__"), dict)


def builder(cls: type, entry: Any) -> past_constructor.Builder:
    """How instances of a class of JAX's registry are built."""
    of_jax = jax_private.dataclass_fields(entry)
    if of_jax is None and not (_is_dataclass(cls) and _is_of_chex(entry)):
        return entry.from_iter  # type: ignore[no-any-return]  # an untyped registry

    def attributes(aux_data: Any, children: Iterable[Any]) -> dict[str, Any]:
        if of_jax is None:
            return dict(zip(aux_data, children, strict=True))
        return dict(zip(of_jax[0] + of_jax[1], (*children, *(aux_data or ())), strict=True))

    return past_constructor.builder(cls, entry.from_iter, attributes)


def _of_equinox(cls: type) -> KnownFields | None:
    is_module = equinox_private.is_equinox_module(cls)
    if not (is_module and equinox_private.equinox_opens_by_fields()):
        return None
    fields = dataclasses.fields(cls)
    meta = tuple(f.name for f in fields if f.metadata.get("static", False))
    return KnownFields(tuple(f.name for f in fields if f.name not in meta), meta, True)


@functools.cache
def _functions_of_chex() -> tuple[Any, ...]:
    class Known:
        b: Any
        a: Any

    chex: Any = sys.modules["chex"]
    entry = jax_private.registry[chex.dataclass(Known)]
    return entry.to_iter.__code__, entry.from_iter.func.__code__


def _is_of_chex(entry: Any) -> bool:
    """Whether a class is opened as chex opens its dataclasses, found by trying it out."""
    build = getattr(entry.from_iter, "func", None)
    functions = tuple(getattr(f, "__code__", None) for f in (entry.to_iter, build))
    if "chex" not in sys.modules or None in functions:
        return False
    try:
        return functions == _functions_of_chex()
    except Exception:  # pragma: no cover: another chex, or one that isn't whole yet
        return False


def _is_taken(cls: type, name: str, slots_too: bool) -> bool:
    """Whether an assignment to the attribute goes to something of the class's, such as a property.

    A slot counts only where it is no place for an attribute: in a strict class.
    """
    found = next((names_in(base)[name] for base in bases_of(cls) if name in names_in(base)), None)
    if type(found) is types.MemberDescriptorType:
        return slots_too
    return any({"__set__", "__delete__"} & {*names_in(base)} for base in bases_of(type(found)))


def _has_own(cls: type, *names: str) -> bool:
    """Whether a class, or one that it inherits from, overrides one of these."""
    own = [names_in(base) for base in bases_of(cls) if base is not object]
    return any(name in defined for defined in own for name in names)


_WRITTEN: Any = dataclasses.make_dataclass("Written", ["field"])


def _only_sets_fields(cls: type) -> bool:
    """Whether making an instance sets its fields, and does nothing else.

    This holds if `__init__` is the one that `@dataclass` writes, and nothing else runs.
    """
    written, init = _WRITTEN.__init__.__code__, getattr(cls, "__init__", None)
    code = getattr(init, "__code__", None)
    place = getattr(code, "co_filename", None), getattr(code, "co_qualname", None)
    metaclasses = [names_in(meta) for meta in bases_of(type(cls)) if not inherits(type, meta)]
    parameters: Any = getattr(cls, "__dataclass_params__", None)
    return (
        place == (written.co_filename, written.co_qualname)
        and parameters is not None
        and parameters.init
        and (parameters.frozen or not _has_own(cls, "__setattr__"))
        and all(field.init for field in dataclasses.fields(cls))
        and not any("__call__" in names for names in metaclasses)
        and not _has_own(cls, "__new__", "__post_init__", "__getattribute__", "__getattr__")
    )


_MOST_FAILURES = 8
# Instances have no children, and are their own aux_data.
_WHOLE = Known(Places(), lambda *_: Layout((), (), ()))


class Trial:
    """Whether the core can stand in for the functions of one class."""

    def __init__(self, cls: type, entry: Any) -> None:
        self._entry = entry
        is_whole = jax_private.is_by_register_static(entry)
        how = _WHOLE if is_whole else opened_by_flax(cls, entry)
        self.how = how if os.environ.get("PYDAG_STAND_INS") != "0" else None
        self.registration: object = None
        self.failures = 0

    def learn(self, node: Any, parts: OpenNode) -> OpenNode | None:
        """Lets the core open such instances from now on, if it does so as the library did.

        Returns what it opened; None where the library is to go on.
        """
        if self.how is None or self.failures >= _MOST_FAILURES:
            return None
        if (known := _core.open_by_stand_in(self.registration, node)) is not None:
            return known  # the caller isn't the core
        found = None
        with contextlib.suppress(TypeError, ValueError):
            if (layout := self.how.layout(node, parts)) is not None:
                _core.add_layout(self.registration, self.how.places, *layout, parts[2])
            found = _core.open_by_stand_in(self.registration, node)
        if found is None:
            self.failures += 1
        elif not _is_same(found, parts):
            self._give_up()
            return None
        return found

    def _give_up(self) -> None:
        _core.drop_stand_in(self.registration)
        self.failures = _MOST_FAILURES

    def build(self, aux_data: Any, children: tuple[Any, ...]) -> Any:
        """What the library builds. The core builds such instances from now on if it can."""
        built = self._entry.from_iter(aux_data, children)
        if _core.try_stand_in(self.registration, aux_data, children, built) is False:
            self._give_up()
        return built


def _is_same(a: Any, b: Any) -> bool:
    """Whether both are the same object, equal names, or tuples of such."""
    if type(a) is not tuple:
        return a is b or (type(a) in (str, int) and type(a) is type(b) and a == b)
    return type(b) is tuple and len(a) == len(b) and all(map(_is_same, a, b))
