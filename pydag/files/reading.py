# SPDX-License-Identifier: Apache-2.0
"""A safetensors file, opened: its arrays by name, memory-mapped, and its metadata.

Nothing of the arrays is read until they are used.
"""

import itertools
import mmap
import os
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import IO, Any

from pydag.arrays.bytes import numpy_dtype

from .header import LARGEST, STRUCTURE, Run, checked, package, parsed
from .replacing import ReplacedError
from .source import ArraySource, collector_paused

_MOST_DIMENSIONS = 32  # that every NumPy takes
_BUFFER = 1 << 13  # bytes that are read at first
_NO_HANDLE: Any = {"trackfd": False} if sys.version_info >= (3, 13) else {}  # of one's own
_FEWEST_ROWS = 64  # fewer arrays stand above the memory map itself, which many check by `base`
_OTHERS = {  # by their first bytes
    b"vers": "\n  It is perhaps a Git LFS pointer, and the file itself isn't here: git lfs pull.",
    b"\x93NUM": "\n  It is a file of numpy.save: numpy.load reads it.",
    b"PK\x03\x04": "\n  It is a zip file, such as torch.save and numpy.savez write.",
    b"GGUF": "\n  It is a GGUF file: `python -m pydag check` and `show` read it, and transformers "
    "loads it, from_pretrained(folder, gguf_file=...).",
}


def _mapped(file: IO[bytes], path: str) -> Any:
    """The bytes of a file as `numpy.memmap` makes them, in a quarter of the time."""
    import numpy as np

    content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, **_NO_HANDLE)
    found: Any = np.ndarray.__new__(np.memmap, (len(content),), np.uint8, content)
    found.filename, found.offset, found.mode, found._mmap = os.path.abspath(path), 0, "r", content
    return found


class File(ArraySource):
    """A regular file that was opened and checked.

    Raises:
        ValueError: The file is no safetensors file, or is damaged.
        OSError: The file can't be read, or another one replaced it meanwhile (ReplacedError).
    """

    @collector_paused
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        package()
        with open(self.path, "rb", 0) as file:
            text = file.read(_BUFFER)
            size = int.from_bytes(text[:8], "little")
            text = text[8 : 8 + size]
            while piece := file.read(min(size, LARGEST + 1) - len(text)):
                text += piece
            self._bytes = _mapped(file, self.path) if text else b""  # an empty file can't be mapped
            header = checked(text, len(self._bytes) - 8 - size)
            if header is None:
                self._ask_package()
                after = os.stat(self.path)
                is_same = os.path.samestat(os.fstat(file.fileno()), after)
                if not is_same or len(self._bytes) != after.st_size:
                    raise ReplacedError(self.path)  # pragma: no cover: replaced just then
                try:
                    header = parsed(text.decode())
                except ValueError as error:
                    raise self.wrong(f"malformed header: {error}") from None
        self.entries, metadata, self._runs = header
        self.text = metadata.pop(STRUCTURE, None)
        self.metadata = metadata
        self._start = 8 + size

    def _ask_package(self) -> None:
        """Raises ValueError where the safetensors package doesn't take the file."""
        safetensors = package()
        try:
            with safetensors.safe_open(self.path, framework="np"):
                pass  # checks it
        except safetensors.SafetensorError as error:
            with open(self.path, "rb") as file:
                advice = _OTHERS.get(file.read(4), "")
            raise ValueError(
                f"{self.path!r} is no whole safetensors file: {error}{advice}"
            ) from error

    @collector_paused
    def arrays(self, names: Collection[str]) -> dict[str, Any]:
        """The arrays of these names: plain ones above one `numpy.memmap` of the file.

        To make an object of that class takes three times as long. Where all arrays are wanted,
        many of one type and shape that lie in a row are made as the rows of one array.
        """
        found: dict[str, Any] = {}
        if self._runs is not None and len(names) == len(self.entries):
            for run in self._runs:
                found.update(zip(run.names, self._rows(run), strict=True))
        else:
            for name in names:
                entry = self.entries[name]
                begin, _ = entry["data_offsets"]
                found[name] = self._one(name, entry["dtype"], entry["shape"], begin)
        return found

    def _rows(self, run: Run) -> Iterable[Any]:
        dtype, shape, begin, size, names = run
        is_odd = dtype == "BOOL" or not all(shape) or len(shape) >= _MOST_DIMENSIONS
        if is_odd or len(names) < _FEWEST_ROWS:
            starts = (begin + i * size for i in range(len(names)))
            return map(self._one, names, itertools.repeat(dtype), itertools.repeat(shape), starts)
        whole = self._one(names[0], dtype, [len(names), *shape], begin)
        rows: Iterable[Any] = whole if shape else (whole[i, ...] for i in range(len(names)))
        return rows

    def _one(self, name: str, short: str, shape: Sequence[int], begin: int) -> Any:
        import numpy as np

        try:
            array = np.ndarray(shape, numpy_dtype(short), self._bytes, self._start + begin)
            if short == "BOOL" and array.size and array.view(np.uint8).max() > 1:
                raise ValueError("a boolean is a byte that is 0 or 1")
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.path!r}: the array {name!r} can't be read: {error}") from None
        return array
