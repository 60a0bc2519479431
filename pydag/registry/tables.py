# SPDX-License-Identifier: Apache-2.0
"""Facts about objects, as long as they live: classes, structures, modules.

An object is found by identity, never by `==`, and is not kept alive. A callback at its death is not
enough: a collector that finds it in garbage may clear a weak reference without calling back, and
another object may get its address. So each lookup checks the weak reference.

Threads may read and write at the same time. Reading takes no lock.
"""

import dataclasses
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
Default = TypeVar("Default")


class WeakTable(Generic[Value]):
    """A value for each of some objects; they need neither a hash nor an equality of their own."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[object], Value]] = {}
        self._room = 64  # the number of entries at which dead ones are removed
        # For changes. A garbage collection may call this table again while the lock is held.
        self._lock = threading.RLock()

    def get(self, owner: object, default: Default) -> Value | Default:
        """The value that was set for this very object."""
        found = self._known.get(id(owner))
        return default if found is None or found[0]() is not owner else found[1]

    def set(self, owner: object, value: Value) -> None:
        """Sets the value of an object, replacing an earlier value.

        Raises:
            TypeError: The object can't have weak references.
        """
        known, address, lock = self._known, id(owner), self._lock

        def forget(dead: "weakref.ref[object]") -> None:
            with lock:
                if (found := known.get(address)) is not None and found[0] is dead:
                    del known[address]

        entry = weakref.ref(owner, forget), value
        with lock:
            known[address] = entry
        if len(known) > self._room:
            self._forget_dead()

    def _forget_dead(self) -> None:
        for address in list(self._known):
            with self._lock:
                found = self._known.get(address)
                if found is not None and found[0]() is None:
                    self._known.pop(address, None)
        self._room = 2 * len(self._known) + 64


Answer = TypeVar("Answer")


class ClassTable(WeakTable[Answer]):
    """Asks about each class once, given an instance; finds classes by `is`, never by `==`.

    Keeps no class alive.
    """

    def __init__(self, ask: Callable[[Any], Answer]) -> None:
        super().__init__()
        self._ask = ask

    def of(self, instance: Any) -> Answer:
        """The answer for the class of an object."""
        cls = type(instance)
        known = self._known.get(id(cls))  # like `get`, inlined: this runs for every leaf
        if known is not None and known[0]() is cls:
            return known[1]
        answer = self._ask(instance)
        self.set(cls, answer)
        return answer


Fields = tuple[tuple[str, ...] | None, tuple[str, ...]]
"""Data and meta fields; None: all attributes that an instance has."""
_times = itertools.count()
# When a class was registered, and the function that returns its fields.
_known: WeakTable[tuple[int, Callable[[type], Any] | None]] = WeakTable()


def note_registered(cls: type, fields: Callable[[type], Any] | None = None) -> None:
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
