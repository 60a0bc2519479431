# SPDX-License-Identifier: Apache-2.0
"""Directories of safetensors files with an index, read and written."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
safetensors = pytest.importorskip("safetensors")
from operations import needs_posix
from safetensors.numpy import load_file, save_file

import pydag
from pydag.files import load, save
from pydag.files.directory import INDEX
from pydag.files.header import STRUCTURE, aliases_in
from pydag.files.reading import File
from pydag.files.shards import number_of_bytes
from pydag.views.file import file_view

FIRST, SECOND = (f"model-0000{i}-of-00002.safetensors" for i in (1, 2))


@pytest.fixture
def w() -> Any:
    return np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def folder(tmp_path: Path, w: Any) -> Path:
    """A directory as Hugging Face writes it."""
    shards = {FIRST: {"embed.weight": w, "a": w + 1}, SECOND: {"b": w + 2, "c": w + 3}}
    for name, arrays in shards.items():
        save_file(arrays, tmp_path / name, metadata={"format": "pt"})
    write_index(tmp_path, {array: name for name, arrays in shards.items() for array in arrays})
    return tmp_path


def write_index(folder: Path, files: Any) -> None:
    text = json.dumps({"metadata": {"total_size": 96}, "weight_map": files})
    (folder / INDEX).write_text(text)


def index_of(folder: Path) -> Any:
    return json.loads((folder / INDEX).read_text())


def opened_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are opened from now on."""
    names: list[str] = []
    start = File.__init__

    def noting(self: File, path: Any) -> None:
        names.append(os.path.basename(path))
        start(self, path)

    monkeypatch.setattr(File, "__init__", noting)
    return names


@pytest.mark.parametrize("name", ["", INDEX])
def test_what_hugging_face_writes(folder: Path, w: Any, name: str) -> None:
    """A directory, or its index, is a flat dict of all names; the arrays are mapped."""
    found = load(folder / name)
    assert list(found) == ["embed.weight", "a", "b", "c"]
    assert [found[key].tolist() for key in found] == [(w + i).tolist() for i in range(4)]
    assert all(isinstance(x.base, np.memmap) for x in found.values())
    like = {"embed": {"weight": (zeros := np.zeros_like(w))}, "a": w, "b": w + 9, "c": w + 8}
    filled = load(folder / name, {**like, "a": w * 0, "head": zeros})
    assert filled["head"] is filled["embed"]["weight"]
    assert filled["c"].tolist() == (w + 3).tolist()


def test_a_directory_with_one_file(tmp_path: Path, w: Any) -> None:
    """One file in a directory is what is meant, whatever else is there; of two, neither."""
    (tmp_path / "config.json").write_text("{}")
    save(tmp_path / "model.safetensors", {"a": [w]})
    assert load(tmp_path)["a"][0].tolist() == w.tolist()
    save_file({"x": w}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match=r"'model\.safetensors', 'other\.safetensors'"):
        load(tmp_path)


def test_a_part_without_its_index(tmp_path: Path, w: Any) -> None:
    """The one file that is left of several is never taken for the whole."""
    save_file({"x": w}, tmp_path / FIRST)
    with pytest.raises(ValueError, match="a part of a model"):
        load(tmp_path)
    (tmp_path / FIRST).rename(tmp_path / "model-00001-of-00001.safetensors")
    assert load(tmp_path)["x"].tolist() == w.tolist()


