# SPDX-License-Identifier: Apache-2.0
"""Rewrites a model: each array once, and its other names as alias metadata."""

import json
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from pydag.arrays.names import grouped
from pydag.files.header import STRUCTURE, bits_of, is_storable
from pydag.files.path import is_address
from pydag.files.plan import ArrayToWrite, write_contents
from pydag.files.replacing import flush, replacing
from pydag.files.shards import in_shards, index_text, shard_names
from pydag.structure.document import parse

from .check import findings_of
from .compare import are_equal
from .config import CONFIG
from .finding import Damage, Finding, ReportedPairs, listed, shown, size_text
from .head_checks import check_heads
from .heads import ADAPTER_CONFIG, giving_way
from .model import Model
from .opening import open_model
from .paths import check_free, is_folder, is_for_folder, names_in, open_file
from .progress import Bar
from .stored import Stored
from .ties import check_aliases
from .torch_file import contents

_PIECE = 1 << 24
# Readers look for these; the arrays of any other folder are those of `model`.
_NAMES = ("adapter_model", "diffusion_pytorch_model", "pytorch_lora_weights")


def write_once(path: str, out: str) -> tuple[str, list[Finding], dict[str, list[str]]]:
    """Writes a model to another place, a file as a file and a directory as a directory.

    One array is written for names that alias metadata, the configuration or one storage tie, if all
    that is stored of it is equal. All other arrays are written as they are, equal ones too. The
    other files of a directory go with them, and the configuration wherever `out` is one.

    Returns:
        A description of the written files; the findings that remain, with the configuration of the
        original model; the names of the other files in its directory: "copied" and "not_copied".

    Raises:
        ValueError: The model isn't whole, or `out` is neither free nor an empty directory, or its
            name says another format.
        OSError: Something can't be read or written.
    """
    check_free(out, as_folder := is_for_folder(path, out))
    with closing(Bar(True)) as bar, closing(open_model(path)) as model:
        for why in _obstacles(model, bar):
            raise ValueError(f"{model.path!r}: nothing is written: {why}")
        pairs = ReportedPairs()
        for _ in (*check_aliases(model, pairs, bar), *check_heads(model, pairs, bar)):
            pass  # `pairs` then has what is tied
        copy = _Copy(model, pairs)
        bar.expect(copy.size)
        others: dict[str, list[str]] = {"copied": [], "not_copied": []}
        first = out
        with replacing(out, is_new=True, is_folder=as_folder) as new:
            if as_folder:
                stem = _stem(model, is_whole := is_for_folder(path))
                first = os.path.join(out, _write(model, copy, new.path, stem, bar))
                _copy_others(model, new.path, out, stem, is_whole, others)
            else:
                copy.write(new.path, copy.arrays, copy.whole, bar)
        with closing(open_model(first)) as written:
            written.configure(model.folder)
            findings = findings_of(written, bar)
        saved = _size(model.arrays.values()) - copy.size
        summary = f"{out}: {len(copy.arrays)} arrays, {size_text(copy.size)}"
        summary += f", {size_text(saved)} less" if saved > 0 else ""
        if any(container.has_values for container in model.containers):
            summary += "; values that are no arrays are left out"
        return summary, findings, others


def _stem(model: Model, is_whole: bool) -> str:
    """What the files of arrays are called, without a shard's number and what follows a dot."""
    path = model.containers[0].path if model.containers else ""
    name = re.sub(r"-\d+-of-\d+$", "", os.path.splitext(os.path.basename(path))[0])
    if name in _NAMES or (not is_whole and name != "pytorch_model"):
        return name
    found = names_in(model.folder)
    return _NAMES[0] if is_whole and ADAPTER_CONFIG in found and CONFIG not in found else "model"


def _write(model: Model, copy: "_Copy", folder: str, stem: str, bar: Bar) -> str:
    """Writes the files of arrays to an empty folder; returns the name of the first to read."""
    first = f"{stem}.safetensors"
    if model.index is None:
        copy.write(os.path.join(folder, first), copy.arrays, copy.whole, bar)
        return first
    sizes = [_size(container.arrays.values()) for container in model.containers]
    groups, metadata = in_shards(copy, max([1, *sizes]))
    names = shard_names(len(groups), stem=stem)
    for name, own, more in zip(names, groups, metadata, strict=True):
        copy.write(os.path.join(folder, name), own, more, bar)
    first += ".index.json"
    with open(path := os.path.join(folder, first), "w", encoding="utf-8") as file:
        file.write(index_text(copy, groups, names))
    flush(path)
    return first


def _copy_others(
    model: Model, new: str, out: str, stem: str, is_whole: bool, others: dict[str, list[str]]
) -> None:
    """Copies the other files of a model's folder, and notes their names.

    Not copied are folders, hidden files, links that lead out of the folder, and the arrays, also in
    another format that readers would take for those that were written.
    """
    replaced = {os.path.basename(container.path) for container in model.containers}
    replaced.add(os.path.basename(model.index or ""))
    same = re.compile(rf"(pytorch_)?{stem}(-\d+-of-\d+)?\.(safetensors|bin)(\.index\.json)?")
    for name in names_in(model.folder):
        path = os.path.join(model.folder, name)
        if name in replaced or (not is_whole and name not in (CONFIG, ADAPTER_CONFIG)):
            continue
        if os.path.realpath(path) in map(os.path.realpath, (new, out)):
            continue  # the new folder is within the original
        if name.startswith(".") or same.fullmatch(name) or not _is_own_file(path):
            others["not_copied"].append(name)
            continue
        with closing(open_file(path)) as file, open(to := os.path.join(new, name), "xb") as copy:
            for begin in range(0, file.size, _PIECE):
                copy.write(file.read(begin, min(_PIECE, file.size - begin)))
        flush(to)
        others["copied"].append(name)


