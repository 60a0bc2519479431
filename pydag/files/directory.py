# SPDX-License-Identifier: Apache-2.0
"""A directory of safetensors files, whose index says which array is in which of them."""

import contextlib
import errno
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from .header import Entry, aliases_in, contradictions
from .index import SHARD, Index, indices_among, is_index, read_index
from .names import listed
from .reading import File
from .replacing import ReplacedError, is_folder_locked, version_of
from .source import Source

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


def opened(path: str | os.PathLike[str]) -> Source:
    """The source of arrays at this path: a file, an index, or a directory with one of these.

    Raises:
        ValueError: It is damaged, or it isn't clear which file of a directory is meant.
        OSError: It can't be read, or is a directory without such files.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        return _in_folder(path)
    return Directory(path) if is_index(path) else File(path)


def _in_folder(folder: str) -> Source:
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
        return File(os.path.join(folder, files[0]))
    except FileNotFoundError:
        raise ReplacedError(folder) from None


class Directory(Source):
    """Files with an index. Each is opened at its first use.

    Args:
        path: The index.

    Raises:
        ValueError: The index is malformed, or names a missing file or array; a file is damaged.
        OSError: The index, or a file, can't be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._version = version_of(path)
        self._index = read_index(path)
        self._files: dict[str, File] = {}
        self._named = _by_file(self._index.files, self._index.files)
        self.entries = _Entries(self, self._index)
        self.metadata: dict[str, str] = {}
        self._said: dict[str, dict[str, str]] = {}  # the aliases in each file
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
            file = self._files[name] = self._opened(name)
            self._note_aliases(name, file)
        return file

    def _note_aliases(self, name: str, file: File) -> None:
        aliases = aliases_in(file.metadata, self.entries, self.text is not None)
        self._said[name] = {k: v for k, v in aliases.items() if k not in self.entries}
        known = self.aliases()
        if any(known.get(alias, array) != array for alias, array in self._said[name].items()):
            alias, files = next(contradictions(self._said))
            said = ", and of ".join(f"{array[:200]!r} by {f!r}" for array, f in files.items())
            raise self.wrong(f"{alias[:200]!r} is an alias of {said}")
        self.metadata |= {k: v for k, v in file.metadata.items() if k in aliases or k not in known}

    def _opened(self, name: str) -> File:
        own, file = self._named[name], None
        with contextlib.suppress(FileNotFoundError):
            file = File(self._index.path_of(name))
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
        for file, own in _by_file(names, self._index.files).items():
            found.update(self.file(file).arrays(own))
        return {name: found[name] for name in names}


def _by_file(names: Iterable[str], files: Mapping[str, str]) -> dict[str, list[str]]:
    """The arrays that are in each file, by the index."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(files[name], []).append(name)
    return found


class _Entries(Mapping[str, Entry]):
    """The entry of each array. The index has the names; for the rest a file is opened."""

    def __init__(self, directory: Directory, index: Index) -> None:
        self._directory, self._files = directory, index.files

    def __getitem__(self, name: str) -> Entry:
        return self._directory.file(self._files[name]).entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _listed(names: Iterable[str]) -> str:
    return listed(list(map(repr, names)), _SHOWN)
