# SPDX-License-Identifier: Apache-2.0
"""Registered classes by their names: `module.qualname`.

What is written to a file names classes; only a class that is registered by the time of reading is
found. Nothing is imported for it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import optree

from pydag import _core

from . import lookup


def class_name(cls: type) -> str:
    """The name under which a class is written."""
    return f"{cls.__module__}.{cls.__qualname__}"


# Typed for one class; without one it gives all of them.
_optree_entries: Any = optree.register_pytree_node.get


def _registered(namespace: str) -> Iterator[Iterable[object]]:
    spaces = ("", namespace)
    yield [cls for space, cls in _core.registered_classes() if space in spaces]
    yield list(_optree_entries(namespace=namespace))
    yield from lookup.fallback_classes()


class ClassNames:
    """The registered classes that a namespace sees: its own, the global ones, and JAX's."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._classes: dict[str, list[type]] = {}
        for group in _registered(namespace):
            for cls in group:
                if isinstance(cls, type):
                    same = self._classes.setdefault(class_name(cls), [])
                    if not any(cls is other for other in same):
                        same.append(cls)

    def knows(self, cls: type) -> bool:
        """Whether this very class is registered."""
        return any(cls is other for other in self._classes.get(class_name(cls), ()))

    def is_ambiguous(self, cls: type) -> bool:
        """Whether another registered class has its name."""
        return any(cls is not other for other in self._classes.get(class_name(cls), ()))

    def find(self, name: str) -> type:
        """The class of that name.

        Raises:
            ValueError: None is registered, or more than one.
        """
        found = self._classes.get(name, [])
        if len(found) == 1:
            return found[0]
        place = f" in namespace {self._namespace!r}" if self._namespace else ""
        if found:
            raise ValueError(f"{len(found)} classes are registered as {name!r}{place}")
        raise ValueError(
            f"no class {name!r} is registered{place}: import the module that registers it first"
        )
