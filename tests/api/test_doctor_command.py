# SPDX-License-Identifier: Apache-2.0
"""`python -m pydag check`, `show` and bare: what is printed, and the exit codes."""

import json
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
    numbers,
    whole,
    write_config,
    write_gguf,
    write_shards,
    write_torch,
)
from operations import run_apart
from safetensors.numpy import save_file

import pydag
from pydag.__main__ import main
from pydag.doctor import progress
from pydag.files import check


@pytest.fixture
def e() -> Any:
    return numbers(40, 16)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    code = main([*map(str, arguments)])
    return code, *capsys.readouterr()


def test_a_report(tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A report has a line for each finding, the counts, and the figures."""
    path = tmp_path / "m.safetensors"
    save_file({"a": e, "b": e.copy(), "c": e + 1}, path, metadata={"d": "c"})
    assert run(capsys, "check", path) == (
        0,
        f"{path}: safetensors, 1 file\n"
        "  waste: b equals a and is stored again: 2.6 kB\n"
        "  tie: d is c, by alias metadata\n"
        "0 errors, 0 doubts, 1 waste, 1 tie\n"
        "1,920 parameters, 2,560 without ties; 7.7 kB stored, 2.6 kB wasted\n",
        "",
    )


def test_exit_codes(tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """0; 1 for an error, or with --strict for waste; 2 for what can't be read, among others too."""
    path = tmp_path / "m.safetensors"
    save_file({"a": e, "b": e.copy()}, path)
    assert run(capsys, "check", path)[0] == 0
    assert run(capsys, "check", path, "--strict")[0] == 1
    save_file({"a": e}, path, metadata={"b": "a"})
    assert run(capsys, "check", path, "--strict")[0] == 0
    save_file({"a": e, "b": e + 1}, path, metadata={"b": "a"})
    assert run(capsys, "check", path)[0] == 1
    code, out, err = run(capsys, "check", tmp_path / "none", path)
    assert (code, err) == (2, f"pydag: {str(tmp_path / 'none')!r}: No such file or directory\n")
    assert "1 error" in out


def test_a_view_that_is_saved(tmp_path: Path, e: Any) -> None:
    """`python -m pydag FILE --output` writes the view; `all` takes a limit away."""
    path, out = tmp_path / "m.safetensors", tmp_path / "m.txt"
    save_file({f"w{i}": e for i in range(210)}, path)
    command = [sys.executable, "-m", "pydag", str(path), "--limit", "all", "--output", str(out)]
    assert subprocess.run(command, check=False).returncode == 0
    assert "w209" in out.read_text()


def test_what_is_left(tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """`--write` takes one path, and says how many errors the file that it wrote has."""
    path, out = tmp_path / "m.safetensors", tmp_path / "out.safetensors"
    save_file({EMBED: e, HEAD: e + numbers(40, 16, seed=1)}, path)
    write_config(tmp_path, **LM, tie_word_embeddings=True)
    with pytest.raises(SystemExit):
        main(["check", str(path), str(path), "--write", str(out)])
    assert "--write takes one path" in capsys.readouterr().err
    code, said, _ = run(capsys, "check", path, "--write", out)
    assert (code, "; 1 error left" in said) == (1, True)


def test_quiet(tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """--quiet prints errors alone."""
    path = tmp_path / "m.safetensors"
    save_file({"a": e, "b": e + 1}, path, metadata={"b": "a"})
    text = "error: b is noted as an alias of a, and both are stored: they differ"
    assert run(capsys, "check", "--quiet", path) == (1, f"{path}: {text}\n", "")
    save_file({"a": e, "b": e.copy()}, path)
    assert run(capsys, "check", "--quiet", path) == (0, "", "")


def test_json(tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one object; with several paths it has `reports`."""
    path = tmp_path / "m.safetensors"
    save_file({"a": e, "b": e.copy()}, path)
    expected = {
        "version": 1,
        "path": str(path),
        "format": "safetensors",
        "ok": True,
        "findings": [
            {
                "level": "waste",
                "names": ["a", "b"],
                "text": "b equals a and is stored again: 2.6 kB",
                "nbytes": 2560,
            }
        ],
        "counts": {"error": 0, "doubt": 0, "waste": 1, "tie": 0, "change": 0},
        "files": 1,
        "arrays": 2,
        "parameters": {"with_ties": 1280, "without_ties": 1280},
        "bytes": {"stored": 5120, "wasted": 2560},
    }
    code, out, _ = run(capsys, "check", "--json", path)
    assert (code, json.loads(out)) == (0, expected)
    assert check(path).to_json() == expected
    code, out, _ = run(capsys, "check", "--json", path, tmp_path / "none")
    unreadable = {"version": 1, "path": str(tmp_path / "none")}
    unreadable["unreadable"] = f"{str(tmp_path / 'none')!r}: No such file or directory"
    assert (code, json.loads(out)) == (2, {"version": 1, "reports": [expected, unreadable]})


def test_names_are_printed_harmlessly(
    tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Line ends and control characters in names don't reach the terminal."""
    path = tmp_path / "m.safetensors"
    save_file({"a\n\x1b[31m": e, "b": e.copy(), "../../c": e + 1}, path)
    _, out, _ = run(capsys, "check", path)
    assert "waste: b equals 'a\\n\\x1b[31m' and is stored again" in out
    assert "\x1b" not in out


def test_against(tmp_path: Path, e: Any) -> None:
    """A comparison says what became of ties, names, types, shapes and values."""
    before, after = tmp_path / "before.safetensors", tmp_path / "after.safetensors"
    more = {"n": e[:5].copy(), "t": e[:4].copy(), "s": e[:3].copy(), "lost": e[:2].copy()}
    save_file({"a": e, **more, "z": e + 1}, before, metadata={"b": "a", "c": "a"})
    changed = {"n": more["n"] + 1, "t": more["t"].astype(np.float16), "s": more["s"].T.copy()}
    save_file(
        {"a": e, "c": e.copy(), **changed, "new": e[:1]}, after, metadata={"b": "a", "z": "n"}
    )
    texts = [str(f) for f in check(after, against=before) if "alias metadata" not in f.text]
    assert texts == [
        "error: lost is lost",
        "doubt: c was a, and is now an array of its own (equal)",
        "waste: c equals a and is stored again: 2.6 kB",
        "tie: b is a, as before",
        "change: z and n were arrays of their own, and are now one",
        "change: new is new",
        "change: s was F32[3,16], and is now F32[16,3]",
        "change: z was F32[40,16], and is now F32[5,16]",
        "change: t was F32, and now F16",
        "change: 1 of 3 arrays of one type and shape differ: n",
    ]


def renamed(old: Any) -> Any:
    """The names that a newer release gives to the arrays."""
    return {
        name.replace("language_model.model.", "model.language_model.")
        .replace("language_model.lm_head", "lm_head")
        .replace("vision", "model.vision"): array
        for name, array in old.items()
    }


def against(tmp_path: Path, before: Any, after: Any) -> list[str]:
    """What a comparison of two files finds."""
    old, new = tmp_path / "before.safetensors", tmp_path / "after.safetensors"
    save_file(before, old)
    save_file(after, new)
    return [*map(str, check(new, against=old))]


def test_against_other_names(tmp_path: Path, e: Any) -> None:
    """Arrays that got other names are found by content, constant ones by what the others show."""
    before = {f"language_model.model.layers.{i}.w": e + i for i in range(3)}
    before |= {f"language_model.model.layers.{i}.norm": np.ones(9, np.float32) for i in range(3)}
    before |= {"language_model.lm_head.weight": e + 3, "vision.w": e + 4}
    after = renamed(before)
    first = "language_model.model.layers.0.norm is model.language_model.layers.0.norm"
    assert against(tmp_path, before, after) == [
        "change: renamed: language_model.lm_head.weight is lm_head.weight",
        f"change: renamed: 6 names, {first} ...",
        "change: renamed: vision.w is model.vision.w",
    ]
    del after["model.vision.w"]
    after["model.language_model.layers.1.w"] = e + 9
    assert against(tmp_path, before, after)[0] == (
        "error: language_model.model.layers.1.w, vision.w are lost"
    )


def test_against_by_headers(tmp_path: Path, e: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `headers=True` a comparison is one of names, types and ties; no array is read."""
    before, after = tmp_path / "before.safetensors", tmp_path / "after.safetensors"
    save_file({"a": e, "x": e + 1}, before, metadata={"b": "a"})
    save_file({"a": e, "b": e.copy(), "y": e + 1}, after)
    monkeypatch.setattr("pydag.doctor.stored.Stored.read", None)
    assert [*map(str, check(after, against=before, headers=True))] == [
        "error: x is lost",
        "doubt: b was a, and is now an array of its own",
        "change: y is new",
    ]


def test_against_equal_arrays(tmp_path: Path, e: Any) -> None:
    """Of several equal arrays the report says that it may be another one; too few are an error."""
    before = {name: e.copy() for name in "abc"}
    found = against(tmp_path, before, {"x": e, "y": e.copy()})
    assert found[0] == "error: c is lost"
    assert found[2] == "change: renamed: a is x, or another one that equals it"


def test_against_a_prefix(tmp_path: Path, e: Any) -> None:
    """A prefix of all names is one line, even if values changed; names stay as in the files."""
    before = {"a": e, "b": e + 1}
    assert against(tmp_path, before, {f"module.{name}": x + 5 for name, x in before.items()}) == [
        "change: renamed: 2 names, a is module.a ...",
        "change: 2 of 2 arrays of one type and shape differ: module.a, module.b",
    ]


def test_against_the_config(tmp_path: Path, e: Any) -> None:
    """A tie by the config counts: kept as alias metadata, or cut by a head that is stored."""
    before = tmp_path / "before"
    before.mkdir()
    save_file({EMBED: e}, before / "model.safetensors")
    write_config(before, **LM, tie_word_embeddings=True)
    after = tmp_path / "after.safetensors"
    save_file({f"module.{EMBED}": e}, after, metadata={f"module.{HEAD}": f"module.{EMBED}"})
    assert f"tie: {HEAD} is {EMBED}, as before" in map(str, check(after, against=before))
    save_file({EMBED: e, HEAD: e + 1}, after)
    text = f"doubt: {HEAD} was {EMBED}, and is now an array of its own (different)"
    assert text in map(str, check(after, against=before))


def test_show(tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of each format, indices and directories are shown; the word `show` may be left out."""
    write_shards(tmp_path / "d", {"a": e}, {"b": e + 1})
    tree = ["dict", "├─ ['a']: f32[40,16]", "└─ ['b']: f32[40,16]"]
    for path in (tmp_path / "d", tmp_path / "d" / INDEX):
        for words in ([], ["show"]):
            assert run(capsys, *words, path)[1].splitlines()[:3] == tree
    write_torch(tmp_path / "m.pt", {"a": whole("0", e), "b": whole("0", e)}, {"0": e})
    tree = ["dict", "├─ ['a']: &0 f32[40,16]", "└─ ['b']: *0"]
    assert run(capsys, tmp_path / "m.pt")[1].splitlines()[:3] == tree
    write_gguf(tmp_path / "m.gguf", {"a": e})
    assert run(capsys, tmp_path / "m.gguf")[1].splitlines()[:2] == ["dict", "└─ ['a']: f32[40,16]"]
    code, _, err = run(capsys, "show", __file__)
    assert (code, "Known are safetensors files, torch's zip files" in err) == (1, True)


@pytest.mark.parametrize("words", [["fix", "m.safetensors"], ["fix"], ["re-pair", "a", "b"]])
def test_an_unknown_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The message lists the commands."""
    code, _, err = run(capsys, *words)
    assert (code, f"no command or file {words[0]!r}" in err) == (2, True)
    assert all(f"python -m pydag {known}" in err for known in ("check PATH", "[show] FILE"))


def test_no_torch_and_no_jax(tmp_path: Path, e: Any) -> None:
    """Checking imports neither torch nor JAX."""
    path = tmp_path / "m.pt"
    write_torch(path, {"a": whole("0", e)}, {"0": e})
    source = f"""
import sys, pydag
pydag.files.check({str(path)!r})
print({{"torch", "jax"}} & set(sys.modules))
"""
    assert run_apart(source) == "set()\n"


def test_what_it_says_of_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help`, and nothing at all, list what there is; `--version` is the package's."""
    for arguments, code in ((["--help"], 0), ([], 2)):
        assert main(arguments) == code
        said = capsys.readouterr().out
        assert "pydag check PATH" in said
        assert "[show] FILE" in said
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pydag {pydag.__version__}\n"


def test_a_model_against_itself(tmp_path: Path, e: Any) -> None:
    """Each tie has one line, and equal arrays are no change."""
    path = tmp_path / "model.safetensors"
    pydag.files.save(path, {"a": e, "b": e, "c": e + 1})
    assert [str(f) for f in check(path, against=path)] == ["tie: b is a, as before"]


def test_what_is_left_where_something_is_written(
    tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line has the bytes that are still wasted."""
    path, out = tmp_path / "model.safetensors", tmp_path / "out.safetensors"
    pydag.files.save(path, {"a": e, "b": e.copy()})
    assert main(["check", str(path), "--write", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("; 2.6 kB are still wasted")


def test_a_bar_on_a_terminal(
    tmp_path: Path, e: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal a line counts what is compared and fetched, and is gone at the end."""
    path = tmp_path / "m.safetensors"
    save_file({"a": e, "b": e.copy()}, path)
    monkeypatch.setattr(progress, "_AFTER", 0.0)
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    assert run(capsys, "check", path)[2] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _, out, err = run(capsys, "check", path)
    assert "waste: b equals a" in out
    *lines, last, end = err.removeprefix("\r").split("\r")
    assert lines[-1] == "comparing [##############################] 100% of 5.1 kB"
    assert (last.strip(" "), end) == ("", "")
    bar = progress.Bar(True)
    bar.update(0, 2_000_000)
    bar.close()
    bar.update(0, 2_000_000)
    assert capsys.readouterr().err == f"\r2.0 MB fetched\r{' ' * 14}\r"
