# SPDX-License-Identifier: Apache-2.0
"""Writes a model anew: each array once, and its other names as alias metadata."""

import contextlib
import json
import os
import shutil
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from pydag.files.package import STRUCTURE
from pydag.files.replacing import replacing
from pydag.files.shards import write_shards

from .aliases import check_aliases
from .compare import are_equal
from .config import CONFIG, with_ties
from .finding import Damage, Finding, shown, size_text
from .head_checks import check_heads
from .heads import Ends
from .model import Model
from .opening import open_model
from .pairs import Pairs
from .progress import Bar
from .raw_writer import write_raw
from .search import find_copies
from .stored import Stored


def write_once(path: str, out: str) -> str:
    """Writes a model to another place, a file as a file and a directory as a directory.

    Arrays that differ are written as they are, whatever the config or the metadata say.

    Returns:
        What was written, in words.

    Raises:
        ValueError: The model isn't whole, or `out` would replace a part of it, or of another one.
        OSError: Something can't be read or written.
    """
    model = open_model(path)
    bar = Bar(True)
    try:
        _check_whole(model, bar)
        _check_target(model, out)
        pairs = Pairs()
        findings = [
            *check_aliases(model, pairs, bar),
            *check_heads(model, pairs, bar),
            *find_copies(model, pairs, bar),
        ]
        copy = _Copy(model, pairs)
        config = _config(model, findings)
        bar.expect(copy.size())
        if model.index is not None:
            largest = max(_size(container.arrays.values()) for container in model.containers)
            _write_folder(out, lambda: write_shards(out, copy, max(largest, 1), bar), config)
        elif os.path.isdir(path):
            name = os.path.splitext(os.path.basename(model.containers[0].path))[0]
            file = os.path.join(out, f"{name}.safetensors")
            _write_folder(out, lambda: _write_file(file, copy, None, bar), config)
        else:
            _write_file(out, copy, config, bar)
        bar.close()
        saved = sum(array.nbytes for array in model.arrays.values()) - copy.size()
        said = f"{out}: {len(copy.arrays)} arrays, {size_text(copy.size())}"
        said += f", {size_text(saved)} less" if saved > 0 else ""
        if any(container.has_values for container in model.containers):
            said += "; values that are no arrays are left out"
        if config is not None and config[1]:
            said += f"; {CONFIG} says tied now, as head and embedding are one array"
        return said
    finally:
        bar.close()
        model.close()


class _Copy:
    """What is written: see `shards.Writable`."""

    def __init__(self, model: Model, pairs: Pairs) -> None:
        anchors = _anchors(model, pairs)
        self.arrays = {name: model.arrays[name] for name in anchors if anchors[name] == name}
        self.aliases = {name: anchor for name, anchor in anchors.items() if anchor != name}
        for alias, name in model.aliases.items():
            if name in anchors and alias not in model.arrays:
                self.aliases[alias] = anchors[name]
        text = next((c.structure for c in model.containers if c.structure is not None), None)
        self.structure = text if text is None else _with_anchors(text, anchors)
        self.metadata: dict[str, str] = {"format": "pt"} if model.kind == "torch" else {}
        for container in model.containers:
            self.metadata.update(container.metadata)

    def names(self) -> Iterable[str]:
        return self.arrays

    def size(self) -> int:
        return _size(self.arrays.values())

    def size_of(self, name: str) -> int:
        return self.arrays[name].nbytes

    def write(
        self, temporary: str, names: Iterable[str], metadata: Mapping[str, str], path: str, bar: Any
    ) -> None:
        arrays = {name: self.arrays[name] for name in names}
        write_raw(temporary, arrays, self.metadata | dict(metadata), bar)


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


def _with_anchors(text: str, anchors: Mapping[str, str]) -> str:
    """The structure that pydag wrote, whose leaves name other arrays now."""
    whole = json.loads(text)
    leaves = whole.get("leaves")
    for i, leaf in enumerate(leaves if type(leaves) is list else ()):
        if type(leaf) is str:
            leaves[i] = anchors.get(leaf, leaf)
        elif type(leaf) is dict and type(name := leaf.get("scalar")) is str:
            leaf["scalar"] = anchors.get(name, name)
    return json.dumps(whole, separators=(",", ":"))


