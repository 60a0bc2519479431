# SPDX-License-Identifier: Apache-2.0
"""Items taken out of a sequence, and put in, by position."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

from pydag.typing import Leaf

Picker = Callable[[Sequence[Leaf]], Sequence[Leaf]]


def put_in(items: Iterable[Any], others: Iterable[tuple[int, Any]]) -> list[Any]:
    """The items, with others among them: each where it stands in the result, in ascending order."""
    rest, found = iter(items), list[Any]()
    for position, other in others:
        found.extend(islice(rest, position - len(found)))
        found.append(other)
    found.extend(rest)
    return found


def picker(positions: Sequence[int], count: int) -> Picker:
    """Takes the items at `positions` out of a sequence of length `count`, without a loop."""
    if len(positions) == count:
        return lambda items: items
    if not positions:
        return lambda items: ()
    if len(positions) == positions[-1] - positions[0] + 1:
        span = slice(positions[0], positions[-1] + 1)
        return lambda items: items[span]
    return itemgetter(*positions)
