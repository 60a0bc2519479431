# SPDX-License-Identifier: Apache-2.0
"""Puts the files of a model into their places in a folder, and takes the old ones away."""

import contextlib
import os
import stat
from collections.abc import Callable, Sequence

from .index import INDEX, SHARD, read_index
from .replacing import NewFile, flush, flush_folder, folder_locked

_WHOLE = "model.safetensors"


def shard_names(number: int, part: str = "") -> list[str]:
    """The names of this many shards.

    Args:
        part: What the names have of their own, so that they are unlike those of other models.
    """
    return [f"model{part}-{i:05}-of-{number:05}.safetensors" for i in range(1, number + 1)]


def put_in_place(
    folder: str, new: Sequence[NewFile], index: Callable[[Sequence[str]], str], is_new: bool
) -> None:
    """Makes new files the model in a folder.

    The new index replaces the old one at once, and names files that nobody had named before: a
    reader finds those of the old one or of the new one. Only one writer at a time does this.

    Args:
        new: The shards, written, and an empty file for the index.
        index: Gives the text of the index, for the names of the shards.
        is_new: Whether the folder was made for them.
    """
    *shards, new_index = new
    with folder_locked(folder) as is_alone:
        found, old = os.listdir(folder), _named(folder)
        names = shard_names(len(shards))
        # Where there are no locks, another writer may take the usual names as well.
        if not (is_alone or is_new) or not set(found).isdisjoint(names):
            names = shard_names(len(shards), f"-{os.urandom(4).hex()}")
        with open(new_index.path, "w", encoding="utf-8") as file:
            file.write(index(names))
        flush(new_index.path)
        replaced = os.path.join(folder, old[0]) if old else None
        try:
            for name, shard in zip(names, shards, strict=True):
                shard.replace(os.path.join(folder, name), replaced)
            flush_folder(folder)
            new_index.replace(os.path.join(folder, INDEX))
        except BaseException:
            _remove(folder, set(names).difference(_named(folder)))
            raise
        flush_folder(folder)
        left = (name for name in found if name == _WHOLE or (is_alone and SHARD.fullmatch(name)))
        _remove(folder, {*old, *left}.difference(names))


def _named(folder: str) -> list[str]:
    """The safetensors files that the index in a folder names."""
    with contextlib.suppress(ValueError, OSError):
        files = read_index(os.path.join(folder, INDEX)).files.values()
        return [name for name in dict.fromkeys(files) if name.endswith(".safetensors")]
    return []


def _remove(folder: str, names: set[str]) -> None:
    for name in names:
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                os.unlink(path)
