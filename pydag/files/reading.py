# SPDX-License-Identifier: Apache-2.0
"""A safetensors file, opened: its arrays by name, memory-mapped, and its metadata.

The safetensors package checks the header; nothing of the arrays is read until they are used.
"""

import os
from typing import Any, NamedTuple

from pydag.structure.document import Document, MalformedError, check_version, distinct, parse

from .arrays import numpy_dtype
from .save import KINDS, STRUCTURE, package

_ATTEMPTS = 5


class Entry(NamedTuple):
    """An array in a file."""

    dtype: str  # in the format's words
    shape: tuple[int, ...]
    start: int  # in the file
    end: int


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

    def _open(self) -> bool:
        """Opens the file. False: another file replaced it meanwhile."""
        import json

        import numpy as np

        safetensors = package()
        with open(self.path, "rb") as file:
            before = os.fstat(file.fileno())
            try:
                with safetensors.safe_open(self.path, framework="np") as checked:
                    self.metadata = dict(checked.metadata() or {})
            except safetensors.SafetensorError as error:
                raise ValueError(f"{self.path!r} is no whole safetensors file: {error}") from error
            after = os.stat(self.path)
            if (before.st_dev, before.st_ino, before.st_size) != (
                *(after.st_dev, after.st_ino, after.st_size),
            ):
                return False
            size = int.from_bytes(file.read(8), "little")
            try:
                header = json.loads(file.read(size), object_pairs_hook=distinct)
            except ValueError as error:
                raise self.wrong(f"malformed header: {error}") from None
            self._bytes = np.memmap(file, dtype=np.uint8, mode="r")
        self._map = vars(self._bytes)  # which file it is
        start = 8 + size
        self.entries = {
            name: Entry._make(
                (
                    entry["dtype"],
                    tuple(entry["shape"]),
                    start + entry["data_offsets"][0],
                    start + entry["data_offsets"][1],
                )
            )
            for name, entry in header.items()
            if name != "__metadata__"
        }
        return True

    def array(self, name: str) -> Any:
        """An array of the file, mapped, read-only. One of booleans is read, and checked."""
        import numpy as np

        short, shape, start, end = self.entries[name]
        try:
            if short == "BOOL" and start < end and self._bytes[start:end].max() > 1:
                raise ValueError("a boolean is a byte that is 0 or 1")
            dtype = self._dtypes.get(short)
            if dtype is None:
                dtype = self._dtypes[short] = numpy_dtype(short)
            # In one step: a slice, its view and the reshaping of that are three.
            found = np.ndarray.__new__(np.memmap, shape, dtype, self._bytes, start)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.path!r}: the array {name!r} can't be read: {error}") from None
        vars(found).update(self._map)
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

    def check_complete(self, described: list[dict[str, Any]]) -> None:
        """Checks that the structure uses every array."""
        unused = self.entries.keys() - {
            next(iter(leaf.values())) for leaf in described if "value" not in leaf
        }
        if unused:
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

    def structure(self) -> tuple[Document, list[dict[str, Any]]] | None:
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


def _checked(whole: Any, entries: dict[str, Entry]) -> tuple[Document, list[dict[str, Any]]]:
    if type(whole) is not dict:
        raise MalformedError("the text", "expected an object")
    check_version(whole.get("pydag"))
    document = Document.read(whole.get("structure"))
    leaves = whole.get("leaves")
    if type(leaves) is not list or len(leaves) != document.num_leaves:
        raise MalformedError("leaves", "there must be one for each leaf of the structure")
    for i, leaf in enumerate(leaves):
        if type(leaf) is not dict or len(leaf) != 1:
            raise MalformedError(f"leaves[{i}]", "expected an object with one field")
        [(kind, content)] = leaf.items()
        if kind == "value":
            continue
        if kind not in ("array", "scalar") or type(content) is not str:
            raise MalformedError(f"leaves[{i}]", f"unknown kind {kind[:40]!r}")
        if content not in entries:
            raise MalformedError(f"leaves[{i}]", f"there is no array {content[:200]!r}")
        if kind == "scalar" and entries[content].shape != ():
            raise MalformedError(f"leaves[{i}]", f"the array {content[:200]!r} is no single number")
    return document, leaves
