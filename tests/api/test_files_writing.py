# SPDX-License-Identifier: Apache-2.0
"""How `pydag.files.save` writes: the bytes, one array at a time, and what killed writers leave."""

import gc
import os
import socket
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
safetensors = pytest.importorskip("safetensors")
from safetensors.numpy import load_file

from pydag.files import load, save

KILLED = """
import os, sys
import numpy as np
import pydag.files.one_file as one_file
from pydag.files import save
write = one_file.write_contents
def killed(path, contents, metadata, bar):
    write(path, contents, metadata, bar)
    os.kill(os.getpid(), 9)
one_file.write_contents = killed
options = {"shard_size": 24} if len(sys.argv) > 2 else {}
save(sys.argv[1], [np.full(3, 1.0)], **options)
"""


def killed_save(path: Path, *options: str) -> None:
    """Saves in a process that is killed before the file gets its name."""
    command = [sys.executable, "-P", "-c", KILLED, str(path), *options]
    assert subprocess.run(command, check=False).returncode == -9


@pytest.mark.parametrize(("options", "at_once"), [({}, 1), ({"shard_size": "16KB"}, 4)])
def test_few_arrays_are_on_the_host_at_a_time(tmp_path: Path, options: Any, at_once: int) -> None:
    """An array that is copied to the host is let go before the next one, or the next shard."""
    alive: list[int] = []
    most: list[int] = []

    class OnDevice:
        shape, dtype, nbytes = (1000,), np.dtype(float), 8000

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            array = np.full(1000, 3.0)
            alive.append(1)
            weakref.finalize(array, alive.pop)
            most.append(len(alive))
            return array

    save(tmp_path / "m", [OnDevice() for _ in range(20)], **options)
    assert max(most) <= at_once
    assert load(tmp_path / "m")[19].tolist() == [3.0] * 1000


def test_numbers_that_are_not_what_the_array_says(tmp_path: Path) -> None:
    """An object whose numbers have another type or shape is refused, and nothing is left."""

    class Liar:
        shape, dtype, nbytes = (3,), np.dtype(np.float32), 12

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.zeros(4, np.float32)

    with pytest.raises(TypeError, match=r"at tree\['a'\]: its numbers are float32\[4\]"):
        save(tmp_path / "m", {"a": Liar()})
    assert os.listdir(tmp_path) == []


def test_what_a_killed_save_left_is_removed(tmp_path: Path) -> None:
    """By the next save to that path; the file of another target stays."""
    path, other = tmp_path / "model.safetensors", tmp_path / "other.safetensors"
    save(path, [np.zeros(2)])
    for target in (path, other, path):
        killed_save(target)
    left = sorted(os.listdir(tmp_path))
    assert len(left) == 3
    assert load(path)[0].tolist() == [0.0, 0.0]
    save(path, [np.ones(2)])
    assert sorted(os.listdir(tmp_path)) == [next(n for n in left if "other" in n), path.name]
    assert load(path)[0].tolist() == [1.0, 1.0]


def test_what_a_killed_save_left_in_a_directory(tmp_path: Path) -> None:
    """The files of a directory are tidied up in the same way, and nothing else in it."""
    folder = tmp_path / "model"
    folder.mkdir()
    kept = (".model.safetensors.txt", ".readme.pydag-0123456789abcdef", "config.json")
    for name in kept:
        (folder / name).write_text("not ours")
    killed_save(folder, "shards")
    assert len(os.listdir(folder)) == 4
    save(folder, [np.ones(3), np.ones(3)], shard_size=24)
    assert len(os.listdir(folder)) == 6
    assert all((folder / name).read_text() == "not ours" for name in kept)


@pytest.mark.parametrize("shards", [False, True])
def test_left_overs_that_are_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: bool
) -> None:
    """A pipe, a socket, a directory or a link is never opened or removed, whatever its name is."""
    name = "model-00001-of-00001.safetensors" if shards else "model.safetensors"
    target = tmp_path / "target"
    target.write_text("mine")
    names = [tmp_path / f".{name}.pydag-{i:016x}" for i in range(5)]
    os.mkfifo(names[0])
    sock = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(tmp_path)
    sock.bind(names[1].name)  # such paths are short
    names[2].mkdir()
    names[3].symlink_to(target)
    names[4].symlink_to(names[0])
    os.mkfifo(tmp_path / "model-00000000-00001-of-00002.safetensors")
    before = set(os.listdir(tmp_path))
    if shards:
        save(tmp_path, [np.ones(3)], shard_size=24)
    else:
        save(tmp_path / name, [np.ones(3)])
    sock.close()
    index = {"model.safetensors.index.json"} if shards else set()
    assert set(os.listdir(tmp_path)) == before | {name} | index
    assert target.read_text() == "mine"


class Untouched:
    """An array that is never copied to the host."""

    shape, dtype, nbytes = (2,), np.dtype(float), 16

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise AssertionError


def test_targets_that_are_no_files(tmp_path: Path) -> None:
    """A pipe, a device, a directory and a name that is too long are refused before any work."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "folder").mkdir()
    for name, words in {
        "pipe": "no regular file",
        "link": "no regular file",
        "/dev/null": "no regular file",
        "folder": "Is a directory",
        "\u6a21" * 86: "File name too long",
    }.items():
        with pytest.raises(OSError, match=words):
            save(tmp_path / name, [Untouched()])
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "pipe"]
    for name in ("pipe", "link", "/dev/null"):
        with pytest.raises(OSError, match="no regular file"):
            load(tmp_path / name)


ODD = np.frombuffer(b"\x02\x00\xff\x01", bool)


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (ODD, [True, False, True, True]),
        (ODD[::2], [True, True]),
        (ODD.reshape(2, 2).T, [[True, True], [False, True]]),
        (ODD[:1].reshape(()), True),
        (ODD[1:2], [False]),
        (ODD[:0], []),
    ],
)
def test_booleans_of_other_bytes(tmp_path: Path, array: Any, values: Any) -> None:
    """Every byte but 0 is True to NumPy, and is written as 1: no reader takes another one."""
    save(tmp_path / "m", {"a": array})
    save(tmp_path / "d", {"a": array}, shard_size=1)
    for path in (tmp_path / "m", tmp_path / "d"):
        found = load(path)["a"]
        assert found.tolist() == values
        assert found.view(np.uint8).max(initial=0) <= 1
    assert load_file(tmp_path / "m")["a"].tolist() == values


def test_no_file_stays_open(tmp_path: Path) -> None:
    """The locks of new files end when these are in their places, or are given up."""
    gc.collect()  # of earlier tests
    before = os.listdir("/proc/self/fd")
    save(tmp_path / "one", [np.ones(3)])
    save(tmp_path / "many", [np.ones(3)] * 3 + [np.zeros(3)], shard_size=24)
    with pytest.raises(TypeError):
        save(tmp_path / "none", [np.array(["text"])])
    assert len(os.listdir("/proc/self/fd")) == len(before)
