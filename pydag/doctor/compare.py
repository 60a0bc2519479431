# SPDX-License-Identifier: Apache-2.0
"""Compares the bytes of arrays, piece by piece. Holes that all of them have aren't read."""

import functools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydag.files.arrays import numpy_dtype

from .progress import Bar
from .stored import Stored

_FIRST = 1 << 14  # bytes of the first piece: arrays that differ mostly do so there
_PIECE = 1 << 20
_BLOCKS, _IN_BLOCK = 64, 64  # of a sample of values
_TILE = 1 << 10  # rows and columns that are transposed at once
_SEED = 0  # every array of a shape is looked at in the same places


def _pieces(nbytes: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each piece."""
    begin, size = 0, _FIRST
    while begin < nbytes:
        yield begin, min(begin + size, nbytes)
        begin, size = begin + size, _PIECE


def equal_classes(arrays: Sequence[Stored], bar: Bar) -> list[list[Stored]]:
    """Those of the arrays that have the same bytes, in groups of two and more.

    Args:
        arrays: Arrays of one size.
        bar: Counts the bytes that were read.
    """
    classes = [list(arrays)]
    for begin, end in _pieces(arrays[0].nbytes):
        new: list[list[Stored]] = []
        for members in classes:
            if all(array.is_hole(begin, end) for array in members):
                new.append(members)
                bar.update((end - begin) * len(members))
                continue
            seen: list[tuple[bytes, list[Stored]]] = []
            for array in members:
                piece = array.read(begin, end - begin)
                bar.update(end - begin)
                own = next((own for other, own in seen if piece == other), None)
                if own is None:
                    own = []
                    seen.append((piece, own))
                own.append(array)
            new.extend(own for _, own in seen if len(own) > 1)
        classes = new
        if not classes:
            break
    return classes


def are_comparable(a: Stored, b: Stored) -> bool:
    """Whether two arrays have one type and shape, and elements that lie in order."""
    return (a.dtype, a.shape) == (b.dtype, b.shape) and a.is_plain and b.is_plain


def are_equal(a: Stored, b: Stored, bar: Bar) -> bool:
    """Whether two arrays agree in type, shape and bytes."""
    return are_comparable(a, b) and (a.nbytes == 0 or bool(equal_classes([a, b], bar)))


def are_equal_parts(
    arrays: Mapping[str, Stored], one: Mapping[str, str], other: Mapping[str, str], bar: Bar
) -> bool:
    """Whether two weights have the same parts, all of them equal."""
    return one.keys() == other.keys() and all(
        are_equal(arrays[name], arrays[other[part]], bar) for part, name in one.items()
    )


def is_constant(array: Stored) -> bool:
    """Whether all elements have the same bytes."""
    width = array.itemsize or 1
    first = array.read(0, width)
    for begin, end in _pieces(array.nbytes):
        if array.is_hole(begin, end):
            if any(first):
                return False
            continue
        piece = array.read(begin, end - begin)
        if piece != first * (len(piece) // width):
            return False
    return True


def elements(array: Stored, count: int, is_transposed: bool = False) -> bytes:
    """The bytes of some elements, the same ones for all arrays of a shape.

    Args:
        count: How many.
        is_transposed: Whether to read the elements that the transposed array has in these places.
    """
    width = array.itemsize or 1
    is_matrix = len(array.shape) == 2 and array.itemsize
    shape = array.shape if is_matrix else (array.nbytes // width, 1)
    places = _places(*shape, count, is_transposed)
    if array.nbytes <= _FIRST:  # one read is quicker then
        whole = array.read(0, array.nbytes)
        return b"".join(whole[place * width : place * width + width] for place in places)
    return b"".join(array.read(place * width, width) for place in places)


@functools.lru_cache(256)
def _places(rows: int, columns: int, count: int, is_transposed: bool) -> list[int]:
    choose = random.Random(_SEED)
    sides = (columns, rows) if is_transposed else (rows, columns)
    pairs = [tuple(map(choose.randrange, sides)) for _ in range(count)]
    return [j * columns + i if is_transposed else i * columns + j for i, j in pairs]


def are_transposed(a: Stored, b: Stored, bar: Bar) -> bool:
    """Whether one matrix is exactly the transpose of the other."""
    import numpy as np

    rows, columns = a.shape
    dtype = np.dtype(f"V{a.itemsize}" if a.itemsize not in (1, 2, 4, 8) else f"u{a.itemsize}")
    step = max(1, min(_TILE, (1 << 24) // (rows * a.itemsize) or 1))
    for begin in range(0, columns, step):
        end = min(begin + step, columns)
        part = b.read(begin * rows * b.itemsize, (end - begin) * rows * b.itemsize)
        other = np.frombuffer(part, dtype).reshape(end - begin, rows)
        for row in range(0, rows, _TILE):
            own = _tile(a, row, min(row + _TILE, rows), begin, end, dtype)
            if not (own == other[:, row : row + _TILE].T).all():
                return False
        bar.update(2 * (end - begin) * rows * b.itemsize)
    return True


def _tile(array: Stored, low: int, high: int, begin: int, end: int, dtype: Any) -> Any:
    """Some rows and columns of a matrix."""
    import numpy as np

    columns, width = array.shape[1], array.itemsize
    if (end - begin) * 4 > columns:  # whole rows are quicker then
        part = array.read(low * columns * width, (high - low) * columns * width)
        return np.frombuffer(part, dtype).reshape(high - low, columns)[:, begin:end]
    rows = [
        array.read((row * columns + begin) * width, (end - begin) * width)
        for row in range(low, high)
    ]
    return np.frombuffer(b"".join(rows), dtype).reshape(high - low, end - begin)


def correlation(a: Stored, b: Stored) -> float | None:
    """How a sample of two arrays correlates; None where they have no numbers, or no spread.

    Args:
        b: An array of the same shape, or of the transposed one.
    """
    import numpy as np

    try:
        if a.shape == b.shape:
            first, second = _sample(a), _sample(b)
        else:
            count = _BLOCKS * 8
            first = _decoded(elements(a, count), a.dtype)
            second = _decoded(elements(b, count, is_transposed=True), b.dtype)
    except (ValueError, ImportError):
        return None
    is_known = np.isfinite(first) & np.isfinite(second)
    first, second = first[is_known], second[is_known]
    if not first.size:
        return None
    first, second = first - first.mean(), second - second.mean()
    spread = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / spread if spread > 0 and math.isfinite(spread) else None


def _sample(array: Stored) -> Any:
    choose = random.Random(_SEED)
    count = min(_IN_BLOCK, array.size)
    starts = sorted(choose.randrange(array.size - count + 1) for _ in range(_BLOCKS))
    width = array.itemsize
    found = b"".join(array.read(start * width, count * width) for start in starts)
    return _decoded(found, array.dtype)


def _decoded(data: bytes, dtype: str) -> Any:
    import numpy as np

    found = np.frombuffer(data, numpy_dtype(dtype))
    if found.dtype.kind == "c":
        found = found.real
    with np.errstate(all="ignore"):
        return found.astype(np.float64)


def are_equal_as_narrower(a: Stored, b: Stored) -> bool:
    """Whether two arrays of floats are equal once the wider is rounded to the narrower type."""
    import numpy as np

    if a.shape != b.shape or not (a.is_plain and b.is_plain and a.itemsize and b.itemsize):
        return False
    wide, narrow = (a, b) if a.itemsize >= b.itemsize else (b, a)
    try:
        types = numpy_dtype(wide.dtype), numpy_dtype(narrow.dtype)
    except (ValueError, ImportError):
        return False
    step = _PIECE // wide.itemsize
    for begin in range(0, wide.size, step):
        count = min(step, wide.size - begin)
        first, second = (
            np.frombuffer(x.read(begin * x.itemsize, count * x.itemsize), dtype)
            for x, dtype in zip((wide, narrow), types, strict=True)
        )
        with np.errstate(all="ignore"):
            if first.astype(types[1]).tobytes() != second.tobytes():
                return False
    return True
