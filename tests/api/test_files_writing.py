# SPDX-License-Identifier: Apache-2.0
"""How `pydag.files.save` writes: the bytes, one array at a time, and what killed writers leave."""

import errno
import gc
import os
import re
import socket
import subprocess
import sys
import types
import weakref
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
safetensors = pytest.importorskip("safetensors")
from operations import needs_posix
from safetensors.numpy import load_file

from pydag.__main__ import main
from pydag.files import directory, load, plan, replacing, save, shards

KILLED = """
import os, sys
import numpy as np
import pydag.files.plan as plan
from pydag.files import save
write = plan.write_contents
def killed(path, contents, metadata, bar):
    write(path, contents, metadata, bar)
    os.kill(os.getpid(), 9)
plan.write_contents = killed
options = {"shard_size": 24} if len(sys.argv) > 2 else {}
save(sys.argv[1], [np.full(3, 1.0)], **options)
"""


def killed_save(path: Path, *options: str) -> None:
    """Saves in a process that is killed before the file gets its name."""
    command = [sys.executable, "-P", "-c", KILLED, str(path), *options]
    assert subprocess.run(command, check=False).returncode == -9


@pytest.mark.parametrize("options", [{}, {"shard_size": 24}])
def test_an_interrupt_leaves_nothing(tmp_path: Path, options: Any) -> None:
    """An interrupt at any instruction that makes and writes new files leaves none of them."""
    path = tmp_path / "m"
    left = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_name not in ("make", "_write", "flush"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    save(path, [np.full(3, 0.0), np.full(3, 1.0)], **options)
    for at in range(1, 5000, 7):
        left = at
        known = sys.gettrace()
        sys.settrace(trace)
        try:
            save(path, [np.full(3, 0.0), np.full(3, 1.0)], **options)
        except KeyboardInterrupt:
            assert [p for p in tmp_path.rglob("*") if p.name.startswith(".")] == []
            assert load(path)[1].tolist() == [1.0] * 3
        else:
            break
        finally:
            sys.settrace(known)
    assert at > 100


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


@pytest.mark.parametrize("options", [{}, {"shard_size": 24}])
def test_a_system_like_windows(
    tmp_path: Path, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without locks and open folders, and where only what may be written is flushed, save works."""
    open_, fsync, flags = os.open, os.fsync, dict[int, int]()

    def opened(path: Any, access: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if os.path.isdir(path) and dir_fd is None:
            raise PermissionError(path)
        handle = open_(path, access, mode, dir_fd=dir_fd)
        flags[handle] = access
        return handle

    def flushed(handle: int) -> None:
        if flags.get(handle) == os.O_RDONLY:
            raise OSError(errno.EBADF, "it may not be written")
        fsync(handle)

    monkeypatch.setattr("pydag.files.replacing.fcntl", None)
    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "fsync", flushed)
    for number in (3.0, 4.0):
        save(tmp_path / "m", [np.full(3, number), np.zeros(3)], **options)
        assert load(tmp_path / "m")[0].tolist() == [number] * 3
    assert main(["check", str(tmp_path / "m"), "--write", str(tmp_path / "new"), "--quiet"]) == 0
    assert load(tmp_path / "new")[0].tolist() == [4.0] * 3
    assert [p for p in tmp_path.rglob("*") if p.name.startswith(".")] == []


@needs_posix
def test_what_a_killed_save_left_is_removed(tmp_path: Path) -> None:
    """The next save to that path removes it; the file of another target stays."""
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


@needs_posix
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
@needs_posix
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


@needs_posix
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


FIRST = "model-00001-of-00001.safetensors"
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


@needs_posix
def test_no_file_stays_open(tmp_path: Path) -> None:
    """The locks of new files end when these are in their places, or are given up."""
    gc.collect()  # of earlier tests
    before = os.listdir("/proc/self/fd")
    save(tmp_path / "one", [np.ones(3)])
    save(tmp_path / "many", [np.ones(3)] * 3 + [np.zeros(3)], shard_size=24)
    with pytest.raises(TypeError):
        save(tmp_path / "none", [np.array(["text"])])
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without locks, as on Windows, files and directories are written, and nothing else goes.

    Nobody knows there whether the writer of an unfinished file is alive. And Windows flushes only
    what is open for writing.
    """
    fcntl = pytest.importorskip("fcntl")
    fsync = os.fsync

    def fsync_as_windows(handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fsync_as_windows)
    monkeypatch.setattr(replacing, "fcntl", None)
    unfinished = [".model.safetensors.pydag-0123456789abcdef", f".{FIRST}.pydag-0123456789abcdef"]
    for name in unfinished:
        (tmp_path / name).write_text("of another writer")
    save(tmp_path / "model.safetensors", [np.ones(3)])
    save(tmp_path / "model.safetensors", [np.zeros(3)])
    assert load(tmp_path / "model.safetensors")[0].tolist() == [0.0] * 3
    for first in (1.0, 2.0):
        save(tmp_path, [np.full(3, first)], shard_size=24)
        assert load(tmp_path)[0].tolist() == [first] * 3
        assert len([name for name in os.listdir(tmp_path) if name[0] != "."]) == 2
    assert all((tmp_path / name).read_text() == "of another writer" for name in unfinished)
    with replacing.replacing(tmp_path / "folder", is_new=True, is_folder=True) as new:
        Path(new, "a").touch()
    assert os.listdir(tmp_path / "folder") == ["a"]


@pytest.mark.parametrize("is_free", [True, False])
def test_a_system_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_free: bool
) -> None:
    """There a file also gets a name that nothing has, and takes that of no other file."""

    def refuse(source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    (source, target) = (tmp_path / "new", tmp_path / "target")
    source.write_text("new")
    if is_free:
        replacing.put(str(source), str(target))
    else:
        target.write_text("old")
        for _ in range(2):
            with pytest.raises(FileExistsError):
                replacing.put(str(source), str(target))
            monkeypatch.undo()  # the same with links
    assert target.read_text() == ("new" if is_free else "old")


@pytest.mark.parametrize("options", [{}, {"shard_size": 24}])
def test_a_progress_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """`progress=True` counts the bytes of all arrays by tqdm; without tqdm nothing is written."""
    shown: list[Any] = []

    class Bar:
        def __init__(self, **options: Any) -> None:
            shown.append(options)

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: object) -> None:
            shown.append("closed")

        def update(self, nbytes: int) -> None:
            shown.append(nbytes)

    module: Any = types.ModuleType("tqdm")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", module)
    save(tmp_path / "model", [np.ones(3), np.zeros(3)], progress=True, **options)
    assert shown == [{"total": 48, "unit": "B", "unit_scale": True}, 24, 24, "closed"]
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match="tqdm"):
        save(tmp_path / "other", [np.ones(3)], progress=True, **options)
    assert os.listdir(tmp_path) == ["model"]