def _is_own_file(path: str) -> bool:
    """Whether a path is a file of its folder itself, or of the hub's cache around it."""
    if is_address(path):
        return not is_folder(path)
    real, folder = os.path.realpath(path), os.path.realpath(os.path.dirname(path))
    above, name = os.path.split(os.path.dirname(folder))
    home = above if name == "snapshots" else folder
    return os.path.isfile(real) and os.path.commonpath([real, home]) == home


class _Copy:
    """What is written: see `shards.Named`."""

    def __init__(self, model: Model, pairs: ReportedPairs) -> None:
        anchors = _anchors(model, pairs)
        self.arrays = {name: model.arrays[name] for name in anchors if anchors[name] == name}
        self.sizes = {name: array.nbytes for name, array in self.arrays.items()}
        self.size = sum(self.sizes.values())
        self.aliases = {name: anchor for name, anchor in anchors.items() if anchor != name}
        for alias, name in model.aliases.items():
            if name in anchors and alias not in model.arrays:
                self.aliases[alias] = anchors[name]
        text = next((c.structure for c in model.containers if c.structure is not None), None)
        self.structure = None if text is None else _with_anchors(text, anchors, model.path)
        more = {} if self.structure is None else {STRUCTURE: self.structure}
        self.whole = self.aliases | more  # the metadata of a file with all arrays
        # Some readers want to know for which framework it is.
        self.metadata: dict[str, str] = {"format": "pt"} if text is None else {}
        for container in model.containers:
            self.metadata.update(container.metadata)
        for alias in model.aliases:
            self.metadata.pop(alias, None)

    def write(self, path: str, names: Iterable[str], metadata: Mapping[str, str], bar: Any) -> None:
        """Writes some arrays to a file, the widest first: each begins at a multiple of its size."""
        rows = sorted((-(bits_of(self.arrays[name].dtype) or 0), name) for name in names)
        written: dict[str, ArrayToWrite] = {}
        for _, name in rows:
            array = self.arrays[name]
            written[name] = array.dtype, array.shape, array.nbytes, contents(array)
        write_contents(path, written, self.metadata | dict(metadata), bar)


def _size(arrays: Iterable[Stored]) -> int:
    return sum(array.nbytes for array in arrays)


def _anchors(model: Model, pairs: ReportedPairs) -> dict[str, str]:
    """The name under which each array is written: of several the one that readers look for."""
    first: dict[Hashable, str] = {}
    groups = {name: first.setdefault(array.storage, name) for name, array in model.arrays.items()}
    for copy, one in pairs.copies.items():
        kept, removed = groups[one], groups[copy]
        groups = {name: kept if group == removed else group for name, group in groups.items()}
    behind = giving_way(model)
    anchors = {}
    for group in grouped(groups, groups.__getitem__).values():
        anchor = min(group, key=lambda name: (name in behind, name in pairs.copies))
        anchors.update(dict.fromkeys(group, anchor))
    return anchors


def _with_anchors(text: str, anchors: Mapping[str, str], path: str) -> str:
    """The structure that pydag wrote, whose leaves name other arrays now."""
    if all(name == anchor for name, anchor in anchors.items()):
        return text
    try:
        whole = parse(text)
        leaves = whole["leaves"]
        for i, leaf in enumerate(leaves):
            if type(leaf) is str:
                leaves[i] = anchors.get(leaf, leaf)
            else:
                for kind in leaf.keys() & {"array", "scalar"}:
                    leaf[kind] = anchors.get(leaf[kind], leaf[kind])
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(f"{path!r}: nothing is written: its structure is malformed") from None
    return json.dumps(whole, separators=(",", ":"))


def _obstacles(model: Model, bar: Bar) -> Iterator[str]:
    """Why a model can't be written."""
    yield from (finding.text for finding in model.findings if isinstance(finding, Damage))
    yield from (c.unwritable for c in model.containers if c.unwritable is not None)
    if model.kind == "GGUF":
        yield "GGUF files are only read"
    if model.is_part:
        yield "it is a part of a model; give its directory"
    for container in model.containers:
        file = shown(os.path.basename(container.path))
        if container.named is None:  # pragma: no cover: what can't be read is damage
            yield f"the names in {file} can't be read"
        elif lost := sorted(container.named - container.arrays.keys()):
            yield f"{file} has no bytes for {listed(lost)}"
        for name, array in container.arrays.items():
            if not is_storable(array.dtype, array.shape):
                yield f"{shown(name)} is {array.signature()}, which safetensors files can't have"
            kept = model.arrays[name]
            if kept is not array and not are_equal(kept, array, bar):
                yield f"{shown(name)} is in two files, and differs"
