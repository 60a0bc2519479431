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
ml_dtypes = pytest.importorskip("ml_dtypes")
from safetensors.numpy import load_file, save_file

from pydag.files import load, save

fcntl = pytest.importorskip("fcntl")

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


def test_the_bytes_of_the_safetensors_package(tmp_path: Path) -> None:
    """The header and the arrays lie as the package puts them, whatever types there are."""
    arrays = {
        "flag": np.array([True, False, True]),
        "b": np.arange(5, dtype=np.int8),
        "scale": np.array(2.0, dtype=ml_dtypes.bfloat16),
        "a": np.arange(6.0, dtype=np.float32).reshape(2, 3),
        "longest": np.arange(3, dtype=np.float64),
        "empty": np.zeros((0, 4), np.float32),
        "é": np.arange(2, dtype=np.uint16),
    }
    save(tmp_path / "ours", arrays, structure=False)
    save_file(arrays, tmp_path / "theirs")
    names = [str(tmp_path / name) for name in ("ours", "theirs")]
    ours, theirs = (safetensors.safe_open(name, "np") for name in names)
    found = sorted(ours.keys())
    assert found == sorted(theirs.keys())
    for name in found:
        assert ours.get_tensor(name).tobytes() == theirs.get_tensor(name).tobytes()
    sizes = [os.path.getsize(name) for name in names]
    assert sizes[0] == sizes[1]


def test_one_array_is_on_the_host_at_a_time(tmp_path: Path) -> None:
    """An array that has to be copied to the host is let go before the next one is copied."""
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

    save(tmp_path / "m", [OnDevice() for _ in range(20)])
    assert max(most) == 1
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


WIDE = ["\u6a21" * 85, "\u00e9" * 127, "\U0001f600" * 63, "a" * 255, os.fsdecode(b"\xff" * 200)]


@pytest.mark.parametrize("name", WIDE, ids=["three", "two", "four", "one", "undecodable"])
def test_names_as_long_as_the_system_allows(tmp_path: Path, name: str) -> None:
    """A file may have any name that the system takes, of 255 bytes; left-overs are found again."""
    killed_save(tmp_path / name)
    assert len(os.listdir(tmp_path)) == 1
    save(tmp_path / name, [np.full(3, 2.0)])
    assert os.listdir(tmp_path) == [name]
    assert load(tmp_path / name)[0].tolist() == [2.0] * 3


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


def test_an_alias_that_is_called_format(tmp_path: Path) -> None:
    """Without a structure it is the array's own name, since readers take the alias for no name."""
    x = np.arange(3.0)
    for tree in ({"a": x, "format": x, "z": x}, {"format": x, "pt": x}):
        for structure in (True, False):
            for path, size in ((tmp_path / "m", None), (tmp_path / f"{structure}{len(tree)}", 1)):
                save(path, tree, structure=structure, shard_size=size)
                found = load(path)
                assert set(found) == set(tree)
                assert all(y is found["format"] for y in found.values())
                apart = {name: x * n for n, name in enumerate(tree)}
                assert load(path, apart)["format"].tolist() == [0.0, 1.0, 2.0]


def test_a_writer_that_lives_keeps_its_file(tmp_path: Path) -> None:
    """A save to a path, while another one writes there, leaves the other's file alone."""
    path = tmp_path / "model.safetensors"
    found: list[list[str]] = []

    class SavesToo:
        shape, dtype, nbytes = (2,), np.dtype(float), 16

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            save(path, [np.zeros(2)])
            found.append(os.listdir(tmp_path))
            return np.ones(2)

    save(path, [SavesToo()])
    assert len(found[0]) == 2
    assert load(path)[0].tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == [path.name]


def test_no_file_stays_open(tmp_path: Path) -> None:
    """The locks of new files end when these are in their places, or are given up."""
    gc.collect()  # of earlier tests
    before = os.listdir("/proc/self/fd")
    save(tmp_path / "one", [np.ones(3)])
    save(tmp_path / "many", [np.ones(3)] * 3 + [np.zeros(3)], shard_size=24)
    with pytest.raises(TypeError):
        save(tmp_path / "none", [np.array(["text"])])
    assert len(os.listdir("/proc/self/fd")) == len(before)
