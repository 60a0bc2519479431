# SPDX-License-Identifier: Apache-2.0
"""Arrays as a file stores them, and the content of one file, whatever its format."""

import math
import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

from .finding import Damage, Finding, listed, shown
from .raw import RawFile

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
    storage: tuple[Any, ...]  # equal for arrays that are the same elements of one memory

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    def signature(self) -> str:
        """Type and shape, for messages."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def read(self, begin: int, size: int) -> bytes:
        """Some of its bytes."""
        return self.file.read(self.begin + begin, size)

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
        storage = (self.path, begin, name)
        self.arrays[name] = Stored(
            name, dtype, shape, self.file, begin, nbytes, itemsize, True, storage
        )

    def error(self, names: tuple[str, ...], text: str) -> None:
        """Notes an error of this file."""
        self.findings.append(Damage("error", names, text))

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

        def note(text: str, *names: str) -> None:
            self.findings.append(Finding("error", names, text))

        filled = ((place, name) for name, place in places.items() if place[1] > place[0])
        rows = sorted(filled, key=operator.itemgetter(0))
        end, last, is_tiled = 0, "", True
        for (begin, stop), name in rows:
            if begin < end:
                is_tiled = False
                size = min(end, stop) - begin
                note(f"{shown(last)} and {shown(name)} overlap by {size} bytes", last, name)
            elif begin > end and is_dense:
                is_tiled = False
                note(f"there are {begin - end} bytes of no array before {shown(name)}", name)
            if stop > end:
                end, last = stop, name
        beyond = {name: place for place, name in rows if place[1] > room}
        if beyond and is_tiled:
            missing = f"the last {end - room} of {end} bytes are missing"
            note(f"the file is cut short: {missing}, of {listed(beyond)}", *beyond)
        elif not beyond and is_dense and end < room:
            note(f"there are {room - end} bytes of no array at the end")
        for name, (begin, stop) in beyond.items() if not is_tiled else ():
            place = f"is said to be at bytes {begin} to {stop}, outside of the file"
            note(f"{shown(name)} {place}, which has {room}", name)
