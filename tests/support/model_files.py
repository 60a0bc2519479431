# SPDX-License-Identifier: Apache-2.0
"""Writes the files of models as others write them: shards with an index, torch's zips, GGUF."""

import json
import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save_file

from pydag.files import check

INDEX = "model.safetensors.index.json"
EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"
LM = {"architectures": ["LlamaForCausalLM"]}


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    """Numbers without a pattern."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def found(path: Any, **options: Any) -> list[tuple[str, str]]:
    """The level and the text of each finding."""
    return [(finding.level, finding.text) for finding in check(path, **options)]


def write_file(folder: Path, arrays: Any, config: Any = None, metadata: Any = None) -> Path:
    """A safetensors file, with a config beside it; returns its path."""
    save_file(arrays, path := folder / "model.safetensors", metadata=metadata)
    if config is not None:
        write_config(folder, **config)
    return path


def shard(number: int, total: int = 2) -> str:
    return f"model-{number:05}-of-{total:05}.safetensors"


def write_config(folder: Path, **content: Any) -> None:
    (folder / "config.json").write_text(json.dumps(content))


def write_shards(folder: Path, *shards: Mapping[str, Any], index: Any = None) -> None:
    """Shards and their index; `index` has further rows, or other ones."""
    folder.mkdir(exist_ok=True)
    weight_map = {}
    for i, arrays in enumerate(shards, 1):
        save_file(dict(arrays), folder / shard(i, len(shards)), metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(arrays, shard(i, len(shards))))
    weight_map.update(index or {})
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


class View(NamedTuple):
    """A tensor: a part of a storage, in elements."""

    storage: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


class Raw(NamedTuple):
    """Instructions of a pickle, as they are."""

    code: bytes


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def _pickled(value: Any, storages: Mapping[str, Any]) -> bytes:
    if isinstance(value, Raw):
        return value.code
    if isinstance(value, View):
        size = storages[value.storage].size
        parts = ("storage", Raw(b"ctorch\nFloatStorage\n"), value.storage, "cpu", size)
        storage = Raw(_pickled(parts, storages) + b"Q")
        arguments: Any = (storage, value.offset, value.shape, value.strides, False, {})
        return b"ctorch._utils\n_rebuild_tensor_v2\n" + _pickled(arguments, storages) + b"R"
    if isinstance(value, dict):
        items = (item for pair in value.items() for item in pair)
        return b"}(" + b"".join(_pickled(item, storages) for item in items) + b"u"
    if isinstance(value, tuple | list):
        inner = b"".join(_pickled(item, storages) for item in value)
        return b"(" + inner + (b"t" if isinstance(value, tuple) else b"l")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool) or value is None:
        return {True: b"\x88", False: b"\x89", None: b"N"}[value]
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    return pickle.dumps(value, 2)[2:-1]


def write_torch(
    path: Path, tree: Any, storages: Mapping[str, Any], compression: int = zipfile.ZIP_STORED
) -> None:
    """One of torch's zip files, of float32. In `tree` stands a `View` for each tensor."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + _pickled(tree, storages) + b".")
        archive.writestr("archive/byteorder", b"little")
        for key, array in storages.items():
            archive.writestr(f"archive/data/{key}", np.asarray(array, np.float32).tobytes())
        archive.writestr("archive/version", b"3\n")


def write_wide_torch(path: Path, tree: Any, storages: Mapping[str, Any], hole: int) -> None:
    """Such a file of more than 65,535 records, each with its numbers in eight bytes.

    The storage "0" begins with `hole` zeros more, which need no room on the disk.
    """
    known = {**storages, "0": np.broadcast_to(np.float32(0), hole + storages["0"].size)}
    records = [("data.pkl", b"\x80\x02" + _pickled(tree, known) + b"."), ("version", b"3\n")]
    records += [(f"data/{key}", np.asarray(x, np.float32).tobytes()) for key, x in storages.items()]
    records += [(f"more/{i}", b"") for i in range(66_000)]
    table, most = [], 0xFFFFFFFF
    with open(path, "wb") as file:
        for record, data in records:
            offset, name = file.tell(), f"archive/{record}".encode()
            before = 4 * hole if record == "data/0" else 0
            sizes = struct.pack("<QQ", before + len(data), before + len(data))
            head = (0, 0, 0, 0, 0, most, most, len(name))
            file.write(struct.pack("<4s5H3I2H", b"PK\3\4", 45, *head, 20) + name)
            file.write(struct.pack("<HH", 1, 16) + sizes)
            file.seek(before, 1)
            file.write(data)
            row = struct.pack("<4s6H3I5H2I", b"PK\1\2", 45, 45, *head, 28, 0, 0, 0, 0, most)
            table.append(row + name + struct.pack("<HH", 1, 24) + sizes + struct.pack("<Q", offset))
        begin, rows, count = file.tell(), b"".join(table), len(table)
        wide = (44, 45, 45, 0, 0, count, count, len(rows), begin)
        file.write(rows + struct.pack("<4sQHHIIQQQQ", b"PK\6\6", *wide))
        file.write(struct.pack("<4sIQI", b"PK\6\7", 0, begin + len(rows), 1))
        file.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(rows), most, 0))


def whole(storage: str, array: Any) -> View:
    """The tensor that is all of a storage."""
    steps = (int(step) // array.itemsize for step in array.strides)
    return View(storage, tuple(array.shape), tuple(steps))


def _gguf_text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def write_gguf(path: Path, arrays: Mapping[str, Any], **offsets: int) -> None:
    """A GGUF file of float32 arrays; `offsets` moves some of them."""
    values = [
        ("general.architecture", struct.pack("<I", 8) + _gguf_text("llama")),
        ("general.alignment", struct.pack("<II", 4, 64)),
        ("tokens", struct.pack("<IIQ", 9, 8, 3) + b"".join(map(_gguf_text, ("a", "bc", "")))),
        ("scores", struct.pack("<IIQ", 9, 6, 3) + struct.pack("<3f", 1, 2, 3)),
    ]
    header = b"GGUF" + struct.pack("<IQQ", 3, len(arrays), len(values))
    header += b"".join(_gguf_text(key) + value for key, value in values)
    data = b""
    for name, array in arrays.items():
        data += b"\0" * (-len(data) % 64)
        shape = array.shape[::-1]
        header += _gguf_text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        header += struct.pack("<IQ", 0, offsets.get(name, len(data)))
        data += np.asarray(array, np.float32).tobytes()
    path.write_bytes(header + b"\0" * (-len(header) % 64) + data)
