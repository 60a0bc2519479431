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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from .header import LARGEST
from .index import INDEX, SHARD
from .package import STRUCTURE
from .places import put_in_place, shard_names
from .replacing import NewFile, flush, remove_leftovers

_SIZE = re.compile(r"(\d+(?:\.\d+)?) *(?:([KMGT])(i?))?B?", re.IGNORECASE)
_ATTEMPTS = 5


class Writable(Protocol):
    """Arrays that have names, and can be written.

    Attributes:
        aliases: The array that each further name means.
        structure: The structure as JSON; None where it isn't written.
    """

    aliases: dict[str, str]
    structure: str | None

    def names(self) -> Iterable[str]:
        """The names of all arrays."""

    def size(self) -> int:
        """How many bytes all arrays have."""

    def size_of(self, name: str) -> int:
        """How many bytes an array has."""

    def write(
        self, temporary: str, names: Iterable[str], metadata: Mapping[str, str], path: str, bar: Any
    ) -> None:
        """Writes some arrays to one file.

        Args:
            temporary: Where.
            names: Their names.
            metadata: Goes into the header.
            path: Where the file will be, for messages.
            bar: Counts the bytes of each array.
        """


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


def write_shards(path: str | os.PathLike[str], plan: Writable, largest: int, bar: Any) -> None:
    """Writes a directory.

    Args:
        path: The directory; it is made if there is none.
        plan: The arrays.
        largest: The bytes of arrays in one file. An array that has more has a file of its own.
        bar: Counts the bytes of each array.
    """
    folder = os.path.realpath(path)
    groups = _groups(plan, largest)
    names = shard_names(len(groups))
    index_text(plan, groups, names)  # raises where it is too large
    aliases: list[dict[str, str]] = [{} for _ in groups]
    number = {array: i for i, group in enumerate(groups) for array in group}
    for alias, array in plan.aliases.items():
        aliases[number[array]][alias] = array
    if len(groups) == 1 and plan.structure is not None:
        aliases[0][STRUCTURE] = plan.structure  # it is a whole model without the index, too
    new: list[NewFile] = []
    is_new = False
    try:
        for i, name in enumerate([*names, INDEX]):
            if i == 0:
                file, is_new = _first_file(folder, name)
                remove_leftovers(folder, lambda name: name == INDEX or bool(SHARD.fullmatch(name)))
            else:
                file = NewFile.beside(folder, name)
            new.append(file)
            if name != INDEX:
                plan.write(file.path, groups[i], aliases[i], os.path.join(folder, name), bar)
                flush(file.path)
        put_in_place(folder, new, lambda names: index_text(plan, groups, names), is_new)
    except BaseException:
        for file in new:
            file.remove()
        if is_new:
            with contextlib.suppress(OSError):  # it isn't empty
                os.rmdir(folder)
        raise


def _first_file(folder: str, name: str) -> tuple[NewFile, bool]:
    """A new file in a folder, and whether the folder was made for it.

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
            return NewFile.beside(folder, name), is_new
        except OSError as error:
            if is_new:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            if attempts == 0 or not isinstance(error, FileNotFoundError):
                raise


def index_text(plan: Writable, groups: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    """The index of shards that have these arrays and names."""
    files = {array: name for name, group in zip(names, groups, strict=True) for array in group}
    metadata: dict[str, Any] = {"total_size": plan.size()}
    if plan.structure is not None:
        metadata[STRUCTURE] = plan.structure
    text = json.dumps({"metadata": metadata, "weight_map": files}, indent=2) + "\n"
    if len(text) > LARGEST - 9 * len(files):  # names may become longer
        raise ValueError(f"the index needs {len(text)} bytes, and may have {LARGEST}")
    return text


def _groups(plan: Writable, largest: int) -> list[list[str]]:
    """The names of the arrays in each file."""
    groups: list[list[str]] = []
    size = 0
    for name in plan.names():
        own = plan.size_of(name)
        if not groups or size + own > largest:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += own
    return groups
