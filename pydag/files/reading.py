# SPDX-License-Identifier: Apache-2.0
"""A safetensors file, opened: its arrays by name, memory-mapped, and its metadata.

The safetensors package checks the header; nothing of the arrays is read until they are used.
"""

import os
from collections.abc import Mapping
from typing import Any

import pydag._core as _core
from pydag.structure.document import Document, MalformedError, check_version, parse

from .arrays import numpy_dtype
from .collector import collector_paused
from .described import Described, Entry
from .save import KINDS, STRUCTURE, package

_ATTEMPTS = 5


class File:
    """A file that was opened and checked.

    Args:
        path: The file.

    Raises:
        ValueError: The file is no safetensors file, or is damaged.
        OSError: The file can't be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.entries: dict[str, Entry] = {}
        self.metadata: dict[str, str] = {}
        self._dtypes: dict[str, Any] = {}
        for _ in range(_ATTEMPTS):
            if self._open():
                break
        else:
            raise OSError(f"{self.path!r} is being replaced while it is read")
        self.aliases = {k: v for k, v in self.metadata.items() if k != STRUCTURE}
        self.is_ours = STRUCTURE in self.metadata

    @collector_paused()
    def _open(self) -> bool:
        """Opens the file. False: another file replaced it meanwhile."""
        import json

        import numpy as np

        safetensors = package()
        with open(self.path, "rb") as file:
            before = os.fstat(file.fileno())
            try:
                with safetensors.safe_open(self.path, framework="np"):
                    pass  # checks it
            except safetensors.SafetensorError as error:
                raise ValueError(f"{self.path!r} is no whole safetensors file: {error}") from error
            after = os.stat(self.path)
            if (before.st_dev, before.st_ino, before.st_size) != (
                *(after.st_dev, after.st_ino, after.st_size),
            ):
                return False
            size = int.from_bytes(file.read(8), "little")
            try:
                header = json.loads(file.read(size), object_pairs_hook=_core.json_object)
            except ValueError as error:
                raise self.wrong(f"malformed header: {error}") from None
            self._bytes = np.memmap(file, dtype=np.uint8, mode="r")
        self.metadata = header.pop("__metadata__", None) or {}
        self.entries, self._start = header, 8 + size
        return True

    def array(self, name: str) -> Any:
        """An array of the file, mapped, read-only. One of booleans is read, and checked."""
        return self.arrays({name: self.entries[name]})[name]

    @collector_paused()
    def arrays(self, entries: Mapping[str, Entry]) -> dict[str, Any]:
        """The arrays of these entries, by name.

        Each is a plain array above the one `numpy.memmap` of the whole file, its `base`: to make an
        object of that class takes three times as long.
        """
        import numpy as np

        mapped, first, dtypes, new = self._bytes, self._start, self._dtypes, np.ndarray
        found = {}
        name = ""
        try:
            for name, entry in entries.items():
                short, (begin, end) = entry["dtype"], entry["data_offsets"]
                dtype = dtypes.get(short)
                if dtype is None:
                    dtype = dtypes[short] = numpy_dtype(short)
                if short == "BOOL":
                    _check_booleans(mapped[first + begin : first + end])
                found[name] = new(entry["shape"], dtype, mapped, first + begin)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.path!r}: the array {name!r} can't be read: {error}") from None
        return found

    def check_aliases(self) -> None:
        """Checks the table of aliases, in a file that has our structure."""
        for alias, name in self.aliases.items():
            if alias == "format" and name not in self.entries:
                continue  # by convention the framework that wrote the file
            if alias in self.entries:
                raise self.wrong(f"{alias!r} is an array and an alias of {name!r}")
            if name not in self.entries:
                raise self.wrong(f"{alias!r} is an alias of {name!r}, which is no array in it")

    def check_complete(self, described: Described) -> None:
        """Checks that the structure uses every array."""
        if len(described.arrays) < len(self.entries):
            unused = self.entries.keys() - described.arrays.keys()
            raise self.wrong(
                f"the array {min(unused)!r} is not in the structure; strict=False leaves it out"
            )

    def names(self) -> dict[str, str]:
        """The array that each name means: names of arrays, and aliases that lead to one.

        In a file that isn't ours, other metadata may be anything, and is ignored.
        """
        names = {name: name for name in self.entries}
        for alias, name in self.aliases.items():
            if name in self.entries:
                names.setdefault(alias, name)
        return names

    @collector_paused()
    def structure(self) -> tuple[Document, Described] | None:
        """The structure in the metadata, and how each of its leaves is described."""
        if not self.is_ours:
            return None
        try:
            return _checked(parse(self.metadata[STRUCTURE]), self.entries)
        except ValueError as error:
            raise self.wrong(str(error)) from None

    def kinds(self) -> dict[str, str]:
        """What kind of leaf each array stands for, where that was no plain array."""
        noted = parse(self.metadata[STRUCTURE]).get(KINDS, {}) if self.is_ours else {}
        if type(noted) is not dict or not all(type(kind) is str for kind in noted.values()):
            raise self.wrong(f"malformed structure: {KINDS}: expected an object with text")
        return noted

    def wrong(self, what: str) -> ValueError:
        """The error that says what is wrong in this file."""
        return ValueError(f"{self.path!r}: {what}")


def _check_booleans(found: Any) -> None:
    if found.size and found.max() > 1:
        raise ValueError("a boolean is a byte that is 0 or 1")


def _checked(whole: Any, entries: Mapping[str, Entry]) -> tuple[Document, Described]:
    if type(whole) is not dict:
        raise MalformedError("the text", "expected an object")
    check_version(whole.get("pydag"))
    document = Document.read(whole.get("structure"))
    return document, Described(whole.get("leaves"), document.num_leaves, entries)
