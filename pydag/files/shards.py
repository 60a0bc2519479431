# SPDX-License-Identifier: Apache-2.0
"""Writes a directory of safetensors files with an index, as Hugging Face's libraries do.

All files are written under names of their own first. Then, while no other writer does so, they get
names that no file in the directory has, the new index replaces the old one, and the old files go.
So there is always one whole model, however many writers there are, and wherever they are killed.
"""

import contextlib
import json
import operator
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .directory import INDEX, SHARD, read_index
from .header import LARGEST, STRUCTURE
from .plan import Plan
from .replacing import NewFile, flush, flush_folder, folder_locked, remove_leftovers

_SIZE = re.compile(r"(\d+(?:\.\d+)?) *(?:([KMGT])(i?))?B?", re.IGNORECASE)
_ATTEMPTS = 5


class Named(Protocol):
    """Arrays that have names.

    Attributes:
        aliases: The array that each further name means.
        structure: The structure as JSON; None where it isn't written.
    """

    aliases: dict[str, str]
    structure: str | None

    @property
    def sizes(self) -> Mapping[str, int]:
        """The bytes of each array, by name."""


def number_of_bytes(size: int | str) -> int:
    """What `shard_size` means: a number, or text such as "5GB"."""
    if not isinstance(size, str | bool) and hasattr(type(size), "__index__"):
        found = operator.index(size)
    elif isinstance(size, str) and (match := _SIZE.fullmatch(size.strip())):
        number, unit, is_binary = match.groups()
        base = 1024 if is_binary else 1000
        power = "KMGT".index(unit.upper()) + 1 if unit else 0
        found = int(float(number) * base**power)
    else:
        raise (ValueError if isinstance(size, str) else TypeError)(
            f'shard_size= takes a number of bytes, or text such as "5GB", got {size!r}'
        )
    if found < 1:
        raise ValueError(f"shard_size= must be at least a byte, got {size!r}")
    return found


def write_shards(path: str | os.PathLike[str], plan: Plan, largest: int, bar: Any) -> None:
    """Writes a directory.

    Args:
        largest: The bytes of arrays in one file. An array that has more has a file of its own.
    """
    folder = os.path.realpath(path)
    groups, metadata = in_shards(plan, largest)
    names = shard_names(len(groups))
    index_text(plan, groups, names)  # raises where it is too large
    new: list[NewFile] = []
    is_new = False
    try:
        for i, name in enumerate([*names, INDEX]):
            file = NewFile(folder, name)
            new.append(file)
            if i == 0:
                is_new = _make_first(file, folder)
                remove_leftovers(folder, lambda name: name == INDEX or bool(SHARD.fullmatch(name)))
            else:
                file.make()
            if name != INDEX:
                whole = os.path.join(folder, name)
                plan.write(file.to_write, groups[i], metadata[i], whole, bar)
        put_in_place(folder, new, lambda names: index_text(plan, groups, names), is_new)
    except BaseException:
        for file in new:
            file.remove()
        if is_new:
            with contextlib.suppress(OSError):  # it isn't empty
                os.rmdir(folder)
        raise


def _make_first(file: NewFile, folder: str) -> bool:
    """Makes a new file in a folder; whether the folder was made for it.

    Another writer, whose save failed, may remove the folder before there is a file in it.
    """
    attempts = _ATTEMPTS
    while True:
        is_new, attempts = False, attempts - 1
        if not os.path.isdir(folder):
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
                is_new = True
        try:
            file.make()
            return is_new
        except OSError as error:
            if is_new:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            if attempts == 0 or not isinstance(error, FileNotFoundError):
                raise


def index_text(plan: Named, groups: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    """The index of shards that have these arrays and names."""
    files = {array: name for name, group in zip(names, groups, strict=True) for array in group}
    metadata: dict[str, Any] = {"total_size": sum(plan.sizes.values())}
    if plan.structure is not None:
        metadata[STRUCTURE] = plan.structure
    text = json.dumps({"metadata": metadata, "weight_map": files}, indent=2) + "\n"
    if len(text) > LARGEST - 9 * len(files):  # names may become longer
        raise ValueError(f"the index needs {len(text)} bytes, and may have {LARGEST}")
    return text


def in_shards(plan: Named, largest: int) -> tuple[list[list[str]], list[dict[str, str]]]:
    """The names of the arrays in each file, and its metadata."""
    groups: list[list[str]] = []
    size = 0
    for name, own in plan.sizes.items():
        if not groups or size + own > largest:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += own
    metadata: list[dict[str, str]] = [{} for _ in groups]
    number = {array: i for i, group in enumerate(groups) for array in group}
    for alias, array in plan.aliases.items():
        metadata[number[array]][alias] = array
    if len(groups) == 1 and plan.structure is not None:
        metadata[0][STRUCTURE] = plan.structure  # it is a whole model without the index, too
    return groups, metadata


def shard_names(number: int, part: str = "", stem: str = "model") -> list[str]:
    """The names of this many shards.

    Args:
        part: What the names have of their own, so that they are unlike those of other models.
        stem: How they begin.
    """
    return [f"{stem}{part}-{i:05}-of-{number:05}.safetensors" for i in range(1, number + 1)]


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
        whole = "model.safetensors"
        left = (name for name in found if name == whole or (is_alone and SHARD.fullmatch(name)))
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
