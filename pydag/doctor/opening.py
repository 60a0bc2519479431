# SPDX-License-Identifier: Apache-2.0
"""Which files a path means: a file, an index, or a directory with one of these."""

import os
import re

from pydag.files.directory import read_again
from pydag.files.index import INDEX, is_index

from .finding import Damage, Finding, listed
from .formats import READABLE, UnknownFormatError, read_file
from .index_checks import open_indexed, shard_total
from .model import Model

_TORCH_INDEX = ".bin.index.json"
_USUAL = ("model.safetensors", "pytorch_model.bin")
_ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")  # in the order in which they are taken


def open_model(path: str) -> Model:
    """Opens what a path means.

    Raises:
        ValueError: It is of no known format, or it isn't clear what is meant; an index is none.
        OSError: It can't be read.
    """
    return read_again(lambda: _opened(path))


def _opened(path: str) -> Model:
    if os.path.isdir(path):
        return _in_folder(path)
    if is_any_index(path):
        return open_indexed(path, path)
    return _one_file(path, path)


def is_any_index(path: str) -> bool:
    """Whether a path is that of an index, by its name."""
    return is_index(path) or path.endswith(_TORCH_INDEX)


def _one_file(path: str, asked: str) -> Model:
    container = read_file(path)
    folder, name = os.path.split(path)
    total = shard_total(name)
    return Model(asked, folder or ".", [container], total is not None and total > 1)


def _in_folder(folder: str) -> Model:
    names = sorted(os.listdir(folder))
    indices = [name for name in names if is_any_index(name)]
    of_safetensors = [name for name in indices if is_index(name)]
    chosen = [INDEX] if INDEX in names else of_safetensors
    if len(chosen) > 1:
        raise _unclear(folder, chosen)
    if chosen:
        return open_indexed(os.path.join(folder, chosen[0]), folder)
    files = [name for name in names if name.endswith(_ENDINGS)]
    for ending in _ENDINGS:
        own = [name for name in files if name.endswith(ending)]
        if ending == ".bin" and len(torch_indices := [n for n in indices if not is_index(n)]) == 1:
            return open_indexed(os.path.join(folder, torch_indices[0]), folder)
        usual = [name for name in own if name in _USUAL]
        if len(usual) == 1 or len(own) == 1:
            return _one_file(os.path.join(folder, (usual or own)[0]), folder)
        if own and _are_shards(own):
            return _without_index(folder, own)
        if own:
            raise _unclear(folder, own)
    raise UnknownFormatError(
        f"{folder!r}: there is no file in this directory that can be read. Known are {READABLE}"
    )


def _are_shards(names: list[str]) -> bool:
    """Whether files are the parts of one model, by their names."""
    return len({re.sub(r"\d+-of-", "", name) for name in names}) == 1 and all(
        shard_total(name) for name in names
    )


def _without_index(folder: str, names: list[str]) -> Model:
    if names[0].endswith(".gguf"):
        findings = []
    else:
        findings = [Finding("error", tuple(names), f"there is no index of {listed(names)}")]
    total = shard_total(names[0]) or 0
    if len(names) < total:
        findings.append(
            Damage("error", (), f"there are {len(names)} of {total} shards: {listed(names)}")
        )
    containers = [read_file(os.path.join(folder, name)) for name in names]
    return Model(folder, folder, containers, len(names) < total, findings, folder)


def _unclear(folder: str, names: list[str]) -> ValueError:
    return ValueError(
        f"{folder!r}: it isn't clear which file is meant: {listed(names)}. Give the path of one"
    )