def test_limits_of_the_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, a header or an index that would be too large are errors, and nothing is written."""
    monkeypatch.setattr(plan, "LARGEST", 300)
    for name, words in {
        "a" * 300: "the names and the structure need",
        "\u6a21" * 100: "header",
    }.items():
        with pytest.raises(ValueError, match=words):
            save(tmp_path / "m", {name: np.ones(2)}, structure=False)
    monkeypatch.setattr(shards, "LARGEST", 100)
    with pytest.raises(ValueError, match="the index needs"):
        save(tmp_path / "m", [np.ones(2)], structure=False, shard_size=1)
    assert os.listdir(tmp_path) == []
    monkeypatch.undo()
    save(tmp_path / "m", [np.ones(2)], shard_size="1MB")
    monkeypatch.setattr(directory, "LARGEST", 100)
    with pytest.raises(ValueError, match="is no index: it has more than 100 bytes"):
        load(tmp_path / "m")


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong while a file is written names its path; the old one stays."""
    save(path := tmp_path / "m", [np.ones(2)])

    def fails(error: Exception) -> Any:
        def raises(*_: Any, **__: Any) -> Any:
            raise error

        return raises

    for place, name, error, words in (
        (os, "fsync", OSError(errno.ENOSPC, "No space"), f"No space left on device: '{path}'"),
        (os, "fsync", OSError("other"), "other"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, fails(error))
            with pytest.raises(OSError, match=re.escape(words)):
                save(path, [np.zeros(2)])
        assert load(path)[0].tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == ["m"]


def test_an_array_that_is_resized_meanwhile(tmp_path: Path) -> None:
    """A file that isn't as long as its header says, since an array was resized, is not kept."""
    save(path := tmp_path / "m", [np.ones(2)])
    resized = np.zeros(2)

    class Resizing(Untouched):
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            resized.resize(3, refcheck=False)
            return np.zeros(2)

    with pytest.raises(OSError, match=re.escape(f"'{path}'")):
        save(path, {"a": Resizing(), "b": resized})
    assert load(path)[0].tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == ["m"]


def test_an_array_that_cannot_be_read(tmp_path: Path) -> None:
    """A leaf that raises when its numbers are asked for is refused, and its path is named."""
    Failing = type("Failing", (Untouched,), {})  # noqa: N806  # it is a class
    with pytest.raises(TypeError, match=r"at tree\['a'\]: "):
        save(tmp_path / "m", {"a": Failing()})
    Described = type("Described", (), {"shape": (2,), "dtype": np.dtype(float)})  # noqa: N806  # too
    with pytest.raises(TypeError, match="only describes an array"):
        save(tmp_path / "m", {"a": Described()})


def test_an_alias_that_is_called_format(tmp_path: Path) -> None:
    """`format` in metadata says the framework: an alias of that name becomes the array's own."""
    w = np.ones(2)
    save(tmp_path / "m", {"a": w, "b": w, "format": w}, structure=False)
    with safetensors.safe_open(tmp_path / "m", "np") as file:
        assert list(file.keys()) == ["format"]
        assert file.metadata() == {"a": "format", "b": "format"}
    again = load(tmp_path / "m", {"a": w * 0, "b": w * 0, "format": w * 0})
    assert again["a"].tolist() == [1.0, 1.0]


def test_many_arrays_of_one_shape(tmp_path: Path) -> None:
    """Many arrays of one type and shape that lie in a row come back one by one, numbers too."""
    tree = {f"a{i}": np.full((2, 3), i) for i in range(100)} | {
        f"b{i}": np.float32(i) for i in range(100)
    }
    save(tmp_path / "m", tree)
    again = load(tmp_path / "m")
    assert all(np.array_equal(again[name], tree[name]) for name in tree)
    assert {again[name].shape for name in tree} == {(2, 3), ()}
    save(tmp_path / "n", {f"c{i}": np.full((), i) for i in range(100)}, structure=False)
    assert {name: int(x) for name, x in load(tmp_path / "n").items()} == {
        f"c{i}": i for i in range(100)
    }


def test_without_safetensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, or with an old one, one line says what to install."""
    monkeypatch.setattr(safetensors, "__version__", "0.7.1")
    with pytest.raises(ImportError, match=r"safetensors 0\.8 or newer"):
        save(tmp_path / "m", [np.ones(2)])
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"pip install"):
        save(tmp_path / "m", [np.ones(2)])


def test_locks_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file that another one locked or removed is made again; without locks it is kept."""
    fcntl = pytest.importorskip("fcntl")
    (path := tmp_path / "new").touch()
    with open(path, "wb") as other, open(path, "wb") as own:
        assert not replacing._is_taken(own.fileno(), str(path))
        assert replacing._is_taken(other.fileno(), str(path))
        path.unlink()
        assert replacing._is_taken(own.fileno(), str(path))
        with monkeypatch.context() as patch:
            patch.setattr(fcntl, "flock", lambda *_: os.chdir(tmp_path / "none"))  # an OSError
            assert not replacing._is_taken(own.fileno(), str(path))
            with replacing.folder_locked(str(tmp_path)) as is_alone:
                assert not is_alone
    assert replacing.version_of(str(path)) is None


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_a_folder_that_vanishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    """A folder that another writer removed is made again; where no file can be, none is left."""
    calls = iter(range(100))
    make = replacing.NewFile.make

    def fails_twice(file: Any) -> None:
        if next(calls) < 2:
            raise error(2, "none")
        make(file)

    monkeypatch.setattr(replacing.NewFile, "make", fails_twice)
    folder = tmp_path / "model"
    if error is FileNotFoundError:
        save(folder, [np.ones(2)], shard_size=1)
        assert load(folder)[0].tolist() == [1.0, 1.0]
    else:
        with pytest.raises(PermissionError):
            save(folder, [np.ones(2)], shard_size=1)
        assert os.listdir(tmp_path) == []
