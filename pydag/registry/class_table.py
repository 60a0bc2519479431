# SPDX-License-Identifier: Apache-2.0
"""A cache of facts about classes, by identity, which runs no code of the classes."""

import types
from collections.abc import Callable
from typing import Any, TypeVar

from .weak_table import WeakTable

Answer = TypeVar("Answer")

bases_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
"""The classes that a class inherits from, itself first, whatever its metaclass says."""

names_in: Callable[[type], "types.MappingProxyType[str, Any]"] = type.__dict__["__dict__"].__get__
"""What is defined in a class itself, whatever its metaclass says."""


def inherits(cls: type, base: type) -> bool:
    """Whether `cls` is `base` or a class below it; no `__subclasscheck__` is called."""
    return any(known is base for known in bases_of(cls))


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
