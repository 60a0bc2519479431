# SPDX-License-Identifier: Apache-2.0
"""One flat array for the distinct leaves of a DAG, and the way back.

How leaves become one array, and what an array must be to become leaves again, is optree's matter:
it is given the list of distinct leaves.
"""

from collections.abc import Callable
from typing import Any, Unpack

from pydag import _core
from pydag._core import PyDagSpec
from pydag.typing import Dag, FlattenOptions


class Unravel:
    """Puts a flat array back into the DAG that it was made of; what was tied is tied again.

    Equal where structure, shapes and dtypes are, and hashable as optree's functions are.
    """

    __slots__ = ("_spec", "_split")

    def __init__(self, spec: PyDagSpec, split: Callable[[Any], list[Any]]) -> None:
        self._spec, self._split = spec, split

    def __call__(self, flat: Any, /) -> Dag:
        return self._spec.unflatten(self._split(flat))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unravel):
            return NotImplemented
        same = self._spec == other._spec and self._split == other._split
        return same and self._spec.is_same_order(other._spec)

    def __hash__(self) -> int:
        return hash((self._spec, self._split))


def ravel(
    ravel_list: Callable[..., tuple[Any, Callable[[Any], list[Any]]]],
    tree: Dag,
    **options: Unpack[FlattenOptions],
) -> tuple[Any, Unravel]:
    """The array and the way back.

    Args:
        ravel_list: The same for a list of leaves, by optree.
    """
    leaves, spec = _core.flatten(tree, **options)
    flat, split = ravel_list(leaves, is_leaf=lambda x: x is not leaves)
    return flat, Unravel(spec, split)
