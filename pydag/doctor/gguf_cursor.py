# SPDX-License-Identifier: Apache-2.0
"""Reads the parts of a GGUF header one after the other, and trusts none of its numbers."""

import struct

from .raw import RawFile

# The values in the metadata that have a fixed size, by their type.
_FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TEXT, UNSIGNED = 8, 4
_ARRAY = 9
_SMALLEST = {TEXT: 8, _ARRAY: 12, **_FIXED}  # the bytes of the smallest value of a type
_DEEPEST = 8

# A header beyond these limits is refused: each item takes memory, or time, beyond its bytes.
_LONGEST_NAME = (1 << 16) - 1  # by the format
_MOST_NAMES = 1 << 24  # bytes of all names
MOST_ROWS = 1 << 16  # arrays, and values
_MOST_ITEMS = 1 << 21  # of lists, where each has a size of its own
_CHUNK = 1 << 20


class CutShortError(Exception):
    """The file ends within its header."""


def malformed(why: str) -> ValueError:
    """The error for a malformed header."""
    return ValueError(f"malformed header: {why}")


class Cursor:
    """Reads numbers and text one after the other, and checks each length against the file."""

    def __init__(self, file: RawFile) -> None:
        self._file = file
        self._data, self._start, self._at = b"", 0, 0  # a piece of the file, and the place in it
        self._names = self._items = 0

    @property
    def position(self) -> int:
        """How many bytes were read."""
        return self._start + self._at

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if self._at + size > len(self._data):
            left = self._file.size - self.position
            if size > left:
                raise CutShortError
            self._start, self._at = self.position, 0
            self._data = self._file.read(self._start, min(max(size, _CHUNK), left))
        self._at += size
        return self._data[self._at - size : self._at]

    def skip(self, size: int) -> None:
        """Leaves out bytes."""
        self._at += size
        if self.position > self._file.size:
            raise CutShortError

    def number(self, kind: str) -> int:
        """The next number, of a type of `struct`."""
        size = struct.calcsize(kind)
        return int(struct.unpack(f"<{kind}", self.take(size))[0])

    def name(self) -> str:
        """The next text, which is a name."""
        size = self.number("Q")
        self._names += size
        if size > _LONGEST_NAME:
            raise malformed(f"a name of {size} bytes")
        if self._names > _MOST_NAMES:
            raise malformed(f"names of more than {_MOST_NAMES} bytes")
        return self.take(size).decode("utf-8", "replace")

    def count(self, what: str, smallest: int, most: int) -> int:
        """A number of things, each of which needs some bytes."""
        found = self.number("Q")
        if found * smallest > self._file.size - self.position or found > most:
            raise malformed(f"it can't have {found} {what}")
        return found

    def skip_value(self, kind: int, depth: int = 0) -> None:
        """Leaves out a value of the metadata."""
        if kind in _FIXED:
            self.skip(_FIXED[kind])
        elif kind == TEXT:
            self.skip(self.number("Q"))
        elif kind == _ARRAY and depth < _DEEPEST:
            self._skip_list(depth)
        else:
            raise malformed(f"a value of the type {kind}")

    def _skip_list(self, depth: int) -> None:
        kind = self.number("I")
        is_fixed = kind in _FIXED
        cost = 64 if kind == _ARRAY else 1  # that is how much longer an inner list takes
        most = self._file.size if is_fixed else (_MOST_ITEMS - self._items) // cost
        count = self.count("items in a list", _SMALLEST.get(kind, 1), most)
        if is_fixed:
            self.skip(count * _FIXED[kind])
            return
        self._items += count * cost
        if kind == TEXT:
            self._skip_texts(count)
            return
        for _ in range(count):
            self.skip_value(kind, depth + 1)

    def _skip_texts(self, count: int) -> None:
        while count:
            self.skip(self.number("Q"))
            count -= 1
            data, at, last = self._data, self._at, len(self._data) - 8
            while count and at <= last:  # what is in memory
                at += 8 + int.from_bytes(data[at : at + 8], "little")
                count -= 1
            self._at = at
            self.skip(0)
