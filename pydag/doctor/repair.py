# SPDX-License-Identifier: Apache-2.0
"""Rewrites a model: each array once, and its other names as alias metadata."""

import functools
import json
import os
import shutil
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from pydag.files.arrays import numpy_dtype
from pydag.files.header import bits_of
from pydag.files.one_file import Content, write_contents
from pydag.files.package import STRUCTURE
from pydag.files.shards import write_shards
from pydag.structure.document import parse

from .check import findings_of
from .compare import are_equal
from .config import CONFIG
from .finding import Damage, Finding, Pairs, shown, size_text
from .head_checks import check_heads
from .heads import Ends
from .model import Model
from .new_place import check_free, creating
from .opening import open_model
from .progress import Bar
from .stored import Stored
from .ties import check_aliases
from .torch_file import View

_PIECE = 1 << 20
_LARGE_PIECE = 1 << 24


def write_once(path: str, out: str) -> tuple[str, list[Finding]]:
    """Writes a model to another place, a file as a file and a directory as a directory.

    One array is written for names that alias metadata, the configuration or one storage tie, if all
    that is stored of it is equal. All other arrays are written as they are, equal ones too. The
    configuration goes with them where `out` is a directory.

    Returns:
        A description of the written files, and the findings that remain, with the configuration of
        the original model.

    Raises:
        ValueError: The model isn't whole, or `out` is neither free nor an empty directory.
        OSError: Something can't be read or written.
    """
    check_free(out)
    model = open_model(path)
    bar = Bar(True)
    try:
        for why in _obstacles(model, bar):
            raise ValueError(f"{model.path!r}: nothing is written: {why}")
        pairs = Pairs()
        for _ in (*check_aliases(model, pairs, bar), *check_heads(model, pairs, bar)):
            pass  # `pairs` then has what is tied
        copy = _Copy(model, pairs)
        bar.expect(copy.size)
        is_folder = model.index is not None or os.path.isdir(path) or os.path.isdir(out)
        with creating(out, is_folder) as new:
            _write(model, copy, new, bar)
            if is_folder and os.path.isfile(config := os.path.join(model.folder, CONFIG)):
                shutil.copyfile(config, os.path.join(new, CONFIG))
        left = _found_in(out, model.folder, bar)
        saved = _size(model.arrays.values()) - copy.size
        said = f"{out}: {len(copy.arrays)} arrays, {size_text(copy.size)}"
        said += f", {size_text(saved)} less" if saved > 0 else ""
        if any(container.has_values for container in model.containers):
            said += "; values that are no arrays are left out"
        return said, left
    finally:
        bar.close()
        model.close()


def _write(model: Model, copy: "_Copy", folder: str, bar: Bar) -> None:
    """Writes the files of a model to an empty folder."""
    if model.index is not None:
        sizes = [_size(container.arrays.values()) for container in model.containers]
        write_shards(folder, copy, max([1, *sizes]), bar)
        return
    name = os.path.splitext(os.path.basename(model.containers[0].path))[0]
    metadata = dict(copy.aliases)
    if copy.structure is not None:
        metadata[STRUCTURE] = copy.structure
    file = os.path.join(folder, f"{name}.safetensors")
    copy.write(file, copy.arrays, metadata, file, bar)


def _found_in(path: str, config: str, bar: Bar) -> list[Finding]:
    """The findings about a model whose configuration is in another folder."""
    model = open_model(path)
    try:
        model.configure(config)
        return findings_of(model, bar)
    finally:
        model.close()


class _Copy:
    """What is written: see `shards.Writable`."""

    def __init__(self, model: Model, pairs: Pairs) -> None:
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
        self.metadata: dict[str, str] = {"format": "pt"} if model.kind == "torch" else {}
        for container in model.containers:
            self.metadata.update(container.metadata)
        for alias in model.aliases:
            self.metadata.pop(alias, None)

    def write(
        self, temporary: str, names: Iterable[str], metadata: Mapping[str, str], path: str, bar: Any
    ) -> None:
        arrays = {name: self.arrays[name] for name in names}
        _write_raw(temporary, arrays, self.metadata | dict(metadata), bar)


def _size(arrays: Iterable[Stored]) -> int:
    return sum(array.nbytes for array in arrays)


def _anchors(model: Model, pairs: Pairs) -> dict[str, str]:
    """The name under which each array is written."""
    heads = {head.name for head in Ends(model.arrays).heads}
    # A head gives way to its embedding, which readers look for.
    order = sorted(model.arrays, key=lambda name: name in heads)
    first: dict[Hashable, str] = {}
    anchors = {}
    for name in order:
        anchors[name] = first.setdefault(model.arrays[name].storage, name)
    for copy, one in pairs.copies.items():
        a, b = anchors[one], anchors[copy]
        if a != b:
            kept, gone = (b, a) if a in heads and b not in heads else (a, b)
            for name, anchor in anchors.items():
                if anchor == gone:
                    anchors[name] = kept
    return {name: anchors[name] for name in model.arrays}


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
        for name, array in container.arrays.items():
            kept = model.arrays[name]
            if kept is not array and not are_equal(kept, array, bar):
                yield f"{shown(name)} is in two files, and differs"


def _write_raw(
    path: str, arrays: Mapping[str, Stored], metadata: Mapping[str, str], bar: Any
) -> None:
    """Writes arrays under these names: see `write_contents`."""
    # The widest first, so that each begins at a multiple of its size.
    rows = sorted(arrays.items(), key=lambda row: (-(bits_of(row[1].dtype) or 0), row[0]))
    contents = {
        name: Content(array.dtype, array.shape, array.nbytes, functools.partial(_contents, array))
        for name, array in rows
    }
    write_contents(path, contents, metadata, bar)


def _contents(array: Stored) -> Iterator[bytes]:
    """The bytes of the elements, in order."""
    if array.is_plain:
        for begin in range(0, array.nbytes, _PIECE):
            yield array.read(begin, min(_PIECE, array.nbytes - begin))
        return
    # They don't lie in order. Each piece is from everywhere: the file is mapped.
    import numpy as np

    view: View = array.storage[1]  # only tensors of torch have strides
    dtype = numpy_dtype(array.dtype) if view.reading else np.dtype(f"V{view.itemsize}")
    size = view.end - view.begin
    flat = np.memmap(array.file.stream, np.uint8, "r", array.begin, (size,)).view(dtype)
    strides = [step * view.itemsize for step in view.strides]
    strided = np.lib.stride_tricks.as_strided(flat, view.shape, strides, writeable=False)
    for piece in _split(strided):
        for reading in view.reading:
            piece = np.conj(piece) if reading == "conj" else np.negative(piece)
        yield piece.tobytes()


def _split(array: Any) -> Iterator[Any]:
    """The parts of an array, in order, none of them large."""
    if array.nbytes <= _LARGE_PIECE:
        yield array
    elif array[0].nbytes > _LARGE_PIECE:
        for part in array:
            yield from _split(part)
    else:
        step = _LARGE_PIECE // array[0].nbytes
        for begin in range(0, len(array), step):
            yield array[begin : begin + step]
