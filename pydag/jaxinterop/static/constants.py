# SPDX-License-Identifier: Apache-2.0
"""Constant objects that change: what they hold is looked at again at every call, one level deep.

An object of a class that nobody registered is a constant to a compiled function, known by identity.
Such an object may be given other attributes between two calls, and then it is another constant.
Functions, classes, modules and objects with an equality of their own are exempt.
"""

import types
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

from pydag.registry.class_table import ClassTable
from pydag.typing import Leaf

from .leaves import Static, compares, is_of_jax
from .parts import Readers, readers_of

# Numbers and text are compared by value, all else by identity.
_BY_VALUE = (bool, int, float, complex, str, bytes)

_FUNCTIONS = (types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType)


def _reader(instance: Any) -> Readers | None:
    """How attributes are read; None for a class that is exempt."""
    cls = type(instance)
    if is_of_jax(instance) or compares(cls, object) or any(cls is f for f in _FUNCTIONS):
        return None
    readers = readers_of(instance)
    return readers if readers.attributes is not None or readers.slots else None


_table = ClassTable(_reader)


class State:
    """What a constant object held when it was looked at."""

    __slots__ = ("_names", "_owner", "_read", "_slot_names", "_slots", "_values")

    def __init__(self, owner: Any, readers: Readers) -> None:
        self._owner, self._read = owner, readers.attributes
        self._slots = [get for _, get in readers.slots]
        self._slot_names = [name for name, _ in readers.slots]
        self._names, self._values = self._look()

    @classmethod
    def of(cls, leaf: Leaf) -> "State | None":
        """The state of a leaf; None for one that is exempt, or holds nothing."""
        readers = _table.of(leaf)
        return None if readers is None else cls(leaf, readers)

    def attributes(self) -> dict[Any, Any]:
        """What it held, by name."""
        names = [*self._names, *self._slot_names]
        pairs = zip(names, self._values, strict=True)
        return {name: value for name, value in pairs if value is not _UNSET}

    def _look(self) -> tuple[list[Any], list[Any]]:
        attributes = self._read(self._owner) if self._read is not None else {}
        is_dict = type(attributes) is dict
        names, values = (list(attributes), list(attributes.values())) if is_dict else ([], [])
        values += [_slot(get, self._owner) for get in self._slots]
        return names, values

    def look_again(self) -> bool:
        """Looks at the object, as at every call; returns whether it still holds the same."""
        if not self._slots and self._read is not None:  # without a copy
            held, known = self._read(self._owner), self._values
            is_dict = type(held) is dict and len(held) == len(known)
            if is_dict and all(map(is_, held.values(), known)) and all(map(is_, held, self._names)):
                return True
        names, values = self._look()
        if _are_same(names, self._names) and _are_same(values, self._values):
            return True
        if not _are_equal(names, values, self._names, self._values):
            return False
        self._values = values  # equal numbers, in other objects
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return _are_equal(self._names, self._values, other._names, other._values)

    def __hash__(self) -> int:
        return len(self._values)


_UNSET = object()


def _slot(get: Callable[[Any], Any], owner: Any) -> Any:
    try:
        return get(owner)
    except AttributeError:
        return _UNSET


def _are_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _are_equal(
    names: list[Any], values: list[Any], other_names: list[Any], other_values: list[Any]
) -> bool:
    if len(values) != len(other_values) or not _are_same(names, other_names):
        return False
    return all(map(_is_equal, values, other_values))


def _is_equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    return type(one) is type(other) and type(one) in _BY_VALUE and Static(one) == Static(other)


def with_state(static: Static) -> Static:
    """A static leaf as part of a key: with what it holds now, where that can change."""
    if type(static.value) is Static or (state := State.of(static.value)) is None:
        return static
    return Static(static.value, state)
