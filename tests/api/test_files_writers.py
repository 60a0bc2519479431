# SPDX-License-Identifier: Apache-2.0
"""Several programs at one directory of shards: writers, readers, and writers that are killed."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("safetensors")
fcntl = pytest.importorskip("fcntl")

from operations import KILLED_AT

import pydag.files.replacing as replacing
from pydag.files import check, load, save
from pydag.files.directory import INDEX
from pydag.files.reading import File

KILLED_ANYWHERE = """
import os, shutil, sys
import numpy as np
from pydag.files import load, save

os.fsync = lambda handle: None  # it is slow, and of no use against a kill
folder, old, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
events = {"open", "fcntl.flock"} | {f"os.{x}" for x in "rename remove mkdir chmod listdir".split()}

def model(first, number):
    return {"a": [np.full(3, first + i) for i in range(number)], "first": first}

def save_old():
    shutil.rmtree(folder, ignore_errors=True)
    if old == "file":
        os.mkdir(folder)
        save(os.path.join(folder, "model.safetensors"), model(0.0, 2))
    elif old != "none":
        save(folder, model(0.0, int(old)), shard_size=24)

step, code = 0, 7
while code == 7:
    save_old()
    code = exit_code(step, lambda: save(folder, model(10.0, number), shard_size=24))
    try:
        found = load(folder)
        found = [found["first"], *(float(x[0]) for x in found["a"])]
    except (ValueError, OSError) as error:
        found = type(error).__name__
    save(folder, model(20.0, 3), shard_size=24)
    print(code, found, len(os.listdir(folder)), sep=";")
    step += 1
"""


@pytest.mark.parametrize(
    ("old", "number"), [("2", 2), ("1", 1), ("file", 2), ("none", 2), ("none", 1)]
)
def test_a_save_that_is_killed_anywhere(tmp_path: Path, old: str, number: int) -> None:
    """There is the old model or the new one, whole; the next save leaves nothing of the rest."""
    command = [
        sys.executable,
        "-P",
        "-c",
        KILLED_AT + KILLED_ANYWHERE,
        str(tmp_path / "m"),
        old,
        str(number),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    states = [line.split(";") for line in run.stdout.splitlines()]
    assert len(states) > 15
    assert states[-1][0] == "0"
    assert {files for _, _, files in states} == {"4"}
    before = "[0.0, 0.0]" if old == "1" else "[0.0, 0.0, 1.0]"
    after = str([10.0, *(10.0 + i for i in range(number))])
    nothing = {"FileNotFoundError", "IsADirectoryError", "ValueError"}
    found = {state for _, state, _ in states}
    assert after in found
    assert found - nothing == found if old != "none" else found - nothing == {after}
    assert found <= {before, after} | (nothing if old == "none" else set())


WRITER = """
import sys
import numpy as np
from pydag.files import save
first = float(sys.argv[2])
for n in range(12):
    tree = {f"w{i}": np.full(9, first + 2 * n) for i in range(2 + (n + int(first)) % 3)}
    save(sys.argv[1], tree, shard_size=72, structure=bool(n % 2))
