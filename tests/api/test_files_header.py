# SPDX-License-Identifier: Apache-2.0
"""The header of a file is checked by pydag: it takes what safetensors takes, and nothing else."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors

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
