# SPDX-License-Identifier: Apache-2.0
"""Reads the header of a GGUF file, part by part, and trusts none of its numbers.

The `gguf` package would make an object for each item of each list, and checks no length.
"""

import math
import struct
from collections import Counter
from collections.abc import Iterable

from .finding import Finding, shown
from .raw import RawFile
from .stored import MOST_BYTES, Container

MAGIC = b"GGUF"
_MOST_DIMENSIONS = 8
# The values in the metadata that have a fixed size, by their type.
_FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_UNSIGNED, _TEXT, _LIST = 4, 8, 9

# A header beyond these limits is refused: each item takes memory, or time, beyond its bytes.
_LONGEST_NAME = (1 << 16) - 1  # by the format
_MOST_NAMES = 1 << 24  # bytes of all names
_MOST_ROWS = 1 << 16  # arrays, and values
_MOST_TEXTS = 1 << 21  # in lists
_CHUNK = 1 << 20

# The types of arrays: name, and how many numbers are stored together in how many bytes.
_ROWS = (
    "0 F32 1 4, 1 F16 1 2, 2 Q4_0 32 18, 3 Q4_1 32 20, 6 Q5_0 32 22, 7 Q5_1 32 24, "
    "8 Q8_0 32 34, 9 Q8_1 32 36, 10 Q2_K 256 84, 11 Q3_K 256 110, 12 Q4_K 256 144, "
    "13 Q5_K 256 176, 14 Q6_K 256 210, 15 Q8_K 256 292, 16 IQ2_XXS 256 66, 17 IQ2_XS 256 74, "
    "18 IQ3_XXS 256 98, 19 IQ1_S 256 50, 20 IQ4_NL 32 18, 21 IQ3_S 256 110, 22 IQ2_S 256 82, "
    "23 IQ4_XS 256 136, 24 I8 1 1, 25 I16 1 2, 26 I32 1 4, 27 I64 1 8, 28 F64 1 8, "
    "29 IQ1_M 256 56, 30 BF16 1 2, 34 TQ1_0 256 54, 35 TQ2_0 256 66, 39 MXFP4 32 17"
)
_TYPES = {
    int(kind): (name, int(block), int(width))
    for kind, name, block, width in map(str.split, _ROWS.split(","))
}


class _CutShortError(Exception):
    """The file ends within its header."""


def _malformed(why: str) -> ValueError:
    return ValueError(f"malformed header: {why}")


class _Cursor:
    """Reads numbers and text one after the other, and checks each length against the file."""

    def __init__(self, file: RawFile) -> None:
        self.position = 0  # how many bytes were read
        self._file = file
        self._data, self._start = b"", 0  # a piece of the file, and where it begins
        self._names = self._texts = 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        begin = self.position - self._start
        if begin + size > len(self._data):
            self._start, begin = self.position, 0
            left = self._file.size - self._start
            if size > left:
                raise _CutShortError
            self._data = self._file.read(self._start, min(max(size, _CHUNK), left))
        self.position += size
        return self._data[begin : begin + size]

    def skip(self, size: int) -> None:
        """Leaves out bytes."""
        self.position += size
        if self.position > self._file.size:
            raise _CutShortError

    def number(self, kind: str) -> int:
        """The next number, of a type of `struct`."""
        return int(struct.unpack(f"<{kind}", self.take(struct.calcsize(kind)))[0])

    def name(self) -> str:
        """The next text, which is a name."""
        size = self.number("Q")
        self._names += size
        if size > _LONGEST_NAME:
            raise _malformed(f"a name of {size} bytes")
        if self._names > _MOST_NAMES:
            raise _malformed(f"names of more than {_MOST_NAMES} bytes")
        return self.take(size).decode("utf-8", "replace")

    def count(self, what: str, smallest: int, most: int = _MOST_ROWS) -> int:
        """A number of things, each of which needs some bytes."""
        found = self.number("Q")
        if found * smallest > self._file.size - self.position or found > most:
            raise _malformed(f"it can't have {found} {what}")
        return found

    def skip_value(self, kind: int) -> None:
        """Leaves out a value of the metadata. A list of lists is none: llama.cpp knows no such."""
        is_list = kind == _LIST
        if is_list:
            kind = self.number("I")
        size = _FIXED.get(kind, 8)
        most = self._file.size if kind in _FIXED else _MOST_TEXTS - self._texts
        count = self.count("items in a list", size, most) if is_list else 1
        if kind in _FIXED:
            self.skip(count * size)
        elif kind == _TEXT:
            self._texts += count
            self._skip_texts(count)
        else:
            raise _malformed(f"a value of the type {kind}" + (", in a list" if is_list else ""))

    def _skip_texts(self, count: int) -> None:
        while count:
            self.skip(self.number("Q"))
            count -= 1
            data, at, last = self._data, self.position - self._start, len(self._data) - 8
            while count and at <= last:  # what is in memory
                at += 8 + int.from_bytes(data[at : at + 8], "little")
                count -= 1
            self.position = self._start + at
            self.skip(0)

    def row(self) -> tuple[str, tuple[tuple[int, ...], int, int]]:
        """Name, shape, type and offset of an array. The first length is that of the last axis."""
        name, dimensions = self.name(), self.number("I")
        if dimensions > _MOST_DIMENSIONS:
            raise _malformed(f"{shown(name)} has {dimensions} dimensions")
        shape = tuple(self.number("Q") for _ in range(dimensions))[::-1]
        return name, (shape, self.number("I"), self.number("Q"))