"""


@pytest.mark.parametrize("only", [None, "*w1*"])
def test_two_writers_and_a_reader(tmp_path: Path, only: Any) -> None:
    """A reader gets a whole model, or an OSError that says why; at the end no file is too many."""
    folder = tmp_path / "model"
    save(folder, {"w0": np.zeros(9), "w1": np.zeros(9)}, shard_size=72)
    command = [sys.executable, "-P", "-c", WRITER, str(folder)]
    writers = [subprocess.Popen([*command, first]) for first in ("0", "1")]
    found: Counter[str] = Counter()
    reports: Counter[str] = Counter()
    kept: list[Any] = []
    while any(writer.poll() is None for writer in writers):
        try:
            tree = load(folder, only=only)
            reports[str(check(folder).ok)] += 1
        except OSError as error:
            found[str(error.strerror)] += 1
            continue
        arrays = [x for x in tree.values() if x is not None]
        found[f"{len({x[0] for x in arrays})} model"] += 1
        kept.append((arrays, arrays[0][0]))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert found["1 model"] > 5
    assert set(found) <= {"1 model", "it is being replaced while it is read"}
    assert set(reports) == {"True"}
    assert all((x == value).all() for arrays, value in kept for x in arrays)  # still mapped
    files = set(json.loads((folder / INDEX).read_text())["weight_map"].values())
    assert set(os.listdir(folder)) == files | {INDEX}
    assert check(folder).ok


def model(first: float, number: int = 2) -> dict[str, Any]:
    return {f"w{i}": np.full(3, first + i) for i in range(number)}


def first_of(folder: Path) -> float:
    return float(load(folder)["w0"][0])


def replaced_at(monkeypatch: pytest.MonkeyPatch, folder: Path, times: int) -> None:
    """The next files are opened just after another model was saved in the place of their own."""
    start = File.__init__
    numbers = iter(range(1, times + 1))

    def opening(self: File, path: Any) -> None:
        if (number := next(numbers, None)) is not None:
            save(folder, model(10.0 * number), shard_size=24)
        start(self, path)

    monkeypatch.setattr(File, "__init__", opening)


@pytest.mark.parametrize("options", [{}, {"like": model(0.0)}, {"only": "*"}, {"only": "*w*"}])
def test_a_directory_that_is_replaced_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any
) -> None:
    """The directory is read again, a few times; then an OSError tells why."""
    save(tmp_path, model(0.0), shard_size=24)
    replaced_at(monkeypatch, tmp_path, 2)
    assert load(tmp_path, **options)["w1"].tolist() == [21.0] * 3
    replaced_at(monkeypatch, tmp_path, 100)
    with pytest.raises(OSError, match="it is being replaced while it is read"):
        load(tmp_path, **options)


def test_a_first_save_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before there is an index a directory is being replaced, or the old file in it is read."""
    place = replacing.NewFile.replace
    said: list[Any] = []

    def reading(self: Any, target: str, old: Any = None) -> None:
        place(self, target, old)
        try:
            said.append(first_of(tmp_path))
        except OSError as error:
            said.append(error.strerror)

    monkeypatch.setattr("pydag.files.directory._WAITS", (0.0,))
    monkeypatch.setattr(replacing.NewFile, "replace", reading)
    save(tmp_path, model(1.0), shard_size=24)
    why = "it is being replaced while it is read"
    assert said == [why, why, 1.0]


def test_a_writer_that_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save waits for another one that puts its files into their places, but not for ever."""
    save(tmp_path, model(1.0), shard_size=24)
    before = set(os.listdir(tmp_path))
    monkeypatch.setattr(replacing, "_PATIENCE", 0)
    with replacing.folder_locked(str(tmp_path)) as is_alone:
        assert is_alone
        assert first_of(tmp_path) == 1.0
        with pytest.raises(OSError, match=r"for 0 seconds another save has been putting"):
            save(tmp_path, model(2.0), shard_size=24)
    assert set(os.listdir(tmp_path)) == before
    save(tmp_path, model(2.0), shard_size=24)
    assert first_of(tmp_path) == 2.0


def test_a_file_that_cannot_be_placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file doesn't get its name, the old model is there, and nothing of the new one."""
    save(tmp_path, model(0.0), shard_size=24)
    before = set(os.listdir(tmp_path))
    place = os.replace
    for fails_at in (1, 2, 3):
        calls = iter(range(1, 4))

        def failing(*paths: Any, calls: Any = calls, fails_at: int = fails_at) -> None:
            if next(calls) == fails_at:
                raise OSError(28, "No space left on device")
            place(*paths)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", failing)
            with pytest.raises(OSError, match="No space left"):
                save(tmp_path, model(7.0), shard_size=24)
        assert set(os.listdir(tmp_path)) == before
        assert first_of(tmp_path) == 0.0
