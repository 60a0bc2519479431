# SPDX-License-Identifier: Apache-2.0
"""Classes that their library opens and builds by fields alone: the core does it without a call.

That is so of equinox modules, of `jax.tree_util.register_dataclass` (and so of `flax.struct`), and
of chex dataclasses. It is not so where the class has code of its own that would have to run.
"""

import dataclasses
import sys
import types
from operator import is_
from typing import Any, NamedTuple

from pydag.jaxinterop.foreign import chex_private, equinox_private, jax_private
from pydag.registry.class_table import bases_of, inherits, names_in

Names = tuple[str, ...]


class KnownFields(NamedTuple):
    """The attributes that are all that there is to an instance."""

    data: Names
    meta: Names
    # Whether an instance with other attributes, or without some of these, is the library's to open.
    is_strict: bool


def is_module(cls: type) -> bool:
    """Whether a class is one of equinox's modules."""
    module = getattr(sys.modules.get("equinox"), "Module", None)
    return isinstance(module, type) and inherits(cls, module)


def known_fields(cls: type, entry: Any) -> KnownFields | None:
    """The fields of a class; None where its functions have to run.

    Args:
        entry: What JAX has registered for the class.
    """
    if not isinstance(names_in(cls).get("__dataclass_fields__"), dict):
        return None
    found = _of_equinox(cls) or _of_chex(cls, entry) or _of_jax(cls, entry)
    if found is None or any(_is_taken(cls, n, found.is_strict) for n in found.data + found.meta):
        return None
    return found


# What the answer of `known_fields` depends on, beside the fields' own names.
_DECIDING = (
    "__init__", "__new__", "__post_init__", "__setattr__", "__getattribute__", "__getattr__",
    "__dataclass_fields__", "__dataclass_params__",
)  # fmt: skip


class LookAgain:
    """Says whether a class, which was changed, still has the fields that were known."""

    def __init__(self, cls: type, entry: Any, fields: KnownFields) -> None:
        self._cls, self._entry, self._fields = cls, entry, fields
        self._last = self._deciding(), True

    def __call__(self) -> bool:
        now = self._deciding()
        before, is_same = self._last
        if len(now) != len(before) or not all(map(is_, now, before)):
            is_same = known_fields(self._cls, self._entry) == self._fields
            self._last = now, is_same
        return is_same

    def _deciding(self) -> list[Any]:
        names = (*_DECIDING, *self._fields.data, *self._fields.meta)
        bases, metaclasses = bases_of(self._cls), bases_of(type(self._cls))
        found = [names_in(base).get(name) for base in bases for name in names]
        calls = [names_in(meta).get("__call__") for meta in metaclasses]
        return [*bases, *found, *metaclasses, *calls]


def _of_equinox(cls: type) -> KnownFields | None:
    if not is_module(cls) or not equinox_private.equinox_opens_by_fields():
        return None
    fields = dataclasses.fields(cls)
    meta = tuple(f.name for f in fields if f.metadata.get("static", False))
    return KnownFields(tuple(f.name for f in fields if f.name not in meta), meta, True)


def _of_chex(cls: type, entry: Any) -> KnownFields | None:
    if not chex_private.is_opened_by_chex(entry) or _has_own(cls, "__new__", "__post_init__"):
        return None
    return KnownFields(tuple(sorted(f.name for f in dataclasses.fields(cls))), (), True)


def _of_jax(cls: type, entry: Any) -> KnownFields | None:
    names = jax_private.dataclass_fields(entry)
    if names is None or not _reads_as_usual(cls):
        return None
    data, meta = names
    if {*data, *meta} != {f.name for f in dataclasses.fields(cls)} or not _only_sets_fields(cls):
        return None
    return KnownFields(data, meta, False)


def _is_taken(cls: type, name: str, slots_too: bool) -> bool:
    """Whether an assignment to the attribute goes to something of the class's, such as a property.

    Args:
        slots_too: Whether a slot counts, which is no place for an attribute of a strict class.
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
    """Whether a class, or one that it inherits from, defines one of these otherwise than object."""
    own = [names_in(base) for base in bases_of(cls) if base is not object]
    return any(name in defined for defined in own for name in names)


def _reads_as_usual(cls: type) -> bool:
    return not _has_own(cls, "__getattribute__", "__getattr__")


def _only_sets_fields(cls: type) -> bool:
    """Whether making an instance sets its fields, and does nothing else.

    So it is if `__init__` is what `@dataclass` writes for these fields where there is nothing else.
    """
    metaclasses = bases_of(type(cls))
    if any("__call__" in names_in(meta) for meta in metaclasses if not inherits(type, meta)):
        return False
    parameters: Any = getattr(cls, "__dataclass_params__", None)
    if _has_own(cls, "__new__") or parameters is None:
        return False
    if not parameters.frozen and _has_own(cls, "__setattr__"):
        return False
    fields = dataclasses.fields(cls)
    if not all(f.init for f in fields):
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
