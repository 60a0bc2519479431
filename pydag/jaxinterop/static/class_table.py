# SPDX-License-Identifier: Apache-2.0
"""What was found out about classes, by identity, without running any code of theirs."""

import types
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Answer = TypeVar("Answer")

bases_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
"""The classes that a class inherits from, itself first, whatever its metaclass says."""

names_in: Callable[[type], "types.MappingProxyType[str, Any]"] = type.__dict__["__dict__"].__get__
"""What is defined in a class itself, whatever its metaclass says."""


def inherits(cls: type, base: type) -> bool:
    """Whether `cls` is `base` or a class below it; no `__subclasscheck__` is asked."""
    return any(known is base for known in bases_of(cls))


class ClassTable(Generic[Answer]):
    """Asks about each class once, given an instance; finds classes by `is`, never by `==`.

    Keeps no class alive.
    """

    def __init__(self, ask: Callable[[Any], Answer]) -> None:
        self._ask = ask
        self._answers: dict[int, tuple[weakref.ref[type], Answer]] = {}

    def of(self, instance: Any) -> Answer:
        """The answer for the class of an object."""
        cls = type(instance)
        known = self._answers.get(id(cls))
        if known is not None:
            return known[1]
        answer, place, answers = self._ask(instance), id(cls), self._answers
        answers[place] = weakref.ref(cls, lambda _: answers.pop(place, None)), answer
        return answer
