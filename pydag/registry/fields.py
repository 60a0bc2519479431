# SPDX-License-Identifier: Apache-2.0
"""Classes whose children are their attributes, and which attributes those are."""

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any, overload

import optree

import pydag._core as _core

from .classes import attribute_of, cached_names
from .functions import C, checked_namespace
from .optree_private import GLOBAL_NAMESPACE
from .tables import note_registered

FieldNames = tuple[str, ...]

module_listeners: list[Callable[[type], object]] = []
"""Functions that are called with each class of modules that is registered globally."""


# No generators below: CPython 3.13 crashes if memory runs out while it makes a generator.


def _slots(cls: type) -> list[str]:
    """The names of all `__slots__` members as they are stored, bases first.

    A private name is stored with the name that its class had when it was made.
    """
    found: list[str] = []
    for base in reversed(cls.__mro__):
        names = base.__dict__.get("__slots__", ())
        given = [names] if isinstance(names, str) else list(names)
        found += sorted(_core.own_slots(base), key=functools.partial(_rank, given))
    return found


def _rank(given: list[str], stored: str) -> int:
    """The position of a slot in the given names, by its stored name."""
    ends = [stored == name for name in given]
    if True not in ends:
        ends = [stored.endswith(name) for name in given]
    return ends.index(True) if True in ends else len(ends)


def _is_static(field: "dataclasses.Field[object]") -> bool:
    """Whether a dataclass field is marked as no child, in JAX's or in optree's and Flax's way."""
    return bool(field.metadata.get("static", False)) or not field.metadata.get("pytree_node", True)


# Slots of a base class for its own use: part of the structure, and no children.
_BOOKKEEPING = ("__pydantic_fields_set__",)


def check_distinct(data: FieldNames, meta: FieldNames) -> None:
    """Raises `ValueError` for a name that is given twice."""
    if both := [name for name in data if name in meta]:
        raise ValueError(f"fields can't be both data and meta: {both}")
    for what, names in (("data", data), ("meta", meta)):
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise ValueError(f"{what} fields are named twice: {twice}")


def check_complete(cls: type, named: FieldNames) -> None:
    """Checks the named fields: an object that is built has only these.

    Raises:
        ValueError: They leave out a field of a dataclass, or a slot.
    """
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    own = dict.fromkeys([*[field.name for field in fields], *_slots(cls)])
    if left_out := [name for name in own if name not in named]:
        raise ValueError(
            f"{cls!r} has the fields {left_out} besides those that were named: an object that is "
            "built would lose them\n"
            "  Name each of them: in data_fields, or in meta_fields if it is configuration. Or "
            "leave data_fields out: then all that an instance has is a field."
        )


def check_stored(cls: type, named: FieldNames) -> None:
    """Raises `ValueError` if a named field is a property."""
    if computed := [name for name in named if isinstance(attribute_of(cls, name), property)]:
        raise ValueError(
            f"{computed} can't be fields: these are properties of {cls!r}, and nothing is stored "
            "under these names\n  Name the attributes that they are computed from."
        )


def resolve(
    cls: type, data: FieldNames | None, meta: FieldNames
) -> tuple[FieldNames | None, FieldNames, FieldNames, FieldNames]:
    """(data fields, slots, meta fields, lazy attributes).

    Data fields `None` means every attribute that an instance has: its `__dict__`, and those of the
    slots that are set. A class that inherits from a dataclass without being one itself may have
    attributes beside the dataclass's fields, so only the class's own `@dataclass` counts. What a
    lazy attribute stored is no field: a new instance computes it again at its first use.
    """
    if data is None and dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
        meta += tuple([f.name for f in fields if _is_static(f) and f.name not in meta])
        if "__dataclass_fields__" in cls.__dict__:
            data = tuple([f.name for f in fields if f.name not in meta])
    slots = (
        () if data is not None else tuple(dict.fromkeys([s for s in _slots(cls) if s not in meta]))
    )
    check_distinct(data or (), meta)
    cached = tuple([n for n in cached_names(cls) if n not in meta and n not in (data or ())])
    if data is not None:
        check_complete(cls, data + meta)
        cached += ("__orig_class__",)  # `typing` sets it: Pair[int](...)
    return data, slots, meta, cached


