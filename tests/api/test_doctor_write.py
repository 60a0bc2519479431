# SPDX-License-Identifier: Apache-2.0
"""`python -m pydag check PATH --write OUT`: what is tied is written once, and only to OUT."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("safetensors")
from model_files import (
    EMBED,
    HEAD,
    INDEX,
    LM,
    View,
    numbers,
    shard,
    whole,
    write_config,
    write_gguf,
    write_shards,
    write_torch,
)
from operations import KILLED_AT, needs_posix
from safetensors import safe_open
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
    write_config(tmp_path, **LM, tie_word_embeddings=True, more=[1])
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
    write_config(tmp_path, **LM, tie_word_embeddings=True)
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
    write_config(source, **LM, tie_word_embeddings=is_tied)
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


@needs_posix
def test_other_files_of_a_folder(tmp_path: Path, e: Any, capsys: Any) -> None:
    """The other files of a folder go with the arrays, byte for byte, and are listed."""
    source, out = tmp_path / "model", tmp_path / "out"
    source.mkdir()
    save_file({EMBED: e, HEAD: e.copy()}, source / "model.safetensors")
    copied = ["README.md", "config.json", "optimizer.pt", "same.txt", "tokenizer.json", "x y.bin"]
    for name in copied:
        (source / name).write_bytes(name.encode() + b"\r\n\0\xff")
    write_config(source, **LM, tie_word_embeddings=True)
    (source / "same.txt").unlink()
    (source / "same.txt").symlink_to("README.md")
    (tmp_path / "secret").write_text("mine")
    (source / "link.txt").symlink_to(tmp_path / "secret")
    (source / "onnx").mkdir()
    (source / ".hidden").write_text("")
    (source / "pytorch_model.bin").write_text("the same arrays, for readers that look for them")
    os.mkfifo(source / "pipe")
    left = [".hidden", "link.txt", "onnx", "pipe", "pytorch_model.bin"]
    code, said, _ = run(capsys, "check", source, "--write", out)
    lines = [f"{out}: copied: {', '.join(copied)}", f"{out}: not copied: {', '.join(left)}"]
    assert (code, said.splitlines()[-3:-1]) == (0, lines)
    assert {path.name for path in out.iterdir()} == {*copied, "model.safetensors"}
    for name in copied:
        assert (out / name).read_bytes() == (source / name).read_bytes()
        assert not (out / name).is_symlink()
    again = tmp_path / "again"
    said = run(capsys, "check", source, "--write", again, "--json")[1]
    assert json.loads(said)["written"] == {
        "path": str(again),
        "copied": copied,
        "not_copied": left,
    }


@pytest.mark.parametrize(
    ("files", "written"),
    [
        (["x.safetensors"], "model.safetensors"),
        (["pytorch_model.bin", "config.json"], "model.safetensors"),
        (["consolidated.00.pth"], "model.safetensors"),
        (["adapter_model.bin", "adapter_config.json"], "adapter_model.safetensors"),
        (["x.pt", "adapter_config.json"], "adapter_model.safetensors"),
        (["diffusion_pytorch_model.bin", "config.json"], "diffusion_pytorch_model.safetensors"),
        (["pytorch_lora_weights.safetensors"], "pytorch_lora_weights.safetensors"),
    ],
)
def test_readers_find_the_arrays(files: list[str], written: str, tmp_path: Path, e: Any) -> None:
    """A folder's arrays are called what their readers look for, whatever they were called."""
    source, out = tmp_path / "model", tmp_path / "out"
    source.mkdir()
    first, *others = files
    if first.endswith(".safetensors"):
        save_file({"a": e}, source / first)
    else:
        write_torch(source / first, {"a": whole("0", e)}, {"0": e})
    for name in others:
        (source / name).write_text("{}")
    assert main(["check", str(source), "--write", str(out), "--quiet"]) == 0
    assert {path.name for path in out.iterdir()} == {written, *others}
    with safe_open(out / written, "np") as file:
        assert file.metadata() == {"format": "pt"}


@pytest.mark.parametrize("stem", ["model", "diffusion_pytorch_model"])
def test_write_of_old_shards(stem: str, tmp_path: Path, e: Any) -> None:
    """Torch's shards become safetensors shards with an index of their own."""
    source, out = tmp_path / "model", tmp_path / "out"
    source.mkdir()
    old = "pytorch_model" if stem == "model" else stem
    files = {name: f"{old}-0000{i}-of-00002.bin" for i, name in enumerate("ab", 1)}
    for name, file in files.items():
        write_torch(source / file, {name: whole("0", e)}, {"0": e})
    (source / f"{old}.bin.index.json").write_text(json.dumps({"weight_map": files}))
    for path in (source, source / f"{old}.bin.index.json"):
        assert main(["check", str(path), "--write", str(out), "--quiet"]) == 0
        new = [f"{stem}-0000{i}-of-00002.safetensors" for i in (1, 2)]
        assert sorted(os.listdir(out)) == [*new, f"{stem}.safetensors.index.json"]
        assert pydag.files.load(out).keys() == {"a", "b"}
        out = tmp_path / "again"


