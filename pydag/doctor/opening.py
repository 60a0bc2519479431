# SPDX-License-Identifier: Apache-2.0
"""Finds the files of a path: one file, an index, or a directory with one of these."""

import os
import re

from pydag.files.directory import read_again
from pydag.files.index import indices_among, is_index

from .finding import Damage, Finding, listed
from .formats import READABLE, read_file
from .index_checks import open_indexed, shard_total
from .model import Model

_TORCH_INDEX = ".bin.index.json"
_USUAL = ("model.safetensors", "pytorch_model.bin")
_ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")  # in the order in which they are taken


def open_model(path: str) -> Model:
    """Opens the model at a path.

    Raises:
        ValueError: It is of no known format, or it isn't clear what is meant; an index is none.
        OSError: It can't be read.
    """
    return read_again(lambda: _opened(path))


def _opened(path: str) -> Model:
    if os.path.isdir(path):
        return _in_folder(path)
    if is_index(path) or path.endswith(_TORCH_INDEX):
        return open_indexed(path, path)
    return _one_file(path, path)


def _one_file(path: str, asked: str) -> Model:
    folder, name = os.path.split(path)
    return Model(asked, folder or ".", [read_file(path)], (shard_total(name) or 0) > 1)


def _in_folder(folder: str) -> Model:
    names = sorted(os.listdir(folder))
    chosen = indices_among(names)
    if len(chosen) > 1:
        raise _unclear(folder, chosen)
    if chosen:
        return open_indexed(os.path.join(folder, chosen[0]), folder)
    files = [name for name in names if name.endswith(_ENDINGS)]
    for ending in _ENDINGS:
        own = [name for name in files if name.endswith(ending)]
        of_torch = [name for name in names if name.endswith(_TORCH_INDEX)]
        if ending == ".bin" and len(of_torch) == 1:
            return open_indexed(os.path.join(folder, of_torch[0]), folder)
        usual = [name for name in own if name in _USUAL]
        if len(usual) == 1 or len(own) == 1:
            return _one_file(os.path.join(folder, (usual or own)[0]), folder)
        if own and _are_shards(own):
            return _without_index(folder, own)
        if own:
            raise _unclear(folder, own)
    raise ValueError(
        f"{folder!r}: there is no file in this directory that can be read. Known are {READABLE}"
    )


def _are_shards(names: list[str]) -> bool:
    """Whether files are the parts of one model, by their names."""
    return len({re.sub(r"\d+-of-", "", name) for name in names}) == 1 and all(
        shard_total(name) for name in names
    )


def _without_index(folder: str, names: list[str]) -> Model:
    findings = []
    if not names[0].endswith(".gguf"):
        findings.append(Finding("error", tuple(names), f"there is no index of {listed(names)}"))
    total = shard_total(names[0]) or 0
    if len(names) < total:
        text = f"there are {len(names)} of {total} shards: {listed(names)}"
        findings.append(Damage("error", (), text))
    containers = [read_file(os.path.join(folder, name)) for name in names]
    return Model(folder, folder, containers, len(names) < total, findings, folder)


def _unclear(folder: str, names: list[str]) -> ValueError:
    return ValueError(
        f"{folder!r}: it isn't clear which file is meant: {listed(names)}. Give the path of one"
    )
