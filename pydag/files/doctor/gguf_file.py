# SPDX-License-Identifier: Apache-2.0
"""Reads the header of a GGUF file."""

import io
import math
import struct
from typing import NamedTuple

from .finding import Finding, shown
from .ranges import Range, check_ranges
from .raw import RawFile
from .stored import Container, Stored

MAGIC = b"GGUF"
_MOST_DIMENSIONS = 8
_MOST_BYTES = 1 << 62


class _Type(NamedTuple):
    """A type of numbers: so many of them are stored together in so many bytes."""

    name: str
    block: int
    nbytes: int


_TYPES = {
    number: _Type(*row)
    for number, row in {
        0: ("F32", 1, 4),
        1: ("F16", 1, 2),
        2: ("Q4_0", 32, 18),
        3: ("Q4_1", 32, 20),
        6: ("Q5_0", 32, 22),
        7: ("Q5_1", 32, 24),
        8: ("Q8_0", 32, 34),
        9: ("Q8_1", 32, 36),
        10: ("Q2_K", 256, 84),
        11: ("Q3_K", 256, 110),
        12: ("Q4_K", 256, 144),
        13: ("Q5_K", 256, 176),
        14: ("Q6_K", 256, 210),
        15: ("Q8_K", 256, 292),
        16: ("IQ2_XXS", 256, 66),
        17: ("IQ2_XS", 256, 74),
        18: ("IQ3_XXS", 256, 98),
        19: ("IQ1_S", 256, 50),
        20: ("IQ4_NL", 32, 18),
        21: ("IQ3_S", 256, 110),
        22: ("IQ2_S", 256, 82),
        23: ("IQ4_XS", 256, 136),
        24: ("I8", 1, 1),
        25: ("I16", 1, 2),
        26: ("I32", 1, 4),
        27: ("I64", 1, 8),
        28: ("F64", 1, 8),
        29: ("IQ1_M", 256, 56),
        30: ("BF16", 1, 2),
        34: ("TQ1_0", 256, 54),
        35: ("TQ2_0", 256, 66),
        39: ("MXFP4", 32, 17),
    }.items()
}

# The values in the metadata that have a fixed size, by their type.
_FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _ARRAY, _UNSIGNED = 8, 9, 4
_DEEPEST = 8


class _CutShortError(Exception):
    """The file ends within its header."""


class _Cursor:
    """Reads numbers and text one after the other."""

    def __init__(self, file: RawFile) -> None:
        self._file = io.BufferedReader(file.stream, 1 << 20)
        self._file.seek(0)
        self._left = file.size

    def detach(self) -> None:
        """Gives the file back, which would be closed with this object."""
        self._file.detach()

    def take(self, size: int) -> bytes:
        if size > self._left:
            raise _CutShortError
        self._left -= size
        return self._file.read(size)

    def skip(self, size: int) -> None:
        if size > self._left:
            raise _CutShortError
        self._left -= size
        if size <= 1 << 16:
            self._file.read(size)
        else:
            self._file.seek(size, io.SEEK_CUR)

    def number(self, kind: str) -> int:
        size = struct.calcsize(kind)
        return int(struct.unpack(f"<{kind}", self.take(size))[0])

    def text(self) -> str:
        size = self.number("Q")
        return self.take(size).decode("utf-8", "replace")

    def count(self, what: str, smallest: int) -> int:
        """A number of things, each of which needs some bytes."""
        found = self.number("Q")
        if found * smallest > self._left:
            raise ValueError(f"malformed header: it can't have {found} {what}")
        return found

    @property
    def position(self) -> int:
        return self._file.tell()


def read_gguf(file: RawFile) -> Container:
    """What a GGUF file holds.

    Raises:
        ValueError: Its header can't be read.
    """
    cursor = _Cursor(file)
    found = Container("GGUF", file)
    try:
        _read(found, file, cursor)
    except _CutShortError:
        found.error((), "the file is cut short within its header")
    finally:
        cursor.detach()
    return found


def _read(found: Container, file: RawFile, cursor: _Cursor) -> None:
    cursor.take(len(MAGIC))
    version = cursor.number("I")
    if version not in (2, 3):
        raise ValueError(f"it is a GGUF file of version {version}; versions 2 and 3 can be read")
    number = cursor.count("arrays", 24)
    values = cursor.count("values", 13)
    alignment = 32
    for _ in range(values):
        key, kind = cursor.text(), cursor.number("I")
        if key == "general.alignment" and kind == _UNSIGNED:
            alignment = cursor.number("I")
        elif key == "general.architecture" and kind == _TEXT:
            found.metadata[key] = cursor.text()
        else:
            _skip_value(cursor, kind, 0)
    if not alignment:
        raise ValueError("malformed header: an alignment of 0 bytes")
    rows = [_info(cursor) for _ in range(number)]
    found.named = {name for name, *_ in rows}
    start = -(-cursor.position // alignment) * alignment
    ranges, seen = [], set()
    for name, shape, kind, offset in rows:
        if name in seen:
            found.error((name,), f"{shown(name)} is stored twice")
            continue
        seen.add(name)
        known = _TYPES.get(kind)
        if known is None:
            found.findings.append(
                Finding("doubt", (name,), f"{shown(name)} has the type {kind}, which is unknown")
            )
            continue
        size = math.prod(shape)
        if size > _MOST_BYTES or offset > _MOST_BYTES or (shape and shape[-1] % known.block):
            found.error((name,), f"{shown(name)} has no shape of whole blocks: {list(shape)[:8]}")
            continue
        nbytes = size // known.block * known.nbytes
        ranges.append(Range(name, offset, offset + nbytes))
        if start + offset + nbytes <= file.size:
            itemsize = known.nbytes if known.block == 1 else 0
            place = start + offset
            found.arrays[name] = Stored(
                name,
                known.name,
                shape,
                file,
                place,
                nbytes,
                itemsize,
                True,
                (file.path, place, name),
            )
    room = max(file.size - start, 0)
    found.findings.extend(check_ranges(ranges, room, is_dense=False))


def _info(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    """Name, shape, type and offset of an array. The first length is that of the last axis."""
    name, dimensions = cursor.text(), cursor.number("I")
    if dimensions > _MOST_DIMENSIONS:
        raise ValueError(f"malformed header: {shown(name)} has {dimensions} dimensions")
    shape = tuple(cursor.number("Q") for _ in range(dimensions))[::-1]
    return name, shape, cursor.number("I"), cursor.number("Q")


def _skip_value(cursor: _Cursor, kind: int, depth: int) -> None:
    if kind in _FIXED:
        cursor.skip(_FIXED[kind])
    elif kind == _TEXT:
        cursor.skip(cursor.number("Q"))
    elif kind == _ARRAY and depth < _DEEPEST:
        inner = cursor.number("I")
        count = cursor.count("items in a list", _FIXED.get(inner, 8))
        if inner in _FIXED:
            cursor.skip(count * _FIXED[inner])
        else:
            for _ in range(count):
                _skip_value(cursor, inner, depth + 1)
    else:
        raise ValueError(f"malformed header: a value of the type {kind}")
