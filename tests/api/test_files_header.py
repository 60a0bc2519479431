# SPDX-License-Identifier: Apache-2.0
"""The header of a file is checked by pydag: it takes what safetensors takes, and nothing else."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors
from safetensors.numpy import save_file

from pydag.files import load, save
from pydag.files.header import checked

ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
NEXT = {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}


def whole(header: Any, room: int) -> bytes:
    """A file of this header, which is text or what is written as JSON, and so many bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(room)


def is_taken(path: Path, content: bytes) -> bool:
    """Whether safetensors takes such a file."""
    path.write_bytes(content)
    try:
        with safetensors.safe_open(path, "np"):
            return True
    except safetensors.SafetensorError:
        return False


def is_accepted(content: bytes) -> bool:
    """Whether pydag accepts its header without asking."""
    size = int.from_bytes(content[:8], "little")
    return checked(content[8 : 8 + size], len(content) - 8 - size) is not None


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"__metadata__": {}},
        {"__metadata__": None},
        {"__metadata__": {"note": "text"}, "a": ENTRY, "b": NEXT},
        {"a": ENTRY, "é": NEXT},
        {"empty": {"dtype": "F32", "shape": [0, 3], "data_offsets": [0, 0]}, "a": ENTRY},
        {"one": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]}},
    ],
)
def test_usual_headers(path: Path, header: dict[str, Any]) -> None:
    """What writers write is accepted without asking, and safetensors takes it."""
    ends = [e["data_offsets"][1] for name, e in header.items() if name != "__metadata__"]
    content = whole(header, max(ends, default=0))
    assert is_accepted(content)
    assert is_taken(path, content)


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64"),
        *("complex64", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    ],
)
def test_all_types(path: Path, dtype: str) -> None:
    """Arrays of each type are accepted as safetensors writes them."""
    made = np.dtype(getattr(ml_dtypes, dtype, dtype))
    save(path, {"a": np.zeros((2, 3), made), "b": np.zeros((), made)})
    assert is_accepted(path.read_bytes())
    assert load(path)["a"].dtype == made


def _instead(field: str, *contents: Any) -> list[Any]:
    return [{"a": ENTRY | {field: content}} for content in contents]


def _whole(name: str, *contents: Any) -> list[Any]:
    return [{name: content} for content in contents]


