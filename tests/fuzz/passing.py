# SPDX-License-Identifier: Apache-2.0
"""Classes that nobody else has, whose flatten functions take them out of the registry.

Until a walk is over no structure knows such a class. So nothing but the walk itself keeps the
registration by which it opens an instance.
"""

import contextlib
import random
from collections.abc import Callable
from typing import Any

import optree
import specimens as sp

import pydag


class Passing:
    """Instances are of classes that nobody else has, and that die with them."""


def is_passing(obj: Any) -> bool:
    """Whether an object's class is one that passes."""
    return issubclass(type(obj), Passing)


class Passers:
    """The classes of a round.

    Args:
        rng: All choices come from it.
        spring: Called by their functions; it may raise.
    """

    def __init__(self, rng: random.Random, spring: Callable[[], None]) -> None:
        self.rng, self.spring = rng, spring
        self._with_optree: set[type] = set()  # which keeps what it knows alive
        self._junk: list[bytes] = []

    def make(self, child: Any) -> Any:
        """An instance of a new class, registered in one way or the other."""
        slots = self.rng.random() < 0.4
        cls: Any = type("Passed", (Passing,), {"__slots__": ("x", "y")} if slots else {})
        self.register(cls)
        made = cls()
        made.x = child
        return made

    def register(self, cls: Any) -> None:
        """Registers a class by its fields or by functions, here or with optree."""
        how = self.rng.random()
        with contextlib.suppress(ValueError):  # it is registered
            if how < 0.4:
                pydag.register_fields(cls)
            elif how < 0.7:
                pydag.register_pydag_node(cls, *self._functions(cls))
            else:
                optree.register_pytree_node(cls, *self._functions(cls), namespace=sp.NAMESPACE)
                self._with_optree.add(cls)

    def unregister(self, cls: Any) -> None:
        """Takes a class out, and mostly puts it in in another way."""
        with contextlib.suppress(ValueError):
            pydag.unregister_pydag_node(cls)
        if cls in self._with_optree:
            self._with_optree.discard(cls)
            optree.unregister_pytree_node(cls, namespace=sp.NAMESPACE)
        if self.rng.random() < 0.7:
            self.register(cls)

    def end(self) -> None:
        """Takes out what optree would keep for ever."""
        while self._with_optree:
            optree.unregister_pytree_node(self._with_optree.pop(), namespace=sp.NAMESPACE)

    def _functions(self, cls: type) -> tuple[Any, Any]:
        # A function that named its class would keep it alive for as long as it is registered.
        def flatten(obj: Any) -> Any:
            self.spring()
            if self.rng.random() < 0.3:
                self._forget(type(obj))
            return (getattr(obj, "x", 1), [2]), self._number(obj)

        return flatten, lambda _, below: [*below]

    def _number(self, obj: Any) -> Any:
        return self.rng.choice([None, 1, "aux", (1, 2)])

    def _forget(self, cls: type) -> None:
        """Has pydag let go of the registration of a class, and uses the memory that was freed."""
        how = self.rng.randrange(4)
        if how == 0:
            self.unregister(cls)
        elif how == 1:
            pydag.clear_caches()
        elif how == 2:
            self.unregister(cls)
            pydag.clear_caches()
        else:  # the import of a library that registers classes
            for _ in range(self.rng.choice([1, 20])):
                other = type("Imported", (), {})
                optree.register_pytree_node(other, lambda _: ((), 0), _same, namespace="imported")
                optree.unregister_pytree_node(other, namespace="imported")
        with contextlib.suppress(ValueError):
            pydag.dag_leaves([], namespace=self.rng.choice(["", sp.NAMESPACE]))
        self._junk = [bytes(size) for size in range(32, 700, 4)]


def _same(aux: Any, children: Any) -> Any:
    return children
