# SPDX-License-Identifier: Apache-2.0
"""A walk that visits each thing once, however many ways lead to it."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class Walk(Generic[T]):
    """Iterates over things, depth first; the loop adds the things below each of them.

    It owns every thing that it has visited, so a key may contain an `id`.

    Args:
        first: The first things.
        key: Things with equal keys count as one; None: equal things do.
    """

    def __init__(self, first: Iterable[T], key: Callable[[T], Hashable] | None = None) -> None:
        self._key = key
        self._met: dict[Any, T] = {}
        self._waiting: list[T] = []
        self.add(list(first))

    def add(self, below: Sequence[T]) -> None:
        """Visits these next, in their order, and then the things that already wait."""
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