def test_only_opens_what_it_needs(folder: Path, w: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`only=` opens just the files that have a selected array; the others may be missing."""
    (folder / FIRST).unlink()
    names = opened_files(monkeypatch)
    assert load(folder, only="['b']") == {
        "embed.weight": None,
        "a": None,
        "b": pytest.approx(w + 2),
        "c": None,
    }
    like = {"embed.weight": w, "a": w, "b": w * 0, "c": w}
    filled = load(folder, like, only="['b']")
    assert filled["b"].tolist() == (w + 2).tolist()
    assert filled["a"] is w
    assert set(names) == {SECOND}
    with pytest.raises(ValueError, match=FIRST):
        load(folder, only="*")


def test_an_alias_in_another_file(tmp_path: Path, w: Any) -> None:
    """`only=` finds an alias whose anchor is in a file that has no selected name."""
    save(tmp_path, {"embed": w, "head": w, "z": w + 1}, shard_size=24, structure=False)
    assert load(tmp_path, only="['head']")["head"].tolist() == w.tolist()
    untied = {"embed": w * 0, "head": w * 0, "z": w}
    found = load(tmp_path, untied, only="['head']")
    assert found["head"].tolist() == w.tolist()
    assert found["embed"] is untied["embed"]


def test_aliases_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening twice as many files looks at twice as many aliases, as each file has its own."""
    looked: list[int] = []

    def counting(metadata: Any, *rest: Any) -> Any:
        looked.append(len(metadata))
        return aliases_in(metadata, *rest)

    monkeypatch.setattr("pydag.files.directory.aliases_in", counting)
    monkeypatch.setattr("pydag.files.source.aliases_in", counting)
    counts = []
    for number in (10, 20):
        arrays = [np.full(3, i, np.float32) for i in range(number)]
        tree = {"a": arrays, "b": list(arrays)}
        save(tmp_path / f"{number}", tree, shard_size=12, structure=False)
        looked.clear()
        assert len(load(tmp_path / f"{number}")) == 2 * number
        counts.append(sum(looked))
    assert counts[1] <= 2 * counts[0]


CONTRADICTION = f"'head' is an alias of 'embed' by '{FIRST}', and of 'other' by '{SECOND}'"


def two_shards(folder: Path, w: Any, first: dict[str, str], second: dict[str, str]) -> None:
    """A directory of other programs, whose files have these metadata."""
    save_file({"embed": w}, folder / FIRST, first)
    save_file({"other": w + 1, "pt": w + 2}, folder / SECOND, second)
    write_index(folder, {"embed": FIRST, "other": SECOND, "pt": SECOND})


@pytest.mark.parametrize("only", [None, "['head']", "*", ["['embed']"], ["['embed']", "['head']"]])
@pytest.mark.parametrize("like", ["none", "apart", "tied"])
def test_files_that_contradict_each_other(tmp_path: Path, w: Any, only: Any, like: str) -> None:
    """An alias that two files explain differently is an error with both arrays and both files."""
    two_shards(tmp_path, w, {"head": "embed"}, {"head": "other"})
    arrays = {"embed": w, "other": w.copy(), "pt": w.copy()}
    trees = {"none": None, "apart": arrays | {"head": w.copy()}, "tied": arrays | {"head": w}}
    for strict in (True, False):
        with pytest.raises(ValueError, match=CONTRADICTION):
            load(tmp_path, trees[like], only=only, strict=strict)


def test_what_looks_like_a_contradiction(tmp_path: Path, w: Any) -> None:
    """Metadata of other programs are no aliases: `format`, what is an array, what means none."""
    first = {"format": "pt", "pt": "embed", "note": "one", "head": "embed"}
    second = {"format": "np", "pt": "other", "note": "two", "head": "none", "embed": "other"}
    two_shards(tmp_path, w, first, second)
    found = load(tmp_path)
    assert list(found) == ["embed", "other", "pt", "head"]
    assert found["head"] is found["embed"]
    assert found["pt"].tolist() == (w + 2).tolist()
    like = {"embed": w, "other": w * 0, "pt": w * 0, "head": w}
    assert load(tmp_path, like)["head"].tolist() == w.tolist()


def test_a_written_directory(tmp_path: Path, w: Any) -> None:
    """There are shards of at most this size, an index, and aliases in their anchors' files."""
    tree = {"embed": w, "head": w[:], "layers": [w + 1, w + 2], "big": np.zeros(100), "step": 7}
    folder = tmp_path / "model"
    save(folder, tree, shard_size=48)
    files = {f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)}
    assert set(os.listdir(folder)) == files | {INDEX}
    index = index_of(folder)
    assert index["metadata"]["total_size"] == 872
    assert index["weight_map"] == {
        "big": "model-00001-of-00003.safetensors",
        "embed": "model-00002-of-00003.safetensors",
        "layers.0": "model-00002-of-00003.safetensors",
        "layers.1": "model-00003-of-00003.safetensors",
    }
    for name, file in index["weight_map"].items():  # as other readers find them
        assert name in load_file(folder / file)
    with safetensors.safe_open(folder / "model-00002-of-00003.safetensors", "np") as opened:
        assert opened.metadata() == {"head": "embed"}
    again = load(folder)
    assert again["embed"] is again["head"]
    assert again["layers"][1].tolist() == (w + 2).tolist()
    assert again["step"] == 7
    assert str(file_view(folder)) == str(file_view(folder / INDEX))
    assert "['head']: *0" in str(file_view(folder))


@pytest.mark.parametrize(
    ("size", "number"),
    [
        *(
            (48, 48),
            ("48", 48),
            ("48B", 48),
            ("5KB", 5000),
            ("5GB", 5 * 10**9),
            ("0.5 MB", 500_000),
        ),
        *(("1KiB", 1024), ("2GiB", 2**31), ("1tb", 10**12), (np.int64(7), 7)),
    ],
)
def test_sizes(size: Any, number: int) -> None:
    """A shard's size is a number of bytes, or text with a unit; KB is a thousand."""
    assert number_of_bytes(size) == number


@pytest.mark.parametrize("size", [0, -1, "", "GB", "5XB", "-5GB", "0KB", True, 5.0, b"5GB"])
def test_sizes_that_are_none(tmp_path: Path, w: Any, size: Any) -> None:
    """Anything else is an error that names it, and no directory is made."""
    with pytest.raises((ValueError, TypeError), match="shard_size="):
        save(tmp_path / "m", [w], shard_size=size)
    assert os.listdir(tmp_path) == []


