# SPDX-License-Identifier: Apache-2.0
"""Finds the files of a path: one file, an index, or a directory with one of these."""

import contextlib
import json
import os

from pydag.files.directory import read_again

from .config import CONFIG
from .finding import Damage, Finding, listed, shown
from .formats import READABLE, read_file
from .heads import configure_adapter
from .index_checks import OF_TRAINING, open_indexed, shard_of
from .model import Model
from .paths import ENDINGS, INDEX_ENDINGS, STEMS, is_folder, names_in, pinned, read_each, small_file

_PIPELINE = "model_index.json"
_KNOWN = (*ENDINGS, *INDEX_ENDINGS)
_UNREAD = (".h5", ".msgpack", ".onnx")  # the endings of formats that aren't read


def open_model(path: str, may_have_parts: bool = False) -> Model:
    """Opens the model at a path.

    Args:
        may_have_parts: Whether it may be a pipeline, which has `parts` instead of files.

    Raises:
        ValueError: It is of no known format, or it isn't clear what is meant; an index is none.
        OSError: It can't be read.
    """
    address, revision = pinned(path)
    model = read_again(lambda: _open(address))
    model.path, model.revision = path, revision or model.revision
    if model.pipeline and not may_have_parts:
        why = f"is a pipeline, not a model: give one part: {listed(model.pipeline)}"
        raise ValueError(f"{path!r} {why}")
    return model


def _open(path: str) -> Model:
    if is_folder(path):
        return _in_folder(path)
    if path.endswith(INDEX_ENDINGS):
        return open_indexed(path, path)
    folder, name = os.path.split(path)
    return _of_files(path, folder, [name])


def _of_files(asked: str, folder: str, names: list[str], index: str | None = None) -> Model:
    """A model of one file; or of shards, of which there is no index where one should be."""
    shard, there = shard_of(names[0]), names
    total, findings = shard[2] if shard else 1, list[Finding]()
    if index is None and total > 1:
        there = []
        with contextlib.suppress(FileNotFoundError):  # of a web server that doesn't list them
            there = [name for name in names_in(folder) if shard_of(name) == shard]
    elif index is not None and not names[0].endswith(".gguf"):
        findings.append(Finding("error", tuple(names), f"there is no index of {listed(names)}"))
    if len(there) < total and names[0] in there:
        verb = "is" if len(there) == 1 else "are"
        text = f"there {verb} {len(there)} of {total} shards: {listed(there)}"
        findings.append(Damage("error", (), text))
    containers = read_each(read_file, [os.path.join(folder, name) for name in names])
    model = Model(asked, folder or ".", containers, len(names) < total, findings, index)
    if names[0].startswith("adapter"):
        configure_adapter(model)
    return model


def _revision(folder: str) -> tuple[str, str | None]:
    """The directory with the files of a model in a hub cache, and the revision that they are of."""
    above, name = os.path.split(folder.rstrip(f"/{os.sep}"))
    if os.path.basename(above) == "snapshots":
        return folder, name
    names = names_in(folder)
    if "snapshots" not in names or not {"refs", "blobs"}.intersection(names):
        return folder, None
    known = names_in(os.path.join(folder, "snapshots"))
    revision = known[0] if len(known) == 1 else ""
    with contextlib.suppress(FileNotFoundError):
        revision = small_file(os.path.join(folder, "refs", "main")).decode().strip()
    if revision not in known:
        why = f"there is no snapshot {shown(revision)} of its refs/main, but of {listed(known)}"
        raise ValueError(f"{folder!r}: {why}")
    return os.path.join(folder, "snapshots", revision), revision


def _in_folder(asked: str) -> Model:
    folder, revision = _revision(asked)
    names = names_in(folder)
    models = [
        name
        for name in names
        if name.endswith((*ENDINGS, *_UNREAD))
        and not (name.startswith(".") or OF_TRAINING.match(name))
    ]
    if _PIPELINE in names:
        model = _pipeline(folder, asked, names)
    else:
        model = _chosen(folder, asked, [*models, *(n for n in names if n.endswith(INDEX_ENDINGS))])
    reported = {name for finding in model.findings for name in finding.names}
    reported.update(os.path.basename(container.path) for container in model.containers)
    model.not_read = tuple(name for name in models if name not in reported)
    model.revision = revision
    return model


def _pipeline(folder: str, asked: str, names: list[str]) -> Model:
    """A directory of diffusers: each of its parts is in a directory of its own."""
    try:
        whole = json.loads(small_file(os.path.join(folder, _PIPELINE)).decode())
        rows = dict(whole).items()
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{asked!r}: {_PIPELINE} can't be read: {error}") from None
    model = Model(asked, folder, [], False)
    for name, kind in rows:
        # [library, class] of a part; [null, null] where there is none.
        if type(kind) is not list or not kind or type(kind[0]) is not str:
            continue
        inner = names_in(os.path.join(folder, name)) if name in names else []
        if any(file.endswith(_KNOWN) for file in inner):
            model.pipeline[name] = os.path.join(folder, name)
        elif not inner or CONFIG in inner:  # a tokenizer has other files
            text = f"{_PIPELINE} names {shown(name)}, of which no weights are there"
            model.findings.append(Damage("error", (name,), text))
    if not model.pipeline:
        raise ValueError(f"{asked!r}: {_PIPELINE} names no part that has weights there")
    return model


def _chosen(folder: str, asked: str, names: list[str]) -> Model:
    for ending in ENDINGS:
        indices, files = _likely(names, f"{ending}.index.json"), _likely(names, ending)
        shards = [name for name in names if name.endswith(ending) and shard_of(name)]
        # A usual name says that a file is a model itself, but for an adapter's.
        may_be_shards = len(files) > 1 or files in (shards, [f"adapter_model{ending}"])
        if len(indices) == 1:
            return open_indexed(os.path.join(folder, indices[0]), asked)
        if not indices and may_be_shards and len(set(map(shard_of, shards))) == 1:
            return _of_files(asked, folder, shards, folder)
        if not indices and len(files) == 1:
            return _of_files(asked, folder, files)
        if unclear := indices or files:
            why = f"it isn't clear which file is meant: {listed(unclear)}"
            raise ValueError(f"{folder!r}: {why}. Give the path of one")
    inner = [name for name in names_in(folder) if _has_model(os.path.join(folder, name))]
    cure = f"Give a directory in it: {listed(inner)}" if inner else f"Known are {READABLE}"
    raise ValueError(f"{asked!r}: there is no file in this directory that can be read. {cure}")


def _has_model(path: str) -> bool:
    """Whether a path is a directory with a file that may be read."""
    return is_folder(path) and any(name.endswith(_KNOWN) for name in names_in(path))


def _likely(names: list[str], ending: str) -> list[str]:
    """The usual one of the names with an ending; where there is none, all."""
    usual = [stem + ending for stem in STEMS if stem + ending in names]
    return usual[:1] or [name for name in names if name.endswith(ending)]
