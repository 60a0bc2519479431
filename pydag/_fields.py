# SPDX-License-Identifier: Apache-2.0
"""Which attributes of a class are its fields: looked up once, when the class is first used."""

import dataclasses
import inspect
import types
from collections.abc import Iterator

Names = tuple[str, ...]


def _slots(cls: type) -> Iterator[str]:
    """The names of all `__slots__` members as they are stored, bases first.

    A private name is stored with the name that its class had when it was made.
    """
    for base in reversed(cls.__mro__):
        names = base.__dict__.get("__slots__", ())
        given = [names] if isinstance(names, str) else list(names)
        stored = [k for k, v in base.__dict__.items() if isinstance(v, types.MemberDescriptorType)]

        def place(name: str, given: list[str] = given) -> int:
            return next((i for i, g in enumerate(given) if name.endswith(g)), len(given))

        exact = {name: i for i, name in enumerate(given)}
        yield from sorted(stored, key=lambda name: exact.get(name, place(name)))


def _is_static(field: "dataclasses.Field[object]") -> bool:
    """Whether a dataclass field is marked as no child, in JAX's or in optree's and Flax's way."""
    return bool(field.metadata.get("static", False)) or not field.metadata.get("pytree_node", True)


def _has_code(cls: type) -> bool:
    """Whether a class attribute of this class may run code when it is read from an instance."""
    return hasattr(cls, "__get__") or hasattr(cls, "__set__")


def _is_plain(cls: type, names: Names) -> bool:
    """Whether reading these attributes runs no code of the class (a property would)."""
    found = (inspect.getattr_static(cls, name, None) for name in names)
    return all(isinstance(x, types.MemberDescriptorType) or not _has_code(type(x)) for x in found)


def check_distinct(data: Names, meta: Names) -> None:
    """Raises `ValueError` for a name that is given twice."""
    if both := [name for name in data if name in meta]:
        raise ValueError(f"fields can't be both data and meta: {both}")
    for what, names in (("data", data), ("meta", meta)):
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise ValueError(f"{what} fields are named twice: {twice}")


def resolve(cls: type, data: Names | None, meta: Names) -> tuple[Names | None, Names, Names, bool]:
    """(data fields, slots, meta fields, whether reading them runs no code).

    Data fields `None` means every attribute that an instance has: its `__dict__`, and those of the
    slots that are set. A class that inherits from a dataclass without being one itself may have
    attributes beside the dataclass's fields, so only the class's own `@dataclass` counts.
    """
    if data is None and dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
        meta += tuple(f.name for f in fields if _is_static(f) and f.name not in meta)
        if "__dataclass_fields__" in cls.__dict__:
            data = tuple(f.name for f in fields if f.name not in meta)
    slots = (
        () if data is not None else tuple(dict.fromkeys(s for s in _slots(cls) if s not in meta))
    )
    check_distinct(data or (), meta)
    return data, slots, meta, _is_plain(cls, meta + (data or ()))
