# SPDX-License-Identifier: Apache-2.0
"""A directory of shards beside its index: is each array where the index says, and only there?"""

import os
import re
from collections.abc import Iterator

from pydag.files.index import SHARD, Index, read_index
from pydag.files.replacing import ReplacedError, is_folder_locked, version_of

from .finding import Damage, Finding, grouped, listed, shown
from .formats import read_file
from .model import Model
from .stored import Container

_SHARD = re.compile(r".*-(\d+)-of-(\d+)\.\w+")
_ENDINGS = (".safetensors", ".bin")


def shard_total(name: str) -> int | None:
    """How many shards there are, by the name of one; None: it is none."""
    match = _SHARD.fullmatch(name)
    return int(match[2]) if match else None


def open_indexed(path: str, asked: str) -> Model:
    """Opens the files that an index names, as far as they can be read.

    Args:
        path: The index.
        asked: The path that the user gave.

    Raises:
        ValueError: It is no index, or names a file outside its directory.
        OSError: The index can't be read, or is being replaced.
    """
    version, was_locked = version_of(path), is_folder_locked(os.path.dirname(path) or ".")
    index = read_index(path)
    findings: list[Finding] = []
    found: dict[str, Container | None] = {}
    for file, own in grouped(index.files, index.files.__getitem__).items():
        found[file] = None
        try:
            found[file] = read_file(index.path_of(file))
        except (ValueError, OSError) as error:
            text = f"{shown(file)} can't be read: {error}"
            if isinstance(error, FileNotFoundError):
                text = f"the index names {shown(file)}, which isn't there, for {listed(own)}"
            findings.append(Damage("error", (file, *own), text))
    findings.extend(_misplaced(index, found))
    findings.extend(_unknown_shards(index, set(index.files)))
    containers = [container for container in found.values() if container is not None]
    is_locked = was_locked or is_folder_locked(index.folder or ".")
    if findings and (is_locked or version_of(path) != version):
        for container in containers:
            container.file.close()
        raise ReplacedError(path)
    for i, container in enumerate(containers):  # that of one file alone isn't that of the model
        container.structure = index.structure if i == 0 else None
    is_whole = len(containers) == len(found)
    return Model(asked, index.folder or ".", containers, not is_whole, findings, path)


def _misplaced(index: Index, found: dict[str, Container | None]) -> Iterator[Finding]:
    named = {file: container.named for file, container in found.items() if container is not None}
    places: dict[str, list[str]] = {}  # the files that have each array
    for file, arrays in named.items():
        for array in arrays or ():
            places.setdefault(array, []).append(file)
    missing = []
    for array, file in index.files.items():
        known = named.get(file)
        if known is None or array in known:
            continue
        if array in places:
            text = f"by the index {shown(array)} is in {shown(file)}, and it is in "
            yield Finding("error", (array,), text + listed(places[array]))
        else:
            missing.append(array)
    for file, own in grouped(missing, index.files.__getitem__).items():
        text = f"the index names {listed(own)} in {shown(file)}, and it isn't there"
        yield Damage("error", (*own, file), text)
    for files, own in grouped(places, lambda array: tuple(places[array])).items():
        if len(files) > 1:
            text = f"{listed(own)} is stored in {' and in '.join(map(shown, files))}"
            yield Finding("error", (*own, *files), text)
    unnamed = [array for array in places if array not in index.files]
    for file, own in grouped(unnamed, lambda array: places[array][0]).items():
        text = f"{shown(file)} has {listed(own)}, which the index doesn't name"
        yield Finding("error", (*own, file), text)


def _unknown_shards(index: Index, named: set[str]) -> Iterator[Finding]:
    """The shards in the directory that the index doesn't name.

    Other files may be there: another form of the model, an adapter. A file is a shard by its name,
    or because its arrays are further parts of the same layers. Readers may prefer a file with the
    name of the index to the shards.
    """
    files = set(index.files.values())
    instead = os.path.basename(index.path).removesuffix(".index.json")
    endings = {os.path.splitext(file)[1] for file in files}.intersection(_ENDINGS)
    forms = {_without_numbers(file) for file in files}
    saves = {_save(file) for file in files}
    layers = {_without_numbers(name) for name in named if re.search(r"\.\d+\.", name)}
    for name in sorted(os.listdir(index.folder or ".")):
        if name in files or os.path.splitext(name)[1] not in endings or name.startswith("."):
            continue
        if _save(name) not in {None, *saves}:
            continue  # of a save that is under way, or was killed
        is_shard = _without_numbers(name) in forms
        try:
            container = read_file(os.path.join(index.folder, name))
            arrays = container.named or set()
            container.file.close()
        except (ValueError, OSError):
            arrays = set()
        if not is_shard and not arrays & named:
            is_shard = not layers.isdisjoint(map(_without_numbers, arrays))
        if name == instead and (both := arrays & named):
            text = (
                f"{shown(name)} is beside the shards of the index, and has {listed(sorted(both))} "
                "as well: readers may take it instead of them"
            )
            yield Finding("doubt", (name, *sorted(both)), text)
        elif is_shard:
            more = f", and it has {listed(sorted(arrays))}" if arrays else ""
            text = f"the index doesn't name {shown(name)}{more}"
            yield Damage("error", (name, *sorted(arrays)), text)


def _save(file: str) -> str | None:
    """The part of a shard's name that is that of one save; None: it has none."""
    match = SHARD.fullmatch(file)
    return match and match[2]


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "#", text)
