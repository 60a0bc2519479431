# SPDX-License-Identifier: Apache-2.0
"""In which order classes were registered here, and which fields each declares.

A class that is defined anew under the same name, as where a notebook's cell is run twice, takes the
old one's place in files.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from .weak_table import WeakTable

Fields = tuple[tuple[str, ...] | None, tuple[str, ...]]
"""Data and meta fields; None: all attributes that an instance has."""

_times = itertools.count()
# When a class was registered, and what tells its fields.
_known: WeakTable[tuple[int, Callable[[type], Any] | None]] = WeakTable()


def note(cls: type, fields: Callable[[type], Any] | None = None) -> None:
    """Notes that a class was registered just now.

    Args:
        fields: Gives data fields, slots and meta fields. It must not hold the class.
    """
    _known.set(cls, (next(_times), fields))


def in_order(classes: Iterable[Any]) -> list[Any]:
    """Classes in the order of their registration; first those of which nothing is known."""
    return sorted(classes, key=lambda cls: _known.get(cls, (-1, None))[0])


def declared_fields(cls: type) -> Fields:
    """The fields that a class declares."""
    fields = _known.get(cls, (-1, None))[1]
    if fields is not None:
        data, _, meta, *_ = fields(cls)
        return data, meta
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls)), ()
    return None, ()