@pytest.mark.parametrize(
    "header",
    [
        *_instead("shape", [2.0], [True, 2], [-1, -2], "2", {}, [], [3], [0], [2, None], [[2]]),
        *_instead("shape", [2, 2**70], [2**32, 2**32, 0]),
        *_instead("data_offsets", [0, 8.0], [0], [0, 8, 8], [8, 0], [4, 12], [False, 8], None),
        *_instead("data_offsets", "08", [0, 2**64], [0, 4]),
        *_instead("dtype", "F33", 3, None, ["F32"], "f32", "I32 "),
        *_whole("a", [], None, 3, "text", {}, {"dtype": "F32"}),
        *_whole("__metadata__", 0, [], "", False, {"a": 1}, {"a": None}),
        {"a": {"dtype": "", "shape": None, "data_offsets": [0, 0]}},
        {"a": {"dtype": "F32", "shape": None, "data_offsets": [0, 0]}},
        {"a": ENTRY, "b": NEXT | {"data_offsets": [0, 8]}},
        {"a": ENTRY, "b": NEXT | {"shape": [2.0]}},
        {"a": ENTRY, "b": NEXT | {"shape": [True, 2]}},
        {"a": ENTRY, "b": NEXT | {"data_offsets": [8.0, 16]}},
        *(b"[]", b"", b"null", b"{", b'{"a":NaN}', b"\xef\xbb\xbf{}", b" {}"),
        b'{"\\ud800":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        b'{"a\xff":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        b'{"__metadata__":{"a":"\\udc00"}}',
        b'{"__metadata__":{"a":"b","a":"c"}}',
        b'{"a":' * 200 + b"1" + b"}" * 200,
        b'{"a":' * 100_000,
        '{"__metadata__":{}}'.encode("utf-16-le"),
    ],
    ids=lambda header: repr(header)[:60],
)
def test_unusual_headers(path: Path, header: Any) -> None:
    """What isn't right is left to safetensors, whatever lies behind the header."""
    for room in (0, 8, 16):
        content = whole(header, room)
        assert not is_accepted(content) or is_taken(path, content)


def _damages(header: bytes, choose: random.Random) -> bytes:
    """The same text with some of its bytes changed, left out or repeated."""
    text = bytearray(header)
    pieces: list[Callable[[int], None]] = [
        lambda i: text.__setitem__(i, choose.choice(b'0123456789[]{},:"-. eE\\nullTtrue')),
        lambda i: text.__delitem__(i),
        lambda i: text.insert(i, choose.choice(b'0123456789[]{},:"-. \\')),
    ]
    for _ in range(choose.randint(1, 3)):
        choose.choice(pieces)(choose.randrange(len(text)))
    return bytes(text)


def test_damaged_headers(path: Path) -> None:
    """Of some thousand damaged headers none is accepted that safetensors refuses."""
    header: dict[str, Any] = {"__metadata__": {"k": "v"}, "a": ENTRY, "b": NEXT}
    header["c"] = {"dtype": "I8", "shape": [], "data_offsets": [16, 17]}
    text, choose = json.dumps(header, separators=(",", ":")).encode(), random.Random(3)
    accepted = 0
    for _ in range(4_000):
        damaged = _damages(text, choose)
        if b":-0" in damaged or b"[-0" in damaged or b",-0" in damaged:
            continue  # the whole number 0 to Python, and none to safetensors
        content = whole(damaged, 17)
        if is_accepted(content):
            accepted += 1
            assert is_taken(path, content), damaged
    assert accepted > 10


def test_arrays_in_a_row(path: Path) -> None:
    """Arrays of one type and shape, of several shapes, come back each with its own content."""
    tree: dict[str, Any] = {
        "scalars": [np.array(i, "f8") for i in range(5)],
        "rows": [np.arange(i, i + 3) for i in range(5)],
        "flags": [np.array([i % 2 == 0, True]) for i in range(5)],
        "empty": [np.zeros((0, i % 2), "f4") for i in range(5)],
        "deep": [np.full((1,) * 40, i, "i2") for i in range(3)],
        "halves": [np.full(2, i, ml_dtypes.bfloat16) for i in range(3)],
        "one": np.arange(7.0),
    }
    save(path, tree)
    for found in (load(path), load(path, tree)):
        for name, wanted in tree.items():
            for a, b in zip(found[name], wanted, strict=True):
                assert np.array_equal(a, b), name
                assert (np.shape(a), np.asarray(a).dtype) == (np.shape(b), np.asarray(b).dtype)
    part = load(path, tree, only=lambda x: x.ndim == 0)
    assert [x.tolist() for x in part["scalars"]] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_row_of_flags_that_are_none(path: Path) -> None:
    """Of several arrays of booleans the error names the one that holds another byte."""
    save_file({"a": np.ones(2, "?"), "b": np.ones(2, "?"), "c": np.ones(2, "?")}, path)
    content = bytearray(path.read_bytes())
    content[-3] = 7
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"the array 'b' can't be read.*0 or 1"):
        load(path)


def test_an_earlier_way_to_describe_an_array(path: Path) -> None:
    """`{"array": name}` in the place of a name is read as that array."""
    save(path, {"a": np.ones(2), "b": 3})
    opened: Any = safetensors.safe_open
    kept = opened(path, "np").metadata()
    name = next(iter(kept))
    kept[name] = json.dumps(json.loads(kept[name]) | {"leaves": [{"array": "a"}, {"value": 3}]})
    save_file({"a": np.ones(2)}, path, metadata=kept)
    found = load(path)
    assert (found["a"].tolist(), found["b"]) == ([1.0, 1.0], 3)