def _check_whole(model: Model, bar: Bar) -> None:
    for finding in model.findings:
        if isinstance(finding, Damage):
            raise ValueError(f"{model.path!r}: nothing is written: {finding.text}")
    unwritable = [c.unwritable for c in model.containers if c.unwritable is not None]
    if unwritable:
        raise ValueError(f"{model.path!r}: nothing is written: {unwritable[0]}")
    if model.kind == "GGUF":
        raise ValueError(f"{model.path!r}: nothing is written: GGUF files are only read")
    if model.is_part:
        raise ValueError(
            f"{model.path!r}: nothing is written: it is a part of a model; give its directory"
        )
    for container in model.containers:
        for name, array in container.arrays.items():
            kept = model.arrays[name]
            if kept is not array and not are_equal(kept, array, bar):
                why = f"{shown(name)} is in two files, and differs"
                raise ValueError(f"{model.path!r}: nothing is written: {why}")


def _check_target(model: Model, out: str) -> None:
    own = [model.path, *(container.path for container in model.containers)]
    if model.config is not None:
        own.append(os.path.join(model.folder, CONFIG))
    if os.path.realpath(out) in map(os.path.realpath, own) or any(
        os.path.exists(out) and os.path.exists(path) and os.path.samefile(out, path) for path in own
    ):
        raise ValueError(f"{out!r} is what is read: write to another place")
    is_folder = model.index is not None or os.path.isdir(model.path)
    if is_folder and os.path.lexists(out) and (not os.path.isdir(out) or os.listdir(out)):
        raise ValueError(f"{out!r} is no empty directory")
    if not is_folder and os.path.isdir(out):
        raise ValueError(f"{out!r} is a directory: a file is written as a file")
    if not is_folder and model.config is not None:
        source, target = (
            os.path.join(folder, CONFIG) for folder in (model.folder, os.path.dirname(out) or ".")
        )
        if os.path.exists(target) and not os.path.samefile(source, target):
            with open(source, "rb") as one, open(target, "rb") as other:
                if one.read() != other.read():
                    raise ValueError(f"beside {out!r} there is another {CONFIG}")


def _config(model: Model, findings: Iterable[Finding]) -> tuple[bytes, bool] | None:
    """The configuration to write, and whether it is another one; None: there is none."""
    if model.config is None:
        return None
    with open(os.path.join(model.folder, CONFIG), "rb") as file:
        text = file.read()
    is_tied_now = any(finding.level == "doubt" and finding.nbytes for finding in findings)
    return (with_ties(text.decode()).encode(), True) if is_tied_now else (text, False)


def _write_config(folder: str, config: tuple[bytes, bool] | None) -> None:
    if config is not None:
        with replacing(os.path.join(folder, CONFIG)) as temporary, open(temporary, "wb") as file:
            file.write(config[0])


def _write_folder(out: str, write: Any, config: tuple[bytes, bool] | None) -> None:
    """Writes a directory; if that fails, there is none."""
    is_new = not os.path.isdir(out)
    os.makedirs(out, exist_ok=True)
    try:
        _write_config(out, config)
        write()
    except BaseException:
        for name in os.listdir(out):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(out, name))
        if is_new:
            shutil.rmtree(out, ignore_errors=True)
        raise


def _write_file(out: str, copy: _Copy, config: tuple[bytes, bool] | None, bar: Any) -> None:
    metadata = dict(copy.aliases)
    if copy.structure is not None:
        metadata[STRUCTURE] = copy.structure
    with replacing(out) as temporary:
        copy.write(temporary, copy.names(), metadata, out, bar)
        folder = os.path.dirname(out) or "."
        if config is not None and (config[1] or not os.path.exists(os.path.join(folder, CONFIG))):
            _write_config(folder, config)
