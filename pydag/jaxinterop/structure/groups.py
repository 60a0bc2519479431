# SPDX-License-Identifier: Apache-2.0
"""Items in groups, such as the leaves for each of several treatments, and in order again."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def grouped(items: Iterable[T], order: Sequence[int], count: int) -> list[list[T]]:
    """The items of each group.

    Args:
        order: For each item, which of `count` groups it is in.
    """
    groups: list[list[T]] = [[] for _ in range(count)]
    for group, item in zip(order, items, strict=True):
        groups[group].append(item)
    return groups


def in_order(groups: Iterable[Iterable[T]], order: Iterable[int]) -> list[T]:
    """The items that `grouped` was given."""
    waiting = list(map(iter, groups))
    return [next(waiting[group]) for group in order]
