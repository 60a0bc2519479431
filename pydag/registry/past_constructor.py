# SPDX-License-Identifier: Apache-2.0
"""Classes of other libraries whose fields are known, built past their constructor where None is.

pydag puts None into nodes: in gradients, updates and halves of a partition. A constructor may
refuse it, or put a default in its place, which would then be taken for a value.
"""

import dataclasses
import dis
import sys
import types
from collections.abc import Callable
from typing import Any

import pydag._core as _core

from .classes import bases_of, cached_names, names_in

Builder = Callable[[Any, Any], Any]
"""Builds an instance, given what there is beside children, and the children."""

put_by_pydag: dict[int, type] = {id(cls): cls for cls in (type(None), bool)}
"""The classes of what pydag puts in the place of a leaf, by id: None, and the flags of masks."""


def builder(
    cls: type, library: Builder, attributes: Callable[[Any, Any], dict[str, Any]]
) -> Builder:
    """The library's function; past the constructor where that doesn't keep what pydag put.

    Args:
        attributes: Gives the fields of an instance, given the same arguments.
    """

    def build(aux_data: Any, children: Any) -> Any:
        put = [x for x in children if id(type(x)) in put_by_pydag]
        if not put:
            return library(aux_data, children)
        fields = attributes(aux_data, children)
        try:
            built = library(aux_data, children)
        except Exception as error:
            is_flag = [type(x) is bool for x in children]
            if len(put) == sum(is_flag) < len(is_flag):
                raise  # no mask, and so what the class has to say of its values
            return _past(cls, fields, _set_by(cls), error)
        is_kept = all(getattr(built, name, build) is x for name, x in fields.items())
        return built if is_kept else _past(cls, fields, _stored_in(built), None)

    return build


def builder_of_optree(cls: type, library: Builder) -> Builder:
    """How instances of a class of optree's registry are built: its dataclasses, those of attrs."""
    known = [sys.modules.get(f"optree.{name}") for name in ("dataclasses", "integrations.attrs")]
    own = library.__globals__ if type(library) is types.FunctionType else None
    found = [own is not None and own is vars(module) for module in known if module is not None]
    if True not in found:
        return library
    fields = _fields(cls)
    data = [f.name for f in fields if f.metadata.get("pytree_node", True)]
    names = {getattr(f, "alias", f.name): f.name for f in fields}
    return builder(
        cls,
        library,
        lambda meta, children: {
            **dict(zip(data, children, strict=True)),
            **{names[alias]: value for alias, value in meta},
        },
    )


def _past(cls: type, fields: dict[str, Any], names: list[str], refusal: Exception | None) -> Any:
    """An instance with these fields; `names` are the attributes that instances have."""
    computed = ("__orig_class__", *cached_names(cls))
    if lost := [name for name in names if name not in fields and name not in computed]:
        put = [f"{name}={x!r}" for name, x in fields.items() if id(type(x)) in put_by_pydag]
        raise TypeError(
            f"{cls.__qualname__} can't be built with {', '.join(put)}: its constructor "
            f"{'refuses that' if refusal else 'puts something else there'}, and without the "
            f"constructor {', '.join(lost)} would be missing\n"
            "  Declare each as a field, or compute it in a functools.cached_property."
        ) from refusal
    instance: Any = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(instance, name, value)
    return instance


def _stored_in(instance: Any) -> list[str]:
    slots = [name for base in bases_of(type(instance)) for name in _core.own_slots(base)]
    return [*getattr(instance, "__dict__", ()), *[n for n in slots if hasattr(instance, n)]]


def _set_by(cls: type) -> list[str]:
    """The attributes that the constructor of a class sets, where it didn't come to its end."""
    declared = [field.name for field in _fields(cls)]
    names = ("__init__", "__new__", "__post_init__", "__attrs_post_init__")
    functions = [names_in(base).get(name) for base in bases_of(cls) for name in names]
    codes = [f.__code__ for f in functions if isinstance(f, types.FunctionType)]
    stores = [x for code in codes for x in dis.get_instructions(code) if x.opname == "STORE_ATTR"]
    return list(dict.fromkeys([*declared, *[x.argval for x in stores]]))


def _fields(cls: type) -> Any:
    of_attrs = names_in(cls).get("__attrs_attrs__")
    if of_attrs is not None or not dataclasses.is_dataclass(cls):
        return of_attrs or ()
    return dataclasses.fields(cls)
