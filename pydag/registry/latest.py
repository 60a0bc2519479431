# SPDX-License-Identifier: Apache-2.0
"""The order in which classes were registered, and the fields that each declares.

If a class is defined again under the same name, as by running a notebook's cell twice, files use
the new class.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from .weak_table import WeakTable

Fields = tuple[tuple[str, ...] | None, tuple[str, ...]]
"""Data and meta fields; None: all attributes that an instance has."""

_times = itertools.count()
# When a class was registered, and the function that returns its fields.
_known: WeakTable[tuple[int, Callable[[type], Any] | None]] = WeakTable()


def note(cls: type, fields: Callable[[type], Any] | None = None) -> None:
    """Notes that a class was registered just now.

    Args:
        fields: Returns data fields, slots and meta fields. It must not refer to the class.
    """
    _known.set(cls, (next(_times), fields))


def in_order(classes: Iterable[Any]) -> list[Any]:
    """Classes in the order of their registration, unknown classes first."""
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
