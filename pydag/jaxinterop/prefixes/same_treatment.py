# SPDX-License-Identifier: Apache-2.0
"""Treatments that are written differently and mean the same for an array of so many dimensions."""

from typing import Any

from jax.sharding import NamedSharding, PartitionSpec

from pydag.typing import Leaf


def _ndim(leaf: Leaf) -> int:
    return int(getattr(leaf, "ndim", 0))


def _is_one_axis(first: Any, second: Any, ndim: int) -> bool:
    """Whether two axes are one; negative ones count from the end."""
    if first is None or second is None:
        return first is second
    both = (first, second)
    return len({axis + ndim if -ndim <= axis < 0 else axis for axis in both}) == 1


def is_one_axis_in(first: Any, second: Any, leaf: Leaf) -> bool:
    """Whether two axes of an array that is mapped over are one."""
    return _is_one_axis(first, second, _ndim(leaf))


def is_one_axis_out(first: Any, second: Any, leaf: Leaf) -> bool:
    """Whether two axes of a mapped result are one; it gets one dimension more."""
    return _is_one_axis(first, second, _ndim(leaf) + 1)


def _written_out(spec: Any, ndim: int) -> list[Any]:
    """What a PartitionSpec says of each dimension."""
    parts = [() if part is None else part for part in (() if spec is None else spec)]
    parts += [()] * (ndim - len(parts))
    return [part if isinstance(part, tuple) else (part,) for part in parts]


def is_one_sharding(first: Any, second: Any, leaf: Leaf) -> bool:
    """Whether two shardings, or two PartitionSpecs, are one for an array."""
    if first is None or second is None or first == second:
        return bool(first == second)
    if isinstance(first, NamedSharding) and isinstance(second, NamedSharding):
        homes = [(s.mesh, s.memory_kind) for s in (first, second)]
        return homes[0] == homes[1] and is_one_sharding(first.spec, second.spec, leaf)
    if isinstance(first, PartitionSpec) and isinstance(second, PartitionSpec):
        return _written_out(first, _ndim(leaf)) == _written_out(second, _ndim(leaf))
    return False