def read_gguf(file: RawFile) -> Container:
    """The content of a GGUF file.

    Raises:
        ValueError: Its header can't be read.
    """
    found = Container("GGUF", file)
    try:
        _read(found, file, _Cursor(file))
    except _CutShortError:
        found.error((), "the file is cut short within its header")
    return found


def _read(found: Container, file: RawFile, cursor: _Cursor) -> None:
    cursor.take(len(MAGIC))
    version = cursor.number("I")
    if version not in (2, 3):
        raise ValueError(f"it is a GGUF file of version {version}; versions 2 and 3 can be read")
    number = cursor.count("arrays", 24)
    alignment = 32
    keys: list[str] = []
    for _ in range(cursor.count("values", 13)):
        key, kind = cursor.name(), cursor.number("I")
        keys.append(key)
        if key == "general.alignment":
            alignment = cursor.number("I") if kind == _UNSIGNED else 0
        elif key == "general.architecture" and kind == _TEXT:
            found.metadata[key] = cursor.name()
        else:
            cursor.skip_value(kind)
        if alignment.bit_count() != 1:
            raise _malformed(f"an alignment of {alignment} bytes, or of no unsigned number")
    _note_twice(found, keys, "is a key twice")
    rows = [cursor.row() for _ in range(number)]
    _note_twice(found, (name for name, _ in rows), "is stored twice")
    arrays = dict(reversed(rows))  # of two of one name the first
    found.named = set(arrays)
    start = -(-cursor.position // alignment) * alignment
    places = {}
    for name, (shape, kind, offset) in reversed(arrays.items()):
        if kind not in _TYPES:
            text = f"{shown(name)} has the type {kind}, which is unknown"
            found.findings.append(Finding("doubt", (name,), text))
            continue
        dtype, block, width = _TYPES[kind]
        size = math.prod(shape)
        if max(size, offset) > MOST_BYTES or (shape and shape[-1] % block):
            found.error((name,), f"{shown(name)} has no shape of whole blocks: {list(shape)[:8]}")
            continue
        nbytes = size // block * width
        places[name] = offset, offset + nbytes
        if start + offset + nbytes <= file.size:
            found.add(name, dtype, shape, start + offset, nbytes, width if block == 1 else 0)
    found.check_places(places, max(file.size - start, 0), is_dense=False)


def _note_twice(found: Container, names: Iterable[str], what: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            found.error((name,), f"{shown(name)} {what}")
