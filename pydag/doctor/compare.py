# SPDX-License-Identifier: Apache-2.0
"""Compares the bytes of arrays, piece by piece. Holes that all of them have aren't read."""

import functools
import math
import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from pydag.arrays.bytes import numpy_dtype
from pydag.arrays.names import paired

from .progress import Bar
from .stored import Stored

_FIRST = 1 << 14  # bytes of the first piece: arrays that differ mostly do so there
_PIECE = 1 << 20
_MEMORY = 1 << 24  # bytes of all pieces that are compared at once
_SEVERAL = 8  # arrays whose pieces are compared one by one
_BLOCKS, _IN_BLOCK, _ELEMENTS = 64, 64, 512  # of a sample of values
_TILE = 1 << 10  # rows and columns that are transposed at once
_STEP = 1 << 16  # numbers that are subtracted at once, which the processor's cache holds
_SOME = 64  # elements that are compared before all of them
_SEED = 0  # every array of a shape is looked at in the same places


def equal_classes(arrays: Sequence[Stored], bar: Bar) -> list[list[Stored]]:
    """Those of the arrays that have the same bytes, in groups of two and more.

    Args:
        arrays: Arrays of one size, not none.
        bar: Counts the bytes that were read.
    """
    found: list[list[Stored]] = []
    left = [(list(arrays), 0, _FIRST)]
    while left:
        members, begin, size = left.pop()
        if (nbytes := members[0].nbytes) == begin:
            found.append(members)
            continue
        end = min(begin + max(1, min(size, _MEMORY // len(members))), nbytes)
        classes = [members]
        if not all(array.is_hole(begin, end) for array in members):
            pieces = [array.read(begin, end - begin) for array in members]
            keys: Sequence[Hashable] = pieces
            if len(members) <= _SEVERAL:  # to hash them would take longer
                keys = [pieces.index(piece) for piece in pieces]
            classes = list(paired(keys, members).values())
        bar.update((end - begin) * len(members))
        more = [(own, end, min(2 * size, _PIECE)) for own in classes if len(own) > 1]
        left.extend(reversed(more))
    return found


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
    begin, size, first = 0, _FIRST - _FIRST % width, b""
    while begin < array.nbytes:
        if not any(first) and array.is_hole(begin, array.nbytes):
            return True
        piece = array.read(begin, min(size, array.nbytes - begin))
        first = first or piece[:width]
        if piece != first * (len(piece) // width):
            return False
        begin, size = begin + size, _PIECE - _PIECE % width
    return True


def _sides(array: Stored) -> tuple[int, ...]:
    """The rows and columns of a matrix; another array has one column."""
    return array.shape if array.is_matrix else (array.nbytes // (array.itemsize or 1), 1)


def place_inside(array: Stored, part: int, parts: int) -> int:
    """Where an element begins that lies in some part of an array.

    A matrix and its transpose have the same element there.
    """
    rows, columns = _sides(array)
    return (rows * part // parts * columns + columns * part // parts) * (array.itemsize or 1)


def elements(array: Stored, count: int, is_transposed: bool = False) -> bytes:
    """The bytes of some elements, the same ones for all arrays of a shape.

    Args:
        is_transposed: Whether to read the elements that the transposed array has in these places.
    """
    width = array.itemsize or 1
    rows, columns = _sides(array)
    places = _places(rows, columns, count, is_transposed)
    if array.nbytes <= _FIRST:  # one read is quicker then
        whole = array.read(0, array.nbytes)
        return b"".join(whole[place * width : place * width + width] for place in places)
    return b"".join(array.read_parts([(place * width, width) for place in places]))


@functools.lru_cache(256)
def _places(rows: int, columns: int, count: int, is_transposed: bool) -> list[int]:
    choose = random.Random(_SEED)
    sides = (columns, rows) if is_transposed else (rows, columns)
    pairs = [tuple(map(choose.randrange, sides)) for _ in range(count)]
    return [j * columns + i if is_transposed else i * columns + j for i, j in pairs]


def are_transposed(a: Stored, b: Stored, bar: Bar) -> bool:
    """Whether one matrix is exactly the transpose of the other."""
    import numpy as np

    if not a.is_matrix or not a.size or (a.dtype, a.shape) != (b.dtype, b.shape[::-1]):
        return False
    if elements(a, _SOME) != elements(b, _SOME, is_transposed=True):
        return False
    dtype = np.dtype(f"V{a.itemsize}" if a.itemsize not in (1, 2, 4, 8) else f"u{a.itemsize}")
    one, other = (x.file.mapped(x.begin, x.nbytes).view(dtype).reshape(x.shape) for x in (a, b))
    for row in range(0, a.shape[0], _TILE):
        for column in range(0, a.shape[1], _TILE):
            own = one[row : row + _TILE, column : column + _TILE]
            if not (own == other[column : column + _TILE, row : row + _TILE].T).all():
                return False
            bar.update(2 * own.nbytes)
    return True


def correlation(a: Stored, b: Stored) -> float | None:
    """How a sample of two arrays correlates; None where they have no numbers, or no spread.

    Args:
        b: An array of the same shape, or of the transposed one.
    """
    import numpy as np

    if not (dtypes := _dtypes(a, b)):
        return None
    if a.shape == b.shape:
        samples = [_blocks(a), _blocks(b)]
    else:
        samples = [elements(a, _ELEMENTS), elements(b, _ELEMENTS, is_transposed=True)]
    with np.errstate(all="ignore"):
        first, second = (
            _floats(np.frombuffer(sample, dtype)).astype(np.float64)
            for sample, dtype in zip(samples, dtypes, strict=True)
        )
    is_known = np.isfinite(first) & np.isfinite(second)
    if not is_known.any():
        return None
    first, second = (own[is_known] - own[is_known].mean() for own in (first, second))
    spread = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / spread if spread > 0 and math.isfinite(spread) else None


def _blocks(array: Stored) -> bytes:
    """Elements of an array, some in each of a few places."""
    choose = random.Random(_SEED)
    count = min(_IN_BLOCK, array.size)
    starts = sorted(choose.randrange(array.size - count + 1) for _ in range(_BLOCKS))
    width = array.itemsize
    return b"".join(array.read_parts([(start * width, count * width) for start in starts]))


def largest_difference(a: Stored, b: Stored, bar: Bar) -> float | None:
    """The largest distance of two numbers in one place; None where it isn't known.

    Numbers that aren't finite don't count.
    """
    import numpy as np

    largest = None
    for one, other in _in_step(a, b, _STEP):
        with np.errstate(all="ignore"):
            found = float(np.fmax.reduce(np.abs(_floats(one) - _floats(other))))
        if math.isfinite(found):
            largest = max(found, largest or 0.0)
        bar.update(one.nbytes + other.nbytes)
    return largest


def are_equal_as_narrower(a: Stored, b: Stored) -> bool:
    """Whether two arrays of floats are equal once the wider is rounded to the narrower type."""
    import numpy as np

    wide, narrow = (a, b) if a.itemsize >= b.itemsize else (b, a)
    if a.shape != b.shape or not _dtypes(a, b):
        return False
    for one, other in _in_step(wide, narrow, _PIECE // wide.itemsize):
        with np.errstate(all="ignore"):
            if one.astype(other.dtype).tobytes() != other.tobytes():
                return False
    return True


def _dtypes(a: Stored, b: Stored) -> list[Any]:
    """NumPy's types of the numbers of two arrays; none if it can't read both of them."""
    try:
        return [numpy_dtype(x.dtype) for x in (a, b)] if a.is_plain and b.is_plain else []
    except (ValueError, ImportError):
        return []


def _in_step(a: Stored, b: Stored, count: int) -> Iterator[list[Any]]:
    """The numbers of two arrays of one shape, so many at once; nothing of others."""
    import numpy as np

    dtypes = _dtypes(a, b)
    for begin in range(0, a.size, count) if dtypes and a.shape == b.shape else ():
        size = min(count, a.size - begin)
        pieces = (x.read(begin * x.itemsize, size * x.itemsize) for x in (a, b))
        yield list(map(np.frombuffer, pieces, dtypes))


def _floats(numbers: Any) -> Any:
    """Numbers as floats that are exact, or as exact as Python's."""
    import numpy as np

    if numbers.dtype == np.float16:
        return _halves().take(numbers.view(np.uint16), mode="wrap")
    is_short = numbers.itemsize < 4 or numbers.dtype == np.float32
    return numbers.astype(np.float32 if is_short else np.float64)


@functools.cache
def _halves() -> Any:
    """Each number of 16 bits: to look them up is three times as fast as to convert them."""
    import numpy as np

    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
