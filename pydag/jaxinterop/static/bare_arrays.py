# SPDX-License-Identifier: Apache-2.0
"""Arguments that are arrays themselves: each is a variable of its own, also if two are one array.

Wrappers that treat each argument on its own need this: `grad(f, argnums=(0, 1))(x, x)` is two
partial derivatives. An array that a container in another argument holds, too, is one variable.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pydag._core as _core
from pydag.typing import Leaf

from .differentiable import is_ref
from .option import is_array


class Bare:
    """Stands for an array that is an argument, while arguments are flattened."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def separated(arguments: Sequence[Any], leaves_of: Callable[[Any], Iterable[Leaf]]) -> list[Any]:
    """The arguments, with a leaf of its own for each further one that is the same array.

    Args:
        leaves_of: Gives the leaves of a tree.
    """
    if len(arguments) < 2:
        return list(arguments)
    bare = [is_array(argument) and not is_ref(argument) for argument in arguments]
    counts = Counter(id(x) for x, is_bare in zip(arguments, bare, strict=True) if is_bare)
    again = {key for key, count in counts.items() if count > 1}
    if not again:
        return list(arguments)
    others = [x for x, is_bare in zip(arguments, bare, strict=True) if not is_bare]
    again.difference_update(map(id, leaves_of(others)))
    seen: set[int] = set()
    found: list[Any] = []
    for argument in arguments:
        key = id(argument)
        found.append(Bare(argument) if key in again and key in seen else argument)
        seen.add(key)
    return found


def without_bare(leaves: list[Leaf]) -> list[Leaf]:
    """The leaves, with the arrays that stand for themselves."""
    if id(Bare) not in _core.one_of_each_class(leaves):
        return leaves
    return [leaf.array if type(leaf) is Bare else leaf for leaf in leaves]
