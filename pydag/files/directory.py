# SPDX-License-Identifier: Apache-2.0
"""A directory of safetensors files, whose index says which array is in which of them."""

import contextlib
import errno
import os
import re
import time
from collections import UserDict
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple, TypeVar

from pydag.arrays.names import grouped
from pydag.structure.document import parse

from .header import LARGEST, STRUCTURE, Entry, aliases_in, contradictions
from .names import listed
from .path import check_regular
from .reading import File
from .replacing import ReplacedError, is_folder_locked, version_of
from .source import ArraySource

INDEX = "model.safetensors.index.json"
_ENDING = ".safetensors.index.json"
# What `save` calls the files of a model.
SHARD = re.compile(r"model((-[0-9a-f]{8})?-\d{5}-of-\d{5})?\.safetensors")


class Index(NamedTuple):
    """The content of an index."""

    path: str
    folder: str
    files: dict[str, str]  # the file of each array: a name in the folder
    structure: str | None  # as pydag writes it; None: it wrote no structure

    def path_of(self, file: str) -> str:
        """The path of a file that it names."""
        return os.path.join(self.folder, file)


def is_index(path: str) -> bool:
    """Whether a path is that of an index, by its name."""
    return path.endswith(_ENDING)


def indices_among(names: Collection[str]) -> list[str]:
    """Those of the names in a folder that are indices: the usual one, else all that there are."""
    return [INDEX] if INDEX in names else sorted(filter(is_index, names))


def read_index(path: str) -> Index:
    """Reads an index, and checks it.

    Raises:
        ValueError: It is malformed, or it names a file outside of its folder.
        OSError: It can't be read.
    """
    check_regular(path)
    with open(path, "rb") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise ValueError(f"{path!r} is no index: it has more than {LARGEST} bytes")
    return parsed_index(path, text)


def parsed_index(path: str, text: bytes) -> Index:
    """The same of an index that was read."""
    try:
        whole = parse(text.decode())
    except ValueError as error:
        raise ValueError(f"{path!r} is no index of safetensors files: {error}") from None
    files = whole.get("weight_map") if type(whole) is dict else None
    if type(files) is not dict or set(map(type, files.values())) - {str}:
        raise ValueError(
            f"{path!r} is no index of safetensors files: `weight_map` must name a file for each "
            "array"
        )
    for file in set(files.values()):
        # It must name a file of the folder itself, on any system.
        is_plain = file not in ("", ".", "..") and not any(c in file for c in "/\\:\0")
        if not is_plain or file == os.path.basename(path):
            name = next(name for name in files if files[name] == file)
            raise ValueError(
                f"{path!r}: {name!r} is said to be in {file[:200]!r}, and only a file beside the "
                "index may be named"
            )
    found = whole.get("metadata")
    metadata = found if type(found) is dict else {}
    structure = metadata.get(STRUCTURE)
    if not files and structure is None and metadata.get("total_size") != 0:
        raise ValueError(f"{path!r} is no index of safetensors files: `weight_map` names no array")
    structure = structure if type(structure) is str else None
    return Index(path, os.path.dirname(path), files, structure)


_PART = re.compile(r".*-\d+-of-(\d+)\.safetensors")
_SHOWN = 5
_WAITS = (0.0, 0.01, 0.1, 0.5)  # seconds

T = TypeVar("T")


def read_again(read: Callable[[], T]) -> T:
    """The result of `read`, which is called again if its file is replaced meanwhile.

    Raises:
        OSError: It is replaced again and again.
    """
    for seconds in _WAITS:
        with contextlib.suppress(ReplacedError):
            return read()
        time.sleep(seconds)
    return read()


def open_source(path: str | os.PathLike[str]) -> ArraySource:
    """The source of arrays at this path: a file, an index, or a directory with one of these.

    Raises:
        ValueError: It is damaged, or it isn't clear which file of a directory is meant.
        OSError: It can't be read, or is a directory without such files.
    """
    path = os.fspath(path)
    with contextlib.suppress(IsADirectoryError):
        check_regular(path)
        return Directory(path) if is_index(path) else File(path)
    return _in_folder(path)


