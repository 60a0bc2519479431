# SPDX-License-Identifier: Apache-2.0
"""Arrays as a file stores them, and the content of one file, whatever its format."""

import math
import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from pydag.arrays.kinds import array_text

from .finding import Damage, Finding, listed, shown
from .raw import RawFile, expect

MOST_BYTES = 1 << 62  # of an array


class Stored(NamedTuple):
    """An array in a file."""

    name: str
    dtype: str  # as safetensors calls it, where that has it: "BF16", "Q4_K"
    shape: tuple[int, ...]
    file: RawFile
    begin: int  # the place of its first byte
    nbytes: int  # of its elements
    itemsize: int  # 0 where elements aren't whole bytes
    is_plain: bool  # whether its elements lie in order, without gaps
    storage: Hashable  # equal for arrays of a model that are the same elements of one memory

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def is_matrix(self) -> bool:
        """Whether it has rows and columns of whole elements."""
        return len(self.shape) == 2 and self.itemsize > 0

    def signature(self) -> str:
        """Type and shape, for messages."""
        return array_text(self.dtype, self.shape)

    def read(self, begin: int, size: int) -> bytes:
        """Some of its bytes."""
        return self.file.read(self.begin + begin, size)

    def read_parts(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        """Several small parts: begin and size of each."""
        expect((self.file, self.begin + begin, size) for begin, size in places)
        return [self.read(begin, size) for begin, size in places]

    def is_hole(self, begin: int, end: int) -> bool:
        """Whether these bytes are zeros that aren't on the disk."""
        return self.file.is_hole(self.begin + begin, self.begin + end)


class Container:
    """The content of one file of the format `kind`: "safetensors", "torch", "GGUF"."""

    def __init__(self, kind: str, file: RawFile) -> None:
        self.kind, self.file, self.path = kind, file, file.path
        self.arrays: dict[str, Stored] = {}  # those that can be read
        self.aliases: dict[str, str] = {}  # further names, each with the array of the metadata
        self.metadata: dict[str, str] = {}  # all other data beside the arrays
        self.structure: str | None = None  # as pydag wrote it, JSON
        self.named: set[str] | None = None  # all names in the header; None: it can't be read
        self.findings: list[Finding] = []  # the problems of the file itself
        self.unwritable: str | None = None  # why its arrays alone would be another model
        self.has_values = False  # besides the arrays, such as a number of steps

    def add(
        self, name: str, dtype: str, shape: tuple[int, ...], begin: int, nbytes: int, itemsize: int
    ) -> None:
        """Notes an array whose elements lie in order, and are no other array's."""
        self.arrays[name] = Stored(
            name, dtype, shape, self.file, begin, nbytes, itemsize, True, storage=name
        )

    def error(self, names: tuple[str, ...], text: str, kind: type[Finding] = Damage) -> None:
        """Notes an error of this file."""
        self.findings.append(kind("error", names, text))

    def check_places(
        self, places: Mapping[str, tuple[int, int]], room: int, is_dense: bool
    ) -> None:
        """Checks that the places of arrays are within the file, and don't overlap.

        Args:
            places: By the header, counted from the first byte of all arrays. No end is before its
                beginning.
            room: How many bytes the file has for them.
            is_dense: Whether the format allows no gaps.
        """
        filled = ((place, name) for name, place in places.items() if place[1] > place[0])
        rows = sorted(filled, key=operator.itemgetter(0))
        end, last, is_tiled = 0, "", True
        for (begin, stop), name in rows:
            is_tiled &= begin == end or (begin > end and not is_dense)
            if begin < end:
                size = min(end, stop) - begin
                self.error((last, name), f"{shown(last)} and {shown(name)} overlap by {size} bytes")
            elif begin > end and is_dense:
                text = f"there are {begin - end} bytes of no array before {shown(name)}"
                self.error((name,), text, Finding)
            if stop > end:
                end, last = stop, name
        beyond = {name: place for place, name in rows if place[1] > room}
        if beyond and is_tiled:
            missing = f"the last {end - room} of {end} bytes are missing"
            text = f"the file is cut short: {missing}, of {listed(beyond)}"
            self.error(tuple(beyond), text, Finding)
        elif not beyond and is_dense and end < room:
            self.error((), f"there are {room - end} bytes of no array at the end", Finding)
        for name, (begin, stop) in beyond.items() if not is_tiled else ():
            place = f"is said to be at bytes {begin} to {stop}, outside of the file"
            self.error((name,), f"{shown(name)} {place}, which has {room}", Finding)
