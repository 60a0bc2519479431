# SPDX-License-Identifier: Apache-2.0
"""A directory of shards beside its index: is each array where the index says, and only there?"""

import os
import re
from collections.abc import Iterator, Mapping

from pydag.arrays.names import grouped, paired
from pydag.files.directory import SHARD, Index, parsed_index
from pydag.files.replacing import ReplacedError

from .compare import are_equal, are_equal_as_narrower
from .finding import Damage, Finding, listed, shown
from .formats import read_file
from .model import Model
from .paths import names_in, read_each, small_file, state_of
from .progress import Bar
from .stored import Container, Stored

_SHARD = re.compile(r"(.*[-_.])\d+[-_]of[-_](\d+)((?:\.\w+)+)")
# What a training writes beside a model.
OF_TRAINING = re.compile(r"optimizer|scheduler|scaler|training_args|rng_state|random_states")
# Hidden; an adapter; a form of the model that has names of its own.
_OTHERS = (".", "adapter", "consolidated")


def shard_of(name: str) -> tuple[str, str, int] | None:
    """How the name of a shard of several begins and ends, and how many there are; else None."""
    match = _SHARD.fullmatch(name)
    return (match[1], match[3], int(match[2])) if match and int(match[2]) > 1 else None


def open_indexed(path: str, asked: str) -> Model:
    """Opens the files that an index names, as far as they can be read.

    Raises:
        ValueError: It is no index, or names a file outside its directory.
        OSError: The index can't be read, or is being replaced.
    """
    version, was_locked = state_of(path)
    index = parsed_index(path, small_file(path))
    findings: list[Finding] = []
    failed: dict[str, list[str]] = {}  # the files by why they can't be read
    files = paired(index.files.values(), index.files)
    tried = zip(files, read_each(_tried, map(index.path_of, files)), strict=True)
    found: dict[str, Container] = {}
    for file, container in tried:
        if isinstance(container, Container):
            found[file] = container
        elif isinstance(container, FileNotFoundError):
            text = f"the index names {shown(file)}, which isn't there, for {listed(files[file])}"
            findings.append(Damage("error", (file, *files[file]), text))
        else:
            why = str(container).removeprefix(f"{index.path_of(file)!r}: ")
            failed.setdefault(why, []).append(file)
    for why, few in failed.items():
        names = (*few, *(array for file in few for array in files[file]))
        findings.append(Damage("error", names, f"{listed(few)} can't be read: {why}"))
    named = {file: c.named for file, c in found.items() if c.named is not None}
    if named != {file: set(own) for file, own in files.items()}:
        findings.extend(_misplaced(index, named))
    beside = _unnamed_files(index, set[str]().union(*named.values()), findings)
    new_version, is_locked = state_of(path)
    if findings and (was_locked or is_locked or new_version != version):
        for container in (*found.values(), *beside):
            container.file.close()
        raise ReplacedError(path)
    for i, container in enumerate(found.values()):  # that of one file isn't that of the model
        container.structure = index.structure if i == 0 else None
    is_part = len(found) < len(files)
    model = Model(asked, index.folder or ".", [*found.values()], is_part, findings, path)
    model.beside = beside
    return model


def _tried(path: str) -> Container | ValueError | OSError:
    try:
        return read_file(path)
    except (ValueError, OSError) as error:
        return error


def _misplaced(index: Index, named: Mapping[str, set[str]]) -> Iterator[Finding]:
    """The arrays that aren't where the index says, or not only there; `named` says where."""
    places: dict[str, list[str]] = {}  # the files that have each array
    for file, own in named.items():
        for array in own:
            places.setdefault(array, []).append(file)
    arrays = (*index.files, *sorted(places.keys() - index.files.keys()))
    rows = grouped(arrays, lambda array: (index.files.get(array), *places.get(array, ())))
    for (named_file, *where), few in rows.items():
        names = listed(few)
        if named_file is None:
            text = f"{shown(where[0])} has {names}, which the index doesn't name"
            yield Finding("error", (*few, where[0]), text)
        elif named_file in named and not where:
            text = f"the index names {names} in {shown(named_file)}, and it isn't there"
            yield Damage("error", (*few, named_file), text)
        elif named_file in named and named_file not in where:
            text = f"by the index {names} is in {shown(named_file)}, and it is in {listed(where)}"
            yield Finding("error", tuple(few), text)
    for files, few in grouped(sorted(places), lambda array: tuple(places[array])).items():
        if len(files) > 1:
            text = f"{listed(few)} is stored in {' and in '.join(map(shown, files))}"
            yield Finding("error", (*few, *files), text)


def _unnamed_files(index: Index, there: set[str], findings: list[Finding]) -> list[Container]:
    """Notes the other files in the directory with arrays that the model lacks; returns all.

    Files of another format are another form of the model. Where no array is a module's, so that its
    name has a dot, it is another thing, such as a vector.
    """
    own = set(index.files.values())
    endings = {os.path.splitext(file)[1] for file in own} & {".safetensors", ".bin"}
    forms, saves = {(shard_of(file) or ())[:2] for file in own}, {None, *map(_save, own)}
    files = [
        name
        for name in names_in(index.folder)
        if name not in own
        and os.path.splitext(name)[1] in endings
        and not (name.startswith(_OTHERS) or OF_TRAINING.match(name))
        and _save(name) in saves  # the others are of a save that is under way, or was killed
    ]
    have_dots = bool(files) and all("." in array for array in index.files)
    beside = []
    for name, container in zip(files, read_each(_tried, map(index.path_of, files)), strict=True):
        arrays = set[str]()
        if isinstance(container, Container):
            arrays = container.named or arrays
            beside.append(container)
        shard = shard_of(name)
        is_shard = shard is not None and shard[:2] in forms
        lacking = sorted(array for array in arrays - there if ".lora_" not in array)
        if not (is_shard or not have_dots or any("." in array for array in lacking)):
            lacking = []
        if lacking or (is_shard and not arrays):
            more = f", and it has {listed(lacking)}" if lacking else ""
            text = f"the index doesn't name {shown(name)}{more}"
            findings.append(Damage("error", (name, *lacking), text))
    return beside


def check_beside(model: Model, bar: Bar) -> Iterator[Finding]:
    """Finds files beside those of an index that have other values for its names.

    Readers may prefer a file with the name of the index to the shards.
    """
    instead = os.path.basename(model.index or "").removesuffix(".index.json")
    for container in model.beside:
        both = sorted(container.arrays.keys() & model.arrays.keys())
        other = [n for n in both if _differ(container.arrays[n], model.arrays[n], bar)]
        name, values = os.path.basename(container.path), listed(other)
        text = f"the index doesn't name {shown(name)}, which has other values for {values}"
        if name == instead:
            text = f"{shown(name)} is beside the shards of the index, and has {values} as well: "
            text += "readers may take it instead of them"
        if other:
            yield Finding("doubt", (name, *other), text)


def _differ(one: Stored, other: Stored, bar: Bar) -> bool:
    if not (one.is_plain and other.is_plain) or are_equal(one, other, bar):
        return False
    return one.dtype == other.dtype or not are_equal_as_narrower(one, other)


def _save(file: str) -> str | None:
    """The part of a shard's name that is that of one save; None: it has none."""
    match = SHARD.fullmatch(file)
    return match and match[2]