def _in_folder(folder: str) -> ArraySource:
    names = sorted(os.listdir(folder))
    indices = indices_among(names)
    if len(indices) == 1:
        return Directory(os.path.join(folder, indices[0]))
    if not indices and (is_folder_locked(folder) or sorted(os.listdir(folder)) != names):
        raise ReplacedError(folder)
    files = [name for name in names if name.endswith(".safetensors") and name[0] != "."]
    if "model.safetensors" in files and all(map(SHARD.fullmatch, files)):
        files = ["model.safetensors"]  # the others are left from a killed save
    if not indices and not files:
        raise IsADirectoryError(
            errno.EISDIR, "it is a directory without a safetensors file or an index", folder
        )
    if indices or len(files) > 1:
        raise ValueError(
            f"{folder!r}: it isn't clear which file is meant: {_listed(indices or files)}\n"
            f"  Give the path of one of them{'' if indices else '; there is no index'}."
        )
    part = _PART.fullmatch(files[0])
    if part is not None and int(part[1]) != 1:
        raise ValueError(f"{folder!r}: there is no index, and {files[0]!r} is a part of a model")
    try:
        check_regular(path := os.path.join(folder, files[0]))
        return File(path)
    except FileNotFoundError:  # pragma: no cover: another process took it away just then
        raise ReplacedError(folder) from None


class Directory(ArraySource):
    """Files with an index. Each is opened at its first use.

    Raises:
        ValueError: The index is malformed, or names a missing file or array; a file is damaged.
        OSError: The index, or a file, can't be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._version = version_of(path)
        self._index = read_index(path)
        self._files: dict[str, File] = {}
        self._named = grouped(self._index.files, self._index.files.__getitem__)
        self.entries = _Entries(self, self._index.files)
        self.metadata: dict[str, str] = {}
        self._claims: dict[str, dict[str, str]] = {}  # the aliases in each file
        self._known: dict[str, str] = {}  # those of all files
        self.text = self._index.structure

    def open_for(self, names: Collection[str] | None) -> None:
        """Opens the files that have these arrays; None: all of them."""
        files = self._index.files
        for file in dict.fromkeys(files.values() if names is None else map(files.get, names)):
            if file is not None:
                self.file(file)
        if names is not None and self.text is None:
            tied = self.aliases().values()
            if not set(names).isdisjoint(tied):
                self.open_for(None)  # another file may say that the alias is another array

    def file(self, name: str) -> File:
        """One of the files."""
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = self._open(name)
            self._note_aliases(name, file)
        return file

    def _note_aliases(self, name: str, file: File) -> None:
        aliases = aliases_in(file.metadata, self.entries, self.text is not None)
        self._claims[name] = {k: v for k, v in aliases.items() if k not in self.entries}
        known = self._known
        if any(known.get(alias, array) != array for alias, array in self._claims[name].items()):
            alias, files = next(contradictions(self._claims))
            claims = ", and of ".join(f"{array[:200]!r} by {f!r}" for array, f in files.items())
            raise self.wrong(f"{alias[:200]!r} is an alias of {claims}")
        self.metadata |= {k: v for k, v in file.metadata.items() if k in aliases or k not in known}
        known |= self._claims[name]

    def _open(self, name: str) -> File:
        own, file = self._named[name], None
        with contextlib.suppress(FileNotFoundError):
            check_regular(path := self._index.path_of(name))
            file = File(path)
        if version_of(self.path) != self._version:
            raise ReplacedError(self.path)
        if file is None:
            why = f"the index names the file {name!r}, which isn't there, for {_listed(own)}"
            raise self.wrong(why)
        if missing := [array for array in own if array not in file.entries]:
            why = f"by the index {_listed(missing)} should be in {name!r}, and isn't there"
            raise self.wrong(why)
        for array in file.entries:
            other = self._index.files.get(array)
            if other is None:
                raise self.wrong(f"{array!r} is in {name!r}, and the index doesn't name it")
            if other != name:
                raise self.wrong(f"{array!r} is in {name!r}, and by the index in {other!r}")
        return file

    def arrays(self, names: Collection[str]) -> dict[str, Any]:
        """The arrays of these names, mapped, read-only. One of booleans is read, and checked."""
        found: dict[str, Any] = {}
        for file, own in grouped(names, self._index.files.__getitem__).items():
            found.update(self.file(file).arrays(own))
        return {name: found[name] for name in names}


class _Entries(UserDict[str, Any]):
    """The entry of each array. The index has the names; for the rest a file is opened."""

    def __init__(self, directory: Directory, files: dict[str, str]) -> None:
        self.data, self._directory = files, directory

    def __getitem__(self, name: str) -> Entry:
        return self._directory.file(self.data[name]).entries[name]


def _listed(names: Iterable[str]) -> str:
    return listed(list(map(repr, names)), _SHOWN)
