# SPDX-License-Identifier: Apache-2.0
"""Facts about objects, as long as they live: classes, structures, modules.

An object is found by identity, never by `==`, and is not kept alive. A callback at its death is not
enough: a collector that finds it in garbage may clear a weak reference without calling back, and
another object may get its address. So each lookup checks the weak reference.

Threads may read and write at the same time. Reading takes no lock.
"""

import threading
import weakref
from typing import Generic, TypeVar

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

    def discard(self, owner: object) -> None:
        """Forgets an object, if it is known."""
        self._forget(id(owner), owner)

    def _forget(self, address: int, owner: object) -> None:
        with self._lock:
            found = self._known.get(address)
            if found is not None and found[0]() is owner:
                self._known.pop(address, None)

    def _forget_dead(self) -> None:
        for address in list(self._known):
            self._forget(address, None)
        self._room = 2 * len(self._known) + 64

    def __len__(self) -> int:
        return len(self._known)
