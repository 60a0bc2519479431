# SPDX-License-Identifier: Apache-2.0
"""Searches for arrays that are stored twice, and for matrices that are others transposed.

Arrays of one type and size are compared by a few elements first. Only arrays that agree there are
read.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator

from .compare import (
    are_equal,
    are_equal_parts,
    are_transposed,
    elements,
    equal_classes,
    is_constant,
)
from .finding import Finding, Pairs, grouped, listed, shown, size_text
from .model import Model
from .progress import Bar
from .quantized import Parts
from .stored import Stored

_LEAST = 1024  # bytes of an array that is compared
_FEW, _MANY = 4, 64  # elements


def find_copies(model: Model, pairs: Pairs, bar: Bar) -> Iterator[Finding]:
    """Equal arrays, and transposed ones.

    Args:
        pairs: The pairs that were already reported.
    """
    parts = Parts(model.arrays)
    distinct: dict[Hashable, Stored] = {}
    for name, array in model.arrays.items():
        if array.nbytes >= _LEAST and array.is_plain and not parts.is_more(name):
            distinct.setdefault(array.storage, array)
    buckets = _groups(_apart(distinct.values()), _form)
    few = [group for bucket in buckets for group in _groups(bucket, _print(_FEW))]
    candidates = [
        [array for array in group if not _is_constant(array)]
        for bucket in few
        for group in _groups(bucket, _print(_MANY))
    ]
    bar.expect(sum(array.nbytes for group in candidates for array in group))
    for group in candidates:
        for same in _groups(group, lambda array: array.shape):
            for equal in equal_classes(same, bar):
                yield from _copies(model, equal, parts, pairs, bar)
    yield from _twins(buckets, parts, bar)


def _apart(arrays: Collection[Stored]) -> Iterable[Stored]:
    """The arrays without those that overlap another one: so each byte is read a few times at most.

    What overlaps is reported as such.
    """
    ends: dict[int, int] = {}
    kept = set()
    for array in sorted(arrays, key=lambda array: array.begin):
        if array.begin >= ends.get(id(array.file), 0):
            ends[id(array.file)] = array.begin + array.nbytes
            kept.add(array.storage)
    return (array for array in arrays if array.storage in kept)


def _groups(arrays: Iterable[Stored], key: Callable[[Stored], Hashable]) -> list[list[Stored]]:
    """The arrays that have a key in common, two and more."""
    return [group for group in grouped(arrays, key).values() if len(group) > 1]


def _form(array: Stored) -> Hashable:
    """Equal for arrays that may be equal, or one another transposed."""
    is_matrix = len(array.shape) == 2 and array.itemsize
    return array.dtype, tuple(sorted(array.shape)) if is_matrix else array.shape


def _is_wide(array: Stored) -> bool:
    return len(array.shape) == 2 and bool(array.itemsize) and array.shape[0] < array.shape[1]


def _print(count: int) -> Callable[[Stored], Hashable]:
    """Some elements; of a wide matrix those of the tall one that it is transposed."""
    return lambda array: elements(array, count, is_transposed=_is_wide(array))


def _is_constant(array: Stored) -> bool:
    some = elements(array, _MANY)
    width = array.itemsize or 1
    return some == some[:width] * _MANY and is_constant(array)


def _copies(
    model: Model, equal: list[Stored], parts: Parts, pairs: Pairs, bar: Bar
) -> Iterator[Finding]:
    arrays = model.arrays
    groups: list[list[str]] = []  # weights whose further parts are equal, too
    for name in pairs.left([array.name for array in equal]):
        for group in groups:
            is_one = (parts.module(name) is None) == (parts.module(group[0]) is None)
            if is_one and are_equal_parts(arrays, parts.more(name), parts.more(group[0]), bar):
                group.append(name)
                break
        else:
            groups.append([name])
    for group in groups:
        if len(group) < 2:
            continue
        first, *others = (parts.module(name) or name for name in group)
        whole = [arrays[part] for name in group[1:] for part in parts.whole(name).values()]
        wasted = sum(array.nbytes for array in whole)
        verb, be = ("equals", "is") if len(others) == 1 else ("equal", "are")
        text = f"{listed(others)} {verb} {shown(first)} and {be} stored again: {size_text(wasted)}"
        yield Finding("waste", (first, *others), text, wasted)


def _twins(buckets: Iterable[list[Stored]], parts: Parts, bar: Bar) -> Iterator[Finding]:
    """Matrices that are others transposed."""
    for bucket in buckets:
        if len(bucket[0].shape) != 2 or not bucket[0].itemsize or 1 in bucket[0].shape:
            continue
        first: dict[bytes, Stored] = {}
        for array in bucket:
            if parts.module(array.name) is None:
                first.setdefault(elements(array, _FEW), array)
        reported: set[Hashable] = set()
        for array in first.values():
            other = first.get(elements(array, _FEW, is_transposed=True))
            if other is None or other is array or other.storage in reported:
                continue
            if (
                other.shape == array.shape[::-1]
                and elements(array, _MANY, is_transposed=True) == elements(other, _MANY)
                and not _is_constant(array)
                and not are_equal(array, other, bar)
                and are_transposed(array, other, bar)
            ):
                reported.add(array.storage)
                text = f"{shown(other.name)} is {shown(array.name)}, transposed"
                yield Finding("tie", (array.name, other.name), text)
