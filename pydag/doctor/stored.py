# SPDX-License-Identifier: Apache-2.0
"""Arrays as a file stores them, and the content of one file, whatever its format."""

import math
from typing import Any, NamedTuple

from .finding import Damage, Finding
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