@overload
def register_fields(
    cls: C,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] = (),
    *,
    namespace: str = GLOBAL_NAMESPACE,
    preserve_relative_identities: bool = True,
) -> C: ...
@overload
def register_fields(
    cls: None = None,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] = (),
    *,
    namespace: str = GLOBAL_NAMESPACE,
    preserve_relative_identities: bool = True,
) -> Callable[[C], C]: ...
def register_fields(
    cls: Any = None,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] = (),
    *,
    namespace: str = GLOBAL_NAMESPACE,
    preserve_relative_identities: bool = True,
) -> Any:
    """Make a class a node whose children are attributes, which the core reads and writes itself.

    No Python code runs for such a node: instances are made without `__init__`, and the attributes
    are read from and written to `__dict__` and slots, as `copy.copy` does, past any property,
    `__getattribute__` or `__setattr__`. It works as a function, as a class decorator (bare or with
    arguments), and in `__init_subclass__`: the fields are looked up when the class is first used,
    so `@dataclass` may come later.

    Args:
        cls: The class. Left out, `register_fields` returns a decorator.
        data_fields: The attributes that are children, in this order. None: the fields of a
            dataclass except those marked static (`metadata={"static": True}`), which are meta; for
            any other class all of `__dict__`, by name, without the stored values of a
            `functools.cached_property` and other lazy descriptors (`__get__`, no `__set__`, not
            callable), then every slot of `__slots__` that is set, bases first.
            New objects have these attributes in the order in which they were set.
        meta_fields: The attributes that are part of the structure, compared by `==`.
        namespace: The namespace of the registration; left out: all namespaces.
        preserve_relative_identities: False makes each occurrence of an object a node of its own.

    Raises:
        ValueError: A name is both data and meta, or is a property; the names leave out a slot, or a
            field of a dataclass (also at first use, where `@dataclass` comes later); or the class
            is registered already. When flattening: an instance has an attribute that is no field.
        AttributeError: When flattening: a field is not set.

    >>> @register_fields(meta_fields=("name",))
    ... class Layer:
    ...     def __init__(self, name):
    ...         self.name, self.w, self.b = name, [1.0], 0.0
    >>> layer = Layer("tied")
    >>> pydag.dag_flatten((layer, layer))
    ([0.0, 1.0], PyDagSpec((&0 Layer(b=*, w=[*], name='tied'), *0)))
    """
    return _register(cls, data_fields, meta_fields, namespace, preserve_relative_identities, False)


@overload
def register_module(
    cls: C,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] = (),
    *,
    namespace: str = GLOBAL_NAMESPACE,
    preserve_relative_identities: bool = True,
) -> C: ...
@overload
def register_module(
    cls: None = None,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] = (),
    *,
    namespace: str = GLOBAL_NAMESPACE,
    preserve_relative_identities: bool = True,
) -> Callable[[C], C]: ...
def register_module(
    cls: Any = None,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] = (),
    *,
    namespace: str = GLOBAL_NAMESPACE,
    preserve_relative_identities: bool = True,
) -> Any:
    """Make a class a node, as `register_fields` does, and mark it as a module.

    For `pydag.jaxinterop` the Python numbers and flags that a module holds, itself or in builtin
    containers, are configuration: not traced, not differentiated, not optimized. A function can
    branch on them. In records, the classes of `register_fields`, numbers are data. There is no
    other difference between the two, and none in the structure. Once `pydag.jaxinterop` is loaded,
    the class is also registered with JAX, as by its `register`, unless JAX knows it already.

    Args:
        cls: The class. Left out, `register_module` returns a decorator.
        data_fields: The attributes that are children. None: as for `register_fields`.
        meta_fields: The attributes that are part of the structure, compared by `==`.
        namespace: The namespace of the registration; left out: all namespaces.
        preserve_relative_identities: False makes each occurrence of an object a node of its own.

    Raises:
        ValueError, AttributeError: As `register_fields`.

    >>> class Module:
    ...     def __init_subclass__(cls, **options):
    ...         super().__init_subclass__(**options)
    ...         register_module(cls)
    >>> class Dropout(Module):
    ...     def __init__(self, rate):
    ...         self.rate, self.is_training = rate, True
    >>> pydag.dag_leaves(Dropout(0.5))
    [True, 0.5]
    """
    return _register(cls, data_fields, meta_fields, namespace, preserve_relative_identities, True)


def _register(
    cls: Any,
    data_fields: Iterable[str] | None,
    meta_fields: Iterable[str],
    namespace: str,
    has_identity: bool,
    is_module: bool,
) -> Any:
    if cls is None:
        return lambda cls: _register(
            cls, data_fields, meta_fields, namespace, has_identity, is_module
        )
    namespace = checked_namespace(cls, namespace)
    for names in (data_fields, meta_fields):
        if isinstance(names, str):
            raise TypeError(f"fields are given as a sequence of names, got the string {names!r}")
    data = None if data_fields is None else tuple(data_fields)
    meta = tuple(meta_fields)
    for name in (data or ()) + meta:
        if type(name) is not str:  # a subclass could run code when it is compared
            raise TypeError(f"the name of a field must be a string, got {name!r}")
    slots = _slots(cls) if issubclass(type(cls), type) else []
    meta += tuple([n for n in _BOOKKEEPING if n in slots and n not in (data or ()) + meta])
    check_distinct(data or (), meta)
    check_stored(cls, (data or ()) + meta)
    if data is not None:
        check_complete(cls, data + meta)
    resolved = functools.partial(resolve, cls, data, meta)
    entry_type = optree.GetAttrEntry
    _core.register(cls, None, None, resolved, entry_type, namespace, has_identity, is_module)
    note_registered(cls, lambda cls: resolve(cls, data, meta))
    if is_module and namespace == "":
        for listener in module_listeners:
            listener(cls)
    return cls
