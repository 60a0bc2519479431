# SPDX-License-Identifier: Apache-2.0
"""`python -m pydag check PATH --write OUT`: what is tied is written once, and only to OUT."""

import os
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("safetensors")
from model_files import (
    EMBED,
    HEAD,
    INDEX,
    View,
    numbers,
    shard,
    whole,
    write_config,
    write_gguf,
    write_shards,
    write_torch,
)
from safetensors.numpy import load_file, save_file

import pydag
from pydag.__main__ import main
from pydag.files import check


@pytest.fixture
def e() -> Any:
    return numbers(40, 16)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    code = main([*map(str, arguments)])
    return code, *capsys.readouterr()


def test_write_a_file(tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """--write puts what is tied into the file once, and keeps other metadata and what differs."""
    path, out = tmp_path / "m.safetensors", tmp_path / "out" / "m.safetensors"
    out.parent.mkdir()
    arrays = {EMBED: e, HEAD: e.copy(), "x": e + 1, "y": e + 2, "z": np.arange(3, dtype=np.int8)}
    save_file(arrays, path, metadata={"format": "pt", "w": "x", "gone.weight": "none.weight"})
    write_config(tmp_path, tie_word_embeddings=True, more=[1])
    before = path.read_bytes(), (tmp_path / "config.json").read_bytes()
    code, said, _ = run(capsys, "check", path, "--write", out)
    assert code == 0
    assert said.splitlines()[-1] == f"{out}: 4 arrays, 7.7 kB, 2.6 kB less"
    written = load_file(out)
    assert written.keys() == arrays.keys() - {HEAD}
    for name, array in written.items():
        assert np.array_equal(array, arrays[name])
    assert [str(f) for f in check(out)] == [
        f"tie: {HEAD} is {EMBED}, by alias metadata",
        "tie: w is x, by alias metadata",
    ]
    assert [*out.parent.iterdir()] == [out]
    assert (path.read_bytes(), (tmp_path / "config.json").read_bytes()) == before


def test_write_a_file_to_a_folder(tmp_path: Path, e: Any) -> None:
    """A file goes into an empty folder under its name, and the config goes with it."""
    (out := tmp_path / "out").mkdir()
    save_file({EMBED: e, HEAD: e.copy()}, tmp_path / "m.safetensors")
    write_config(tmp_path, tie_word_embeddings=True)
    assert main(["check", str(tmp_path / "m.safetensors"), "--write", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {"config.json", "m.safetensors"}
    assert load_file(out / "m.safetensors").keys() == {EMBED}
    assert (out / "config.json").read_bytes() == (tmp_path / "config.json").read_bytes()


@pytest.mark.parametrize(
    ("is_tied", "stored", "end"),
    [(True, 3, ", 2.6 kB less"), (False, 4, "; 2.6 kB are still wasted")],
)
def test_write_a_directory(
    tmp_path: Path, e: Any, is_tied: bool, stored: int, end: str, capsys: Any
) -> None:
    """A directory is written as one: equal ends once if the config ties them; the config stays."""
    source, out = tmp_path / "model", tmp_path / "out"
    write_shards(source, {EMBED: e, "a": e + 1}, {HEAD: e.copy(), "b": e + 2})
    write_config(source, architectures=["XForCausalLM"], tie_word_embeddings=is_tied)
    code, said, _ = run(capsys, "check", source, "--write", out)
    assert code == 0
    size = {3: "7.7 kB", 4: "10.2 kB"}[stored]
    assert said.splitlines()[-1] == f"{out}: {stored} arrays, {size}{end}"
    assert {path.name for path in out.iterdir()} == {INDEX, "config.json", shard(1), shard(2)}
    assert (out / "config.json").read_bytes() == (source / "config.json").read_bytes()
    assert check(out).figures.stored == stored * 2560
    model = pydag.files.load(out)
    assert (model[HEAD] is model[EMBED]) == is_tied
    assert np.array_equal(model["b"], e + 2)


def test_write_of_torch(tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Torch's tensors are written without torch: views in order, ties as aliases."""
    path, out = tmp_path / "m.pt", tmp_path / "m.safetensors"
    tree = {
        "a": whole("0", e),
        "b": whole("0", e),
        "t": whole("1", e.T),
        "s": View("1", (3,), (2,)),
    }
    write_torch(path, tree, {"0": e, "1": e + 1})
    assert run(capsys, "check", path, "--write", out)[0] == 0
    model = pydag.files.load(out)
    assert model["a"] is model["b"]
    assert np.array_equal(model["a"], e)
    assert np.array_equal(model["t"], (e + 1).T)
    assert np.array_equal(model["s"], (e + 1).ravel()[:6:2])


def test_write_keeps_two_what_nothing_ties(tmp_path: Path, e: Any) -> None:
    """Equal arrays are waste, and stay two in every load; what the structure has stays as it is."""
    path, out = tmp_path / "m.safetensors", tmp_path / "out.safetensors"
    tree: Any = {"a": [e, 3], "b": (e.copy(), e), "n": np.float32(2)}
    pydag.files.save(path, tree)
    assert main(["check", str(path), "--write", str(out), "--quiet"]) == 0
    for file in (path, out):
        assert check(file).figures.wasted == 2560
        for model in (pydag.files.load(file), pydag.files.load(file, tree)):
            assert model["a"][0] is model["b"][1] is not model["b"][0]
            assert np.array_equal(model["b"][0], e)
            assert (model["a"][1], type(model["n"])) == (3, np.float32)


def test_write_of_a_run(tmp_path: Path) -> None:
    """Refs, keys and an average that is equal so far come back as what they were."""
    jax = pytest.importorskip("jax")
    import pydag.jaxinterop as pj

    x = jax.numpy.arange(500.0)
    keys = jax.random.split(jax.random.key(0), 200)
    tree = {
        "model": x,
        "average": x + 0,
        "keys": keys,
        "numbers": jax.random.key_data(keys),
        **({"ref": jax.new_ref(x), "other": jax.new_ref(x)} if hasattr(jax, "new_ref") else {}),
    }
    path, out = tmp_path / "run.safetensors", tmp_path / "out.safetensors"
    pj.save(path, tree)
    assert main(["check", str(path), "--write", str(out), "--quiet"]) == 0
    assert out.stat().st_size == path.stat().st_size
    for again in (pj.load(out), pj.load(out, tree)):
        assert {k: type(v) for k, v in again.items()} == {k: type(v) for k, v in tree.items()}
        assert len({id(leaf) for leaf in again.values()}) == len(tree)


def _taken(case: str, tmp_path: Path, out: Path) -> Path:
    """Something that is already where --write should write."""
    if case == "file":
        out.write_text("mine")
    elif case == "full":
        out.mkdir()
        (out / "mine").write_text("")
    elif case == "shard":
        write_shards(tmp_path / "other", {"a": numbers(5)}, {"b": numbers(6)})
        return tmp_path / "other" / shard(1)
    elif case == "index":
        write_shards(tmp_path / "other", {"a": numbers(5)}, {"b": numbers(6)})
        return tmp_path / "other" / INDEX
    elif case == "pipe":
        os.mkfifo(out)
    elif case == "device":
        return Path(os.devnull)
    elif case == "link to a file":
        (tmp_path / "mine").write_text("mine")
        out.symlink_to(tmp_path / "mine")
    elif case == "link to a folder":
        (tmp_path / "mine").mkdir()
        out.symlink_to(tmp_path / "mine")
    elif case == "link to nothing":
        out.symlink_to(tmp_path / "nothing")
    else:
        return tmp_path / "none" / "out"
    return out


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize(
    "case",
    [
        *("file", "full", "shard", "index", "pipe", "device"),
        *("link to a file", "link to a folder", "link to nothing", "no folder above"),
    ],
)
def test_write_takes_the_place_of_nothing(
    case: str, is_folder: bool, tmp_path: Path, e: Any, capsys: Any
) -> None:
    """Whatever is at OUT stays as it is: one line, and exit code 2."""
    source = tmp_path / "model"
    write_shards(source, {EMBED: e}, {"a": e + 1})
    write_config(source, x=1)
    out = _taken(case, tmp_path, tmp_path / "out")
    path = source
    if not is_folder:
        save_file({"a": e}, path := source / "one.safetensors")
    before = _contents_of(tmp_path)
    code, said, err = run(capsys, "check", path, "--write", out)
    assert (code, said, err.count("\n")) == (2, "", 1)
    assert "write to" in err
    assert _contents_of(tmp_path) == before


def _contents_of(folder: Path) -> dict[Path, object]:
    """Everything below a folder."""
    return {
        path: (path.is_symlink(), path.lstat().st_mode, path.is_file() and path.read_bytes())
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("case", ["itself", "gguf", "damaged", "part"])
def test_write_refuses(
    case: str, tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never over its input; a model that isn't whole isn't written."""
    source, out = tmp_path / "model", tmp_path / "out"
    write_shards(source, {EMBED: e}, {"a": e + 1})
    write_config(source, x=1)
    path, said = source, "write to another place"
    if case == "itself":
        out = source
    elif case == "gguf":
        path = tmp_path / "m.gguf"
        write_gguf(path, {"a": e})
        said = "GGUF files are only read"
    elif case == "damaged":
        (source / shard(2)).unlink()
        said = f"nothing is written: the index names {shard(2)}"
    elif case == "part":
        path, said = source / shard(1), "it is a part of a model"
    before = _contents_of(tmp_path)
    code, _, err = run(capsys, "check", path, "--write", out)
    assert (code, said in err) == (2, True)
    assert _contents_of(tmp_path) == before