@needs_posix
def test_the_files_of_the_hubs_cache(tmp_path: Path, e: Any) -> None:
    """In the hub's cache each file is a link to a blob of the same cache, and is copied."""
    cache, out = tmp_path / "models--x--y", tmp_path / "out"
    (snapshot := cache / "snapshots" / "abc").mkdir(parents=True)
    (cache / "blobs").mkdir()
    save_file({EMBED: e}, cache / "blobs" / "1")
    (cache / "blobs" / "2").write_text("{}")
    (tmp_path / "3").write_text("mine")
    for name, target in {"model.safetensors": 1, "config.json": 2, "x": "../../3"}.items():
        (snapshot / name).symlink_to(f"../../blobs/{target}" if name != "x" else "../../../3")
    assert main(["check", str(snapshot), "--write", str(out), "--quiet"]) == 0
    assert sorted(os.listdir(out)) == ["config.json", "model.safetensors"]
    assert (out / "config.json").read_text() == "{}"


@pytest.mark.parametrize("architecture", ["T5ForConditionalGeneration", "Unknown"])
def test_the_source_of_a_tie_is_kept(architecture: str, tmp_path: Path, e: Any) -> None:
    """Of the names of one storage that of the source is written, wherever it is declared."""
    source, out = tmp_path / "model", tmp_path / "out"
    source.mkdir()
    names = ["decoder.embed_tokens.weight", "lm_head.weight", "shared.weight"]
    write_torch(source / "x.bin", dict.fromkeys(names, whole("0", e)), {"0": e})
    write_config(source, architectures=[architecture])
    main(["check", str(source), "--write", str(out), "--quiet"])
    kept = names[2] if architecture != "Unknown" else names[0]
    assert load_file(out / "model.safetensors").keys() == {kept}
    with safe_open(out / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt", **dict.fromkeys({*names} - {kept}, kept)}


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


def test_write_of_a_saved_model_that_a_config_ties(tmp_path: Path, e: Any, capsys: Any) -> None:
    """The structure that pydag wrote names the one array; one that is malformed isn't written."""
    path, out = tmp_path / "model.safetensors", tmp_path / "out.safetensors"
    tree = {"model": {"embed_tokens": {"weight": e}}, "lm_head": {"weight": e.copy()}}
    pydag.files.save(path, tree | {"scale": np.float32(2), "steps": 3})
    write_config(tmp_path, **LM, tie_word_embeddings=True)
    assert main(["check", str(path), "--write", str(out), "--quiet"]) == 0
    again = pydag.files.load(out)
    assert again["model"]["embed_tokens"]["weight"] is again["lm_head"]["weight"]
    assert np.array_equal(again["lm_head"]["weight"], e)
    assert (type(again["scale"]), again["steps"]) == (np.float32, 3)
    out.unlink()
    save_file({EMBED: e, HEAD: e.copy()}, path, {"pydag..structure": "[]"})
    assert run(capsys, "check", path, "--write", out)[0] == 2
    assert not out.exists()


def test_write_of_a_name_in_two_files(tmp_path: Path, e: Any, capsys: Any) -> None:
    """An array that two shards have is written if both agree, and nothing if they differ."""
    folder, out = tmp_path / "model", tmp_path / "out"
    write_shards(folder, {"a": e, "b": e + 1}, {"a": e + 2, "c": e + 3})
    code, _, err = run(capsys, "check", folder, "--write", out)
    assert (code, "a is in two files, and differs" in err) == (2, True)
    assert not out.exists()
    write_shards(folder, {"a": e, "b": e + 1}, {"a": e, "c": e + 3})
    assert run(capsys, "check", folder, "--write", out)[0] == 0
    assert [finding.level for finding in check(out)] == []


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
@needs_posix
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


@needs_posix
def test_a_folder_that_nothing_replaces(
    tmp_path: Path, e: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The current folder stays the one that it is, and a folder keeps its mode."""
    save_file({"a": e}, tmp_path / "model.safetensors")
    (out := tmp_path / "out").mkdir(mode=0o750)
    monkeypatch.chdir(out)
    code, _, err = run(capsys, "check", tmp_path / "model.safetensors", "--write", ".")
    assert (code, "write to a new directory in it" in err, os.listdir(out)) == (2, True, [])
    monkeypatch.chdir(tmp_path)
    assert main(["check", "model.safetensors", "--write", "out", "--quiet"]) == 0
    assert out.stat().st_mode & 0o777 == 0o750
    assert os.listdir(out) == ["model.safetensors"]


def _contents_of(folder: Path) -> dict[Path, object]:
    """Everything below a folder."""
    return {
        path: (path.is_symlink(), path.lstat().st_mode, path.is_file() and path.read_bytes())
        for path in folder.rglob("*")
    }


def _safetensors(path: Path, header: Any, size: int) -> None:
    """A file whose header may say anything."""
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))


def _entry(begin: int, end: int, dtype: str = "F32", *shape: int) -> dict[str, object]:
    size = shape or [(end - begin) // 4]
    return {"dtype": dtype, "shape": size, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "header",
    [
        {"a": _entry(0, 16), "b": _entry(16, 4096)},
        {"a": _entry(0, 16), "b": _entry(16, 32) | {"shape": [5]}},
        {"a": _entry(0, 16), "b": _entry(16, 32) | {"shape": "4"}},
        {"a": _entry(0, 16), "b": _entry(16, 32, "F77")},
        {"a": _entry(0, 16), "b": _entry(16, 32, "C128", 1)},
        {"a": _entry(0, 16), "b": _entry(16, 32, "F128", 1)},
        {"a": _entry(0, 31), "b": _entry(31, 32, "F4", 3)},
        {"a": _entry(0, 20), "b": _entry(16, 32)},
        {"a": _entry(0, 16), "b": 5},
    ],
)
@pytest.mark.parametrize("is_folder", [False, True])
def test_nothing_that_is_not_whole_is_written(
    header: Any, is_folder: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name without its bytes, or of a type that the format lacks: nothing is written."""
    (source := tmp_path / "model").mkdir()
    _safetensors(source / "model.safetensors", header, 32)
    path, out = (source, "out") if is_folder else (source / "model.safetensors", "out.safetensors")
    code, _, err = run(capsys, "check", path, "--write", tmp_path / out)
    assert (code, "nothing is written: " in err) == (2, True)
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize(
    ("name", "is_folder", "said"),
    [
        ("x.bin", False, "call it 'x.safetensors'"),
        ("x.gguf", False, "call it 'x.safetensors'"),
        ("x.PT", False, "call it 'x.safetensors'"),
        ("model.safetensors.index.json", False, "call it 'model.safetensors.index.safetensors'"),
        ("x.bin", True, "call it 'x'"),
        ("x.safetensors", True, "call it 'x'"),
    ],
)
def test_a_name_that_says_another_format(
    name: str, is_folder: bool, said: str, tmp_path: Path, e: Any, monkeypatch: Any, capsys: Any
) -> None:
    """OUT is refused if its name is that of another format, with the name that it would take."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    save_file({"a": e}, tmp_path / "model" / "model.safetensors")
    path = "model" if is_folder else "model/model.safetensors"
    code, out, err = run(capsys, "check", path, "--write", name)
    assert (code, out, said in err) == (2, "", True)
    assert os.listdir(tmp_path) == ["model"]


KILLED_ANYWHERE = """
import os, shutil, sys
from pydag.doctor.repair import write_once

os.fsync = lambda handle: None  # it is slow, and of no use against a kill
source, out, is_made = sys.argv[1], sys.argv[2], sys.argv[3] == "made"
above = os.path.dirname(out)
events = {"open", "fcntl.flock", "shutil.rmtree"}
events |= {f"os.{x}" for x in "rename link remove mkdir rmdir listdir scandir".split()}

step, code = 0, 7
while code == 7:
    shutil.rmtree(above)
    os.makedirs(out if is_made else above)
    code = exit_code(step, lambda: write_once(source, out))
    try:
        write_once(source, out)
        again = "written"
    except ValueError:
        again = "there"
    files = os.listdir(out) if os.path.isdir(out) else ["a file"]
    is_clean = not any(name.startswith(".") for name in os.listdir(above) + files)
    print(code, again, len([name for name in files if name[0] != "."]), is_clean)
    step += 1
"""


@pytest.mark.parametrize("case", ["folder", "made", "file"])
def test_a_write_that_is_killed_anywhere(case: str, tmp_path: Path, e: Any) -> None:
    """The next one writes it, and leaves nothing of the killed one; or all of it is there."""
    pytest.importorskip("fcntl")
    source, out = tmp_path / "model", tmp_path / "above" / "out"
    out.parent.mkdir()
    write_shards(source, {EMBED: e}, {"a": e + 1})
    write_config(source, x=1)
    path = source if case != "file" else source / shard(1)
    if case == "file":
        path = path.rename(source / "one.safetensors")
    command = [sys.executable, "-P", "-c", KILLED_AT + KILLED_ANYWHERE, str(path), str(out), case]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    states = [line.split() for line in run.stdout.splitlines()]
    assert len(states) > 10
    assert {files for _, _, files, _ in states} == {"1" if case == "file" else "4"}
    assert states[0][1] == "written"
    assert states[-1] == ["0", "there", states[0][2], "True"]
    assert all(is_clean == "True" for _, again, _, is_clean in states if again == "written")


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
