# SPDX-License-Identifier: Apache-2.0
"""Writes a directory of safetensors files with an index, as Hugging Face's libraries do.

All files are written under names of their own first. Then the old index goes, unless none of its
files is replaced; the files get their names, and the new index comes last. So a crash leaves the
old model whole, or no index, and never an index with files of another model.
"""

import contextlib
import json
import operator
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from .header import LARGEST
from .index import INDEX, read_index
from .package import STRUCTURE
from .replacing import NewFile, flush, flush_folder, remove_leftovers

_SIZE = re.compile(r"(\d+(?:\.\d+)?) *(?:([KMGT])(i?))?B?", re.IGNORECASE)
_SHARD = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors")


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
            bar: Is told of the bytes of each array.
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
        plan: What is written.
        largest: The bytes of arrays in one file. An array that has more has a file of its own.
        bar: Is told of the bytes of each array.
    """
    folder = os.path.realpath(path)
    groups = _groups(plan, largest)
    names = [f"model-{i:05}-of-{len(groups):05}.safetensors" for i in range(1, len(groups) + 1)]
    files = {array: name for name, group in zip(names, groups, strict=True) for array in group}
    metadata: dict[str, Any] = {"total_size": plan.size()}
    if plan.structure is not None:
        metadata[STRUCTURE] = plan.structure
    index = json.dumps({"metadata": metadata, "weight_map": files}, indent=2) + "\n"
    if len(index) > LARGEST:
        raise ValueError(f"the index needs {len(index)} bytes, and may have {LARGEST}")
    is_new = not os.path.isdir(folder)
    if is_new:
        os.mkdir(folder)
    else:
        remove_leftovers(folder, lambda name: name == INDEX or bool(_SHARD.fullmatch(name)))
    aliases: dict[str, dict[str, str]] = {name: {} for name in names}
    for alias, array in plan.aliases.items():
        aliases[files[array]][alias] = array
    written: dict[str, NewFile] = {}
    try:
        for name, group in zip(names, groups, strict=True):
            written[name] = NewFile.beside(folder, name)
            plan.write(written[name].path, group, aliases[name], os.path.join(folder, name), bar)
            flush(written[name].path)
        written[INDEX] = NewFile.beside(folder, INDEX)
        with open(written[INDEX].path, "w", encoding="utf-8") as file:
            file.write(index)
        flush(written[INDEX].path)
        _put_in_place(folder, written)
    except BaseException:
        for new in written.values():
            new.remove()
        if is_new:
            with contextlib.suppress(OSError):  # it isn't empty
                os.rmdir(folder)
        raise


def _groups(plan: Writable, largest: int) -> list[list[str]]:
    """The names of the arrays in each file."""
    groups: list[list[str]] = [[]]
    size = 0
    for name in plan.names():
        own = plan.size_of(name)
        if groups[-1] and size + own > largest:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += own
    return groups


def _put_in_place(folder: str, written: dict[str, NewFile]) -> None:
    index = os.path.join(folder, INDEX)
    old = _old_files(folder)
    if any(name in written for name in old):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(index)
        flush_folder(folder)
    for name, new in written.items():  # the index is the last of them
        if name == INDEX:
            flush_folder(folder)
        new.replace(os.path.join(folder, name))
    flush_folder(folder)
    for name in old - written.keys():
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _old_files(folder: str) -> set[str]:
    """The files of a model that stands in the folder."""
    found = {name for name in os.listdir(folder) if _SHARD.fullmatch(name)}
    with contextlib.suppress(ValueError, OSError):
        named = read_index(os.path.join(folder, INDEX)).files.values()
        found.update(name for name in named if name.endswith(".safetensors"))
    return found
