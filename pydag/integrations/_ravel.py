# SPDX-License-Identifier: Apache-2.0
"""One flat array for the distinct leaves of a DAG, and the way back.

Leaves that aren't data are left out of the array, and unchanged in the result of the way back.

optree turns the list of distinct leaves into one array and back, and checks the array.
"""

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.typing import Dag, FlattenOptions, Leaf


class Unravel:
    """Puts a flat array back into the DAG that it was made from, with the same sharing.

    Equal if structure, shapes and dtypes are, and hashable like optree's functions.

    Args:
        kept: The number of each leaf that isn't data, and the leaf.
    """

    __slots__ = ("_kept", "_spec", "_split")

    def __init__(
        self, spec: PyDagSpec, split: Callable[[Any], list[Any]], kept: Sequence[tuple[int, Any]]
    ) -> None:
        self._spec, self._split, self._kept = spec, split, tuple(kept)

    def __call__(self, flat: Any, /) -> Dag:
        leaves = self._split(flat)
        for i, leaf in self._kept:
            leaves.insert(i, leaf)
        return self._spec.unflatten(leaves)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unravel):
            return NotImplemented
        same = self._spec == other._spec and self._split == other._split
        same = same and _core.is_same_value(self._kept, other._kept)
        return same and self._spec.is_same_order(other._spec)

    def __hash__(self) -> int:
        return hash((self._spec, self._split, _core.value_hash(self._kept)))


def ravel(
    ravel_list: Callable[..., tuple[Any, Callable[[Any], list[Any]]]],
    tree: Dag,
    kept: Callable[[list[Leaf], PyDagSpec], Sequence[tuple[int, Any]]] = lambda _, __: (),
    **options: Unpack[FlattenOptions],
) -> tuple[Any, Unravel]:
    """The array and the way back."""
    leaves, spec = _core.flatten(tree, **options)
    others = kept(leaves, spec)
    skipped = {i for i, _ in others}
    data = [leaf for i, leaf in enumerate(leaves) if i not in skipped]
    flat, split = ravel_list(data, is_leaf=lambda x: x is not data)
    return flat, Unravel(spec, split, others)
