# SPDX-License-Identifier: Apache-2.0
"""Classes that their library opens and builds by fields alone: the core does it without a call.

That is so of equinox modules, of `jax.tree_util.register_dataclass` (and so of `flax.struct`), and
of chex dataclasses. It is not so where the class has code of its own that would have to run.
"""

import dataclasses
import functools
import sys
import types
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydag.jaxinterop.foreign import equinox_private, jax_private
from pydag.registry import past_constructor
from pydag.registry.class_table import bases_of, inherits, names_in

Names = tuple[str, ...]


class KnownFields(NamedTuple):
    """The attributes that are all that there is to an instance."""

    data: Names
    meta: Names
    # Whether an instance with other attributes, or without some of these, is the library's to open.
    is_strict: bool


def known_fields(cls: type, entry: Any) -> KnownFields | None:
    """The fields of a class, given its entry in JAX's registry; None where its functions run."""
    found = _of_equinox(cls)
    if found is None:
        found = _fields_of(cls, entry)
        if found is None or not _has_no_code(cls, found):
            return None
    is_taken = any(_is_taken(cls, name, found.is_strict) for name in found.data + found.meta)
    return None if is_taken else found


def _fields_of(cls: type, entry: Any) -> KnownFields | None:
    """The fields by which chex or JAX opens a dataclass, whatever runs when one is built."""
    if not _is_dataclass(cls):
        return None
    if _is_of_chex(entry):
        return KnownFields(tuple(sorted(f.name for f in dataclasses.fields(cls))), (), True)
    names = jax_private.dataclass_fields(entry)
    if names is None or {*names[0], *names[1]} != {f.name for f in dataclasses.fields(cls)}:
        return None
    return KnownFields(*names, False)


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
    is_module = _is_dataclass(cls) and equinox_private.is_equinox_module(cls)
    if not (is_module and equinox_private.equinox_opens_by_fields()):
        return None
    fields = dataclasses.fields(cls)
    meta = tuple(f.name for f in fields if f.metadata.get("static", False))
    return KnownFields(tuple(f.name for f in fields if f.name not in meta), meta, True)


def _has_no_code(cls: type, fields: KnownFields) -> bool:
    """Whether nothing of the class's has to run when an instance is opened or built."""
    if fields.is_strict:
        return not _has_own(cls, "__new__", "__post_init__")
    return not _has_own(cls, "__getattribute__", "__getattr__") and _only_sets_fields(cls)


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
    except Exception:  # another release, or one that isn't whole yet
        return False


def _is_taken(cls: type, name: str, slots_too: bool) -> bool:
    """Whether an assignment to the attribute goes to something of the class's, such as a property.

    A slot counts only where it is no place for an attribute: in a strict class.
    """
    for base in bases_of(cls):
        if name in names_in(base):
            kind = type(names_in(base)[name])
            if kind is types.MemberDescriptorType:
                return slots_too
            return any(
                "__set__" in names_in(b) or "__delete__" in names_in(b) for b in bases_of(kind)
            )
    return False


def _has_own(cls: type, *names: str) -> bool:
    """Whether a class, or one that it inherits from, overrides one of these."""
    own = [names_in(base) for base in bases_of(cls) if base is not object]
    return any(name in defined for defined in own for name in names)


def _only_sets_fields(cls: type) -> bool:
    """Whether making an instance sets its fields, and does nothing else.

    This holds if `__init__` is the one that `@dataclass` writes, and nothing else runs.
    """
    metaclasses = bases_of(type(cls))
    if any("__call__" in names_in(meta) for meta in metaclasses if not inherits(type, meta)):
        return False
    parameters: Any = getattr(cls, "__dataclass_params__", None)
    fields = dataclasses.fields(cls)
    if parameters is None or _has_own(cls, "__new__") or not all(f.init for f in fields):
        return False
    if not parameters.frozen and _has_own(cls, "__setattr__"):
        return False
    written = _code(cls)
    return written is not None and written == _code(_alike(fields, parameters.frozen))


def _alike(fields: tuple["dataclasses.Field[Any]", ...], is_frozen: bool) -> type:
    """A dataclass with these fields, and nothing else."""

    def field(given: "dataclasses.Field[Any]") -> Any:
        options: dict[str, Any] = {"kw_only": given.kw_only}
        if given.default is not dataclasses.MISSING:
            options["default"] = None
        if given.default_factory is not dataclasses.MISSING:
            options["default_factory"] = list
        return dataclasses.field(**options)

    named = [(f.name, Any, field(f)) for f in fields]
    return dataclasses.make_dataclass("Alike", named, frozen=is_frozen)


def _code(cls: type) -> tuple[Any, ...] | None:
    code = getattr(getattr(cls, "__init__", None), "__code__", None)
    if not isinstance(code, types.CodeType):
        return None
    return code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_freevars
