# SPDX-License-Identifier: Apache-2.0
"""A walk that comes to each thing once, however many ways lead to it."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class Walk(Generic[T]):
    """Iterates over things, depth first; whoever iterates adds what lies below each of them.

    It owns everything that it has come to, so a key may hold an `id`.

    Args:
        first: Where it begins.
        key: Gives what two things have in common that count as one; None: they are equal.
    """

    def __init__(self, first: Iterable[T], key: Callable[[T], Hashable] | None = None) -> None:
        self._key = key
        self._met: dict[Any, T] = {}
        self._waiting: list[T] = []
        self.add(list(first))

    def add(self, below: Sequence[T]) -> None:
        """Comes to these next, in their order, and then to what waits already."""
        self._waiting.extend(reversed(below))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while self._waiting:
            thing = self._waiting.pop()
            key = thing if self._key is None else self._key(thing)
            if key not in self._met:
                self._met[key] = thing
                return thing
        raise StopIteration
