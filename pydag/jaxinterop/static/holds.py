# SPDX-License-Identifier: Apache-2.0
"""Whether a settled value is still what it was: its classes, and what frozen dataclasses hold.

Nobody is meant to change a frozen dataclass, but `object.__setattr__` does; and an equality or a
hash that a class gets later makes its instances compare by what they hold.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import pydag._core as _core

from .leaves import is_made_of_fields, is_made_of_items

_IMMUTABLE_TYPE = 1 << 8  # of CPython's flags of types


class _Held:
    """What a value held when it was looked at.

    Args:
        value: A settled one.
    """

    __slots__ = ("_fields", "_stamps")

    def __init__(self, value: Any) -> None:
        self._stamps: list[tuple[type, int]] = []
        self._fields: list[tuple[Any, str, Any]] = []
        self._look(value)

    def _look(self, value: Any) -> None:
        cls = type(value)
        if not cls.__flags__ & _IMMUTABLE_TYPE:
            self._stamps.append((cls, _core.class_stamp(cls)))
        if is_made_of_items(value):
            for item in tuple.__iter__(value):
                self._look(item)
        elif is_made_of_fields(value):
            for field in dataclasses.fields(value):
                part = getattr(value, field.name)
                self._fields.append((value, field.name, part))
                self._look(part)

    def is_constant(self) -> bool:
        return not self._stamps and not self._fields

    def holds(self) -> bool:
        """Whether nothing of it was changed."""
        for cls, stamp in self._stamps:
            if not stamp or _core.class_stamp(cls) != stamp:
                return False
        return all(getattr(owner, name, self) is part for owner, name, part in self._fields)


def holds(value: Any) -> Callable[[], bool] | None:
    """A function that says whether a settled value is what it was; None for what can't change."""
    held = _Held(value)
    return None if held.is_constant() else held.holds
