# SPDX-License-Identifier: Apache-2.0
"""Finds arrays of NumPy and tensors of torch that are the same memory, and those that overlap.

A module's `state_dict()` makes a new tensor for each name at each call, and `array[:]` a new array:
their memory, not their identity, decides whether two of them are one array.
"""

import itertools
import operator
import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.sharing.memory import MemoryKey, memory_of
from pydag.structure.reshared import with_merged_leaves
from pydag.typing import Leaf

from .arrays import of_class
from .tensors import is_class_of, is_tensor_class

_HOST = "cpu"  # the device of NumPy's arrays, as PyTorch calls it
_WORK = 10_000  # for NumPy's answer; it takes overlap for granted where that is not enough


class _Outline:
    """What NumPy takes for an array that is never read."""

    def __init__(self, place: MemoryKey) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (place.address, True),
            "typestr": f"|V{place.itemsize}",
            "shape": place.shape,
            "strides": place.strides,
        }


def _place(leaf: Any) -> MemoryKey | None:
    """Where an array has its numbers; None for one that has none, or keeps them elsewhere.

    On `meta`, where there are none, it is where they would be.
    """
    key = memory_of(leaf, on_meta=True)
    return key if key is not None and key.address else None


class OneEach(NamedTuple):
    """Leaves with different memory, and their structure."""

    leaves: list[Leaf]
    spec: PyDagSpec
    kept: Sequence[int]  # the former number of each leaf
    overlap: tuple[int, int] | None  # two leaves that share bytes, and aren't one array


def one_each(leaves: Sequence[Leaf], spec: PyDagSpec) -> OneEach:
    """Makes leaves that are one memory one leaf. Those without elements have none.

    Args:
        leaves: The leaves of a DAG.
        spec: Its structure.
    """
    same: dict[int, int] = {}  # the number of a leaf that goes, and of the one that stays
    overlap = None
    values = frozenset(_core.value_leaves(spec))  # they have no identity, not even by their memory
    for cluster in _clusters(leaves, values):
        first: dict[MemoryKey, int] = {}
        for i in sorted(cluster):
            place = _place(leaves[i])
            if place is not None and first.setdefault(place, i) != i:
                same[i] = first[place]
        overlap = overlap or first_overlap(first)
    if not same:
        return OneEach(list(leaves), spec, range(len(leaves)), overlap)
    kept = [i for i in range(len(leaves)) if i not in same]
    new = {i: number for number, i in enumerate(kept)}
    if overlap is not None:
        overlap = new[overlap[0]], new[overlap[1]]
    return OneEach([leaves[i] for i in kept], with_merged_leaves(spec, same), kept, overlap)


def first_overlap(leaves: dict[MemoryKey, int]) -> tuple[int, int] | None:
    """The numbers of two of these arrays that have a byte in common."""
    import numpy as np

    shares_memory: Any = np.shares_memory  # older types of NumPy know no bound but 0
    rows = [(*place.span(), i, np.asarray(_Outline(place))) for place, i in leaves.items()]
    rows.sort(key=operator.itemgetter(0))
    for at, (_, high, i, one) in enumerate(rows):
        for low, _, j, other in itertools.islice(rows, at + 1, None):
            if low >= high:
                break
            try:
                is_shared = shares_memory(one, other, max_work=_WORK)
            except np.exceptions.TooHardError:
                is_shared = True
            if is_shared:
                return min(i, j), max(i, j)
    return None


def _clusters(leaves: Sequence[Leaf], skipped: AbstractSet[int]) -> Iterator[list[int]]:
    """Leaves whose spans of memory meet; most have one of their own."""
    spans: dict[str, list[tuple[int, int, int]]] = {}
    are_tensors = of_class(leaves, is_tensor_class)
    are_numpy = of_class(leaves, lambda cls: is_class_of(cls, "numpy", "ndarray"))
    for i, leaf in enumerate(leaves):
        array: Any = leaf
        if i in skipped:
            continue
        if are_numpy[i] and array.flags.c_contiguous:  # most are, and quicker than `_place`
            if array.nbytes:
                start = _core.buffer_address(array)
                spans.setdefault(_HOST, []).append((start, start + array.nbytes, i))
        elif are_numpy[i] or are_tensors[i]:
            place = _place(array)
            if place is not None:
                spans.setdefault(place.device, []).append((*place.span(), i))
    for of_device in spans.values():
        of_device.sort()
        of_device.append((sys.maxsize, 0, -1))  # the end of the last cluster
        cluster: list[int] = []
        end = 0
        for low, high, i in of_device:
            if low >= end:
                if len(cluster) > 1:
                    yield cluster
                cluster = []
            cluster.append(i)
            end = max(end, high)
