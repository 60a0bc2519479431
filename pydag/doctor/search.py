# SPDX-License-Identifier: Apache-2.0
"""Searches for arrays that are stored twice, and for matrices that are others transposed.

A few bytes of each array are read first. Only arrays that agree there are read further.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from operator import attrgetter

from pydag.arrays.names import grouped

from .compare import (
    are_equal,
    are_equal_parts,
    are_transposed,
    elements,
    equal_classes,
    is_constant,
    place_inside,
)
from .finding import Finding, ReportedPairs, listed, shown, size_text
from .model import Model
from .progress import Bar
from .quantized import QuantizedWeights
from .raw import RawFile, expect
from .stored import Stored

_LEAST = 1024  # bytes of an array that is compared
_PRINT = 64  # bytes that are read first, from the middle
_FEW = 4  # elements


def find_copies(model: Model, pairs: ReportedPairs, bar: Bar) -> Iterator[Finding]:
    """Equal arrays, and transposed ones."""
    parts = model.parts
    distinct: dict[Hashable, Stored] = {}
    for name, array in model.arrays.items():
        if array.nbytes >= _LEAST and array.is_plain and not parts.is_more(name):
            distinct.setdefault(array.storage, array)
    kinds = grouped(_apart(distinct.values()), attrgetter("dtype", "shape")).values()
    buckets = [
        bucket
        for bucket in grouped(kinds, lambda own: _form(own[0])).values()
        if len(bucket) > 1 or len(bucket[0]) > 1
    ]
    several = [own for bucket in buckets for own in bucket]
    prints = _prints(several)
    constant: set[str] = set()
    candidates = []
    for own in several:
        for group in _groups(own, lambda array: prints[array.name]):
            constant.update(array.name for array in group if is_constant(array))
            candidates.append([array for array in group if array.name not in constant])
    bar.expect(sum(array.nbytes for group in candidates for array in group))
    for group in candidates:
        for equal in equal_classes(group, bar) if group else ():
            yield from _copies(model, equal, parts, pairs, bar)
    for bucket in buckets:
        first, last = bucket[0][0], bucket[-1][0]
        if first.is_matrix and min(first.shape) > 1 and first.shape == last.shape[::-1]:
            arrays = (array for own in bucket for array in own if array.name not in constant)
            weights = [array for array in arrays if parts.module(array.name) is None]
            for group in _groups(weights, lambda array: prints[array.name][: array.itemsize]):
                yield from _twins(group, bar)


def _apart(arrays: Collection[Stored]) -> Iterable[Stored]:
    """The arrays without those that overlap another one: so each byte is read a few times at most.

    What overlaps is reported as such.
    """
    ends: dict[RawFile, int] = {}
    kept = set()
    for array in sorted(arrays, key=attrgetter("begin")):
        if array.begin >= ends.get(array.file, 0):
            ends[array.file] = array.begin + array.nbytes
            kept.add(array.storage)
    return (array for array in arrays if array.storage in kept)


def _groups(arrays: Iterable[Stored], key: Callable[[Stored], Hashable]) -> list[list[Stored]]:
    """The arrays that have a key in common, two and more."""
    return [group for group in grouped(arrays, key).values() if len(group) > 1]


def _form(array: Stored) -> Hashable:
    """Equal for arrays that may be equal, or one another transposed."""
    return array.dtype, tuple(sorted(array.shape)) if array.is_matrix else array.shape


def _prints(kinds: Iterable[list[Stored]]) -> dict[str, bytes]:
    """A few bytes of each array, by its name; of a matrix from an element of its transpose on."""
    places = [(place_inside(own[0], 1, 2), own) for own in kinds]
    expect((array.file, array.begin + begin, _PRINT) for begin, own in places for array in own)
    return {array.name: array.read(begin, _PRINT) for begin, own in places for array in own}


def _copies(
    model: Model, equal: list[Stored], parts: QuantizedWeights, pairs: ReportedPairs, bar: Bar
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


def _twins(arrays: Collection[Stored], bar: Bar) -> Iterator[Finding]:
    """Matrices that are others transposed, of some that agree in one element."""
    places = {array.name: (place_inside(array, 1, 3), array.itemsize) for array in arrays}
    expect((array.file, array.begin + places[array.name][0], array.itemsize) for array in arrays)
    for group in _groups(arrays, lambda array: array.read(*places[array.name])):
        first: dict[bytes, Stored] = {}
        for array in group:
            first.setdefault(elements(array, _FEW), array)
        reported: set[Hashable] = set()
        for array in first.values():
            other = first.get(elements(array, _FEW, is_transposed=True))
            if other is None or other is array or other.storage in reported or is_constant(array):
                continue
            if not are_equal(array, other, bar) and are_transposed(array, other, bar):
                reported.add(array.storage)
                text = f"{shown(other.name)} is {shown(array.name)}, transposed"
                yield Finding("tie", (array.name, other.name), text)