def test_a_smaller_model_in_its_place(tmp_path: Path, w: Any) -> None:
    """Files of the old model that the new one doesn't need go; what is no part of it stays."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "adapter.safetensors").write_text("another one's")
    save(tmp_path / "model.safetensors", {"a": w})
    save(tmp_path, [w + i for i in range(4)], shard_size=24)
    assert len(list(tmp_path.glob("model*.safetensors"))) == 4
    mapped = load(tmp_path)
    save(tmp_path, [w + i for i in range(5, 7)], shard_size=24)
    assert sorted(os.listdir(tmp_path)) == [
        "adapter.safetensors",
        "config.json",
        FIRST,
        SECOND,
        INDEX,
    ]
    assert [x.tolist() for x in load(tmp_path)] == [(w + 5).tolist(), (w + 6).tolist()]
    assert [x.tolist() for x in mapped] == [(w + i).tolist() for i in range(4)]


def test_a_leaf_that_is_refused(tmp_path: Path, w: Any) -> None:
    """A leaf of a later shard that can't be written leaves nothing behind."""
    with pytest.raises(TypeError, match=r"at tree\[1\]"):
        save(tmp_path / "m", [w, np.array(["text"])], shard_size=1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"embed.weight": FIRST, "a": FIRST, "b": "model-00009.safetensors"},
            ["model-00009.safetensors", "'b'"],
        ),
        ({"a": FIRST, "b": SECOND, "q": FIRST}, ["'q'", FIRST]),
        ({"a": FIRST, "embed.weight": SECOND, "b": SECOND, "c": SECOND}, ["'embed.weight'", FIRST]),
        ({"a": FIRST, "b": SECOND, "c": SECOND}, ["'embed.weight'", FIRST]),
        ({"a": "../secret.safetensors"}, ["'a'", "../secret.safetensors"]),
        ({"a": "/etc/passwd"}, ["'a'", "/etc/passwd"]),
        ({"a": "sub\\x.safetensors"}, ["'a'"]),
        ({"a": ".."}, ["'a'"]),
        ({"a": "nul\0"}, ["'a'"]),
        ({"a": INDEX}, ["'a'", "only a file beside the index"]),
        ({"a": 3}, ["weight_map"]),
        ({"a": None}, ["weight_map"]),
        ({}, ["names no array"]),
        (["a"], ["weight_map"]),
        (None, ["weight_map"]),
    ],
)
def test_an_index_that_is_wrong(folder: Path, files: Any, words: list[str]) -> None:
    """An index that names what isn't there, or leads out of its directory, is a ValueError."""
    write_index(folder, files)
    for strict in (True, False):
        with pytest.raises(ValueError, match=INDEX) as caught:
            load(folder, strict=strict)
        assert all(word in str(caught.value) for word in words)


def test_one_name_in_two_files(folder: Path, w: Any) -> None:
    """A name that stands in two files is an error with both."""
    save_file({"b": w, "c": w, "a": w}, folder / SECOND)
    with pytest.raises(ValueError, match=f"'a' is in '{SECOND}', and by the index in '{FIRST}'"):
        load(folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"weight_map": {"a": "x", "a": "y"}}', "[" * 10**5]
)
def test_an_index_that_is_none(folder: Path, text: str) -> None:
    """What is no index is a ValueError, also where a name stands twice in it."""
    (folder / INDEX).write_text(text)
    with pytest.raises(ValueError, match="no index of safetensors files"):
        load(folder)


@needs_posix
def test_what_is_no_file(folder: Path) -> None:
    """Where an index, or what it names, is a directory or a pipe, the error of the system tells."""
    for name in (FIRST, INDEX):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(OSError, match=f"no regular file.*{name}"):
            load(folder)
        (folder / name).unlink()
        (folder / name).mkdir()
        with pytest.raises(IsADirectoryError, match=name):
            load(folder)


@needs_posix
def test_links_and_damage(folder: Path, tmp_path: Path) -> None:
    """Links to files elsewhere are followed, loops are the system's error, damage is an error."""
    (folder / FIRST).rename(tmp_path / "blob")  # as in the cache of Hugging Face
    (folder / FIRST).symlink_to(tmp_path / "blob")
    assert len(load(folder)) == 4
    (folder / FIRST).unlink()
    (folder / FIRST).symlink_to(FIRST)
    with pytest.raises(OSError, match="symbolic links"):
        load(folder)
    (folder / FIRST).unlink()
    (folder / FIRST).write_bytes((folder / SECOND).read_bytes()[:-1])
    with pytest.raises(ValueError, match="no whole safetensors file"):
        load(folder)


def test_an_old_index_deletes_no_other_files(folder: Path, w: Any) -> None:
    """What an old index names is deleted only where it is a safetensors file."""
    (folder / "notes.txt").write_text("mine")
    write_index(folder, {"a": "notes.txt", "b": "old.safetensors"})
    (folder / "old.safetensors").write_bytes(b"")
    save(folder, [w], shard_size=100)
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "old.safetensors").exists()


def test_structures_are_found_in_the_index(tmp_path: Path, w: Any) -> None:
    """The structure stands in the index, and a shard alone is an ordinary file."""
    save(tmp_path, pydag.dag_map(lambda x: x, [w, {"x": w + 1}]), shard_size=24)
    assert STRUCTURE in index_of(tmp_path)["metadata"]
    assert list(load(tmp_path / FIRST)) == ["0"]
