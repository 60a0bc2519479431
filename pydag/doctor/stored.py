# SPDX-License-Identifier: Apache-2.0
"""Arrays as a file stores them, and the content of one file, whatever its format."""

import functools
import math
import re
from typing import Any, NamedTuple

from .finding import Damage, Finding
from .raw import RawFile

MOST_BYTES = 1 << 62  # of an array


class Stored(NamedTuple):
    """An array in a file.

    Attributes:
        name: Its name.
        dtype: Its type, as safetensors calls it where that has it: "BF16", "Q4_K".
        shape: The lengths of its axes.
        file: Where it is.
        begin: The place of its first byte.
        nbytes: How many bytes its elements have.
        itemsize: The bytes of an element; 0 where elements aren't whole bytes.
        is_plain: Whether its elements lie in order, without gaps.
        storage: Equal for arrays that are the same elements of one memory in the file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: RawFile
    begin: int
    nbytes: int
    itemsize: int
    is_plain: bool
    storage: tuple[Any, ...]

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
    """The content of one file.

    Attributes:
        kind: The format: "safetensors", "torch", "GGUF".
        path: The file.
        arrays: The arrays that can be read, by name.
        aliases: Further names, each with the name of the array that the metadata give for it.
        metadata: All other data beside the arrays.
        structure: The structure that pydag wrote, as JSON.
        named: All names that stand in the header, also of arrays that can't be read; None: it can't
            be read.
        findings: The problems of the file itself.
        unwritable: Why its arrays alone would be another model; None: they wouldn't.
        has_values: Whether there are values besides the arrays, such as a number of steps.
    """

    def __init__(self, kind: str, file: RawFile) -> None:
        self.kind, self.file, self.path = kind, file, file.path
        self.arrays: dict[str, Stored] = {}
        self.aliases: dict[str, str] = {}
        self.metadata: dict[str, str] = {}
        self.structure: str | None = None
        self.named: set[str] | None = None
        self.findings: list[Finding] = []
        self.unwritable: str | None = None
        self.has_values = False

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


_ODD = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


@functools.cache
def bits_of(dtype: str) -> int | None:
    """How many bits an element of a type has; None for an unknown type."""
    if dtype in _ODD:
        return _ODD[dtype]
    match = re.fullmatch(r"(?:BF|F|I|U|C)(\d{1,3})(?:_E\dM\d(?:FN|FNUZ)?)?", dtype)
    bits = int(match[1]) if match else 0
    return bits if bits in (4, 8, 16, 32, 64, 128) else None
