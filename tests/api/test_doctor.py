# SPDX-License-Identifier: Apache-2.0
"""The doctor: each symptom is one line, and what is normal is none."""

import json
import struct
from collections.abc import Callable
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
    found,
    numbers,
    shard,
    whole,
    write_file,
    write_gguf,
    write_shards,
    write_torch,
)
from safetensors.numpy import save_file

from pydag.doctor.repair import write_once
from pydag.files import check, save

E = numbers(40, 16)
SQUARE = numbers(30, 30, seed=1)
NOTED = "b is noted as an alias of a, and"


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a safetensors file, with a config beside it, and returns its path."""
    return lambda *arguments, **options: write_file(tmp_path, *arguments, **options)


def quantized(**other: Any) -> dict[str, Any]:
    """Three quantized weights, which have some of their parts in common."""
    arrays: dict[str, Any] = {}
    for i in range(3):
        arrays[f"h.{i}.qweight"] = np.arange(i, i + 640, dtype=np.int32)
        arrays[f"h.{i}.g_idx"] = np.arange(300, dtype=np.int32)
        arrays[f"h.{i}.scales"] = numbers(400)
    return arrays | {f"h.1.{name}": array for name, array in other.items()}


NORMAL = {
    f"h.{i}.{name}": array
    for i in range(3)
    for name, array in {
        "norm.weight": np.ones(2000, np.float32),
        "bias": np.zeros(2000, np.float32),
        "freq": np.arange(64.0, dtype=np.float32),
        "weight": numbers(40, 40, seed=i),
        "empty": np.zeros((0, 4000), np.float32),
    }.items()
}
FIRST = np.arange(640, dtype=np.int32)


@pytest.mark.parametrize(
    ("arrays", "metadata", "findings"),
    [
        ({EMBED: E}, {HEAD: EMBED, "format": "pt"}, [f"tie: {HEAD} is {EMBED}, by alias metadata"]),
        (
            {"embed.weight": E, "head.kernel": E.T.copy(), "a": SQUARE, "b": SQUARE.T.copy()},
            None,
            ["tie: b is a, transposed", "tie: head.kernel is embed.weight, transposed"],
        ),
        (
            {"a": E, "b": E.copy(), "c": E.copy(), "d": E + 1},
            None,
            ["waste: b, c equal a and are stored again: 5.1 kB"],
        ),
        ({"a": E, "b": E.copy()}, {"b": "a"}, [f"waste: {NOTED} stored as well: 2.6 kB"]),
        ({"a": E, "b": E + 1}, {"b": "a"}, [f"error: {NOTED} both are stored: they differ"]),
        (
            {"model.norm.weight": E},
            {HEAD: EMBED, "author": "somebody.else"},
            [f"error: {HEAD} is an alias of {EMBED}, which isn't there"],
        ),
        (NORMAL, None, []),
        (quantized(), None, []),
        (quantized(qweight=FIRST, scales=numbers(400) + 1), None, []),
    ],
)
def test_one_file(file: Any, arrays: Any, metadata: Any, findings: list[str]) -> None:
    """Ties, waste and errors are a line each; what is normal, and parts of weights, is none."""
    assert sorted(map(str, check(file(arrays, metadata=metadata)))) == findings


def test_figures(file: Any) -> None:
    """Waste counts in bytes; parameters with and without ties, whole quantized weights as one."""
    figures = check(file({EMBED: E}, None, {HEAD: EMBED})).figures
    assert (figures.with_ties, figures.without_ties) == (640, 1280)
    assert (figures.stored, figures.wasted) == (2560, 0)
    report = check(file({"a": E, "b": E.copy(), "c": E.copy(), "d": E + 1}))
    assert (report.findings[0].names, report.findings[0].nbytes) == (("a", "b", "c"), 5120)
    assert (report.figures.wasted, report.figures.with_ties) == (5120, 4 * 640)
    (finding,) = check(file(quantized(qweight=FIRST)))
    assert (finding.level, finding.names) == ("waste", ("h.0", "h.1"))
    assert finding.nbytes == 2560 + 1200 + 1600


STORED_WHOLE = "a uses 640 B of a storage of 2.6 kB, which is stored whole"


@pytest.mark.parametrize(
    ("tree", "findings"),
    [
        (
            {"model": {"embed.weight": whole("0", E), "head": [whole("0", E)]}},
            [("tie", "model.head.0 is model.embed.weight, by one storage")],
        ),
        ({"a": View("0", (10, 16), (16, 1), 16)}, [("waste", STORED_WHOLE)]),
        ({f"q{i}": View("0", (10, 16), (16, 1), 160 * i) for i in range(4)}, []),
        ({"a": View("0", (40, 8), (16, 1)), "b": View("0", (40, 8), (16, 1), 8)}, []),
        (
            {"a": whole("0", E), "b": whole("0", E.T)},
            [("tie", "b is a, transposed, by one storage")],
        ),
        (
            {"a": whole("0", E), "b": View("0", (5, 16), (16, 1))},
            [("tie", "b and a share a part of one storage")],
        ),
    ],
)
def test_tensors_of_one_storage(tmp_path: Path, tree: Any, findings: Any) -> None:
    """One tensor, or parts that overlap, are ties; what no tensor uses is waste; else nothing."""
    write_torch(tmp_path / "model.pt", tree, {"0": E})
    assert found(tmp_path / "model.pt") == findings


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"format": "a"}, []),
        ({"pydag..structure": "a"}, []),
        ({"author": "somebody", "loss": "1"}, []),
        ({"b": "c", "c": "b"}, []),
        ({"b": "a", "c": "b"}, ["tie: b is a, by alias metadata"]),
        ({"a": "a"}, []),
        (
            {"x.w": "y.w", "y.w": "x.w"},
            ["x.w is an alias of y.w, an alias itself", "y.w is an alias of x.w, an alias itself"],
        ),
        ({"x.w": "a", "y.w": "x.w"}, ["y.w is an alias of x.w, an alias itself", "tie: x.w is a"]),
    ],
)
def test_metadata_of_other_programs(
    file: Any, metadata: dict[str, str], expected: list[str]
) -> None:
    """A text is an alias if it names an array, or looks like a name; the framework is none."""
    lines = sorted(map(str, check(file({"a": E, "h.w": E + 1}, metadata=metadata))))
    assert len(lines) == len(expected)
    for line, part in zip(lines, expected, strict=True):
        assert part in line


@pytest.mark.parametrize("is_ours", [False, True])
def test_shards_contradict_each_other(tmp_path: Path, is_ours: bool) -> None:
    """One alias that is two arrays is an error with both, and nothing can be written of it."""
    if is_ours:
        save(tmp_path, {"a": E, "b": E + 1}, shard_size="3KB")
    else:
        write_shards(tmp_path, {"a": E}, {"b": E + 1})
    save_file({"a": E}, tmp_path / shard(1), {"head": "a", "loss": "1"})
    save_file({"b": E + 1}, tmp_path / shard(2), {"head": "b", "loss": "2"})
    text = f"head is an alias of a by {shard(1)}, and of b by {shard(2)}"
    assert found(tmp_path) == [("error", text)]
    with pytest.raises(ValueError, match="nothing is written: head is an alias"):
        write_once(str(tmp_path), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_one_name_in_two_shards(tmp_path: Path) -> None:
    """A name that two shards have is an error."""
    write_shards(tmp_path, {"a": E, "b": E + 1}, {"b": E + 1, "c": numbers(5)})
    assert found(tmp_path) == [("error", f"b is stored in {shard(1)} and in {shard(2)}")]


def test_a_directory_of_directories(tmp_path: Path) -> None:
    """A directory without a model is an error that names those in it that have one."""
    for name in ("empty", "inner"):
        (tmp_path / name).mkdir()
    write_file(tmp_path / "inner", {"a": E})
    with pytest.raises(ValueError, match=r"Give a directory in it: inner$"):
        check(tmp_path)


def test_an_index_names_what_is_not_there(tmp_path: Path) -> None:
    """A missing file, a missing array and an array in another file are errors."""
    write_shards(tmp_path, {"a": E}, {"b": numbers(5)}, index={"gone": "other.safetensors"})
    text = "the index names other.safetensors, which isn't there, for gone"
    assert found(tmp_path) == [("error", text)]
    write_shards(tmp_path, {"a": E}, {"b": numbers(5)}, index={"gone": shard(2)})
    assert found(tmp_path) == [("error", f"the index names gone in {shard(2)}, and it isn't there")]
    write_shards(tmp_path, {"a": E}, {"b": numbers(5), "c": E + 1}, index={"b": shard(1)})
    text = f"by the index b is in {shard(1)}, and it is in {shard(2)}"
    assert found(tmp_path) == [("error", text)]


def test_a_shard_that_the_index_does_not_know(tmp_path: Path) -> None:
    """A shard by its name, or by its arrays, is an error; another form of the model is none."""
    write_shards(tmp_path, {"h.0.w": E}, {"h.1.w": numbers(5)})
    save_file({"other": E}, tmp_path / "adapter_model.safetensors")
    save_file({"h.1.w": E}, tmp_path / "consolidated.safetensors")
    assert found(tmp_path) == []
    save_file({"x": E}, tmp_path / "model-00003-of-00003.safetensors")
    text = "the index doesn't name model-00003-of-00003.safetensors, and it has x"
    assert found(tmp_path) == [("error", text)]
    (tmp_path / "model-00003-of-00003.safetensors").rename(tmp_path / "rest.safetensors")
    assert found(tmp_path) == []
    save_file({"h.2.w": E}, tmp_path / "rest.safetensors")
    text = "the index doesn't name rest.safetensors, and it has h.2.w"
    assert found(tmp_path) == [("error", text)]


def test_a_whole_file_beside_its_shards(tmp_path: Path) -> None:
    """A file that readers may take for the model is a doubt, with the weights that are in both."""
    write_shards(tmp_path, {"h.0.w": E}, {"h.1.w": numbers(5)})
    save_file({"h.1.w": E}, tmp_path / "model.safetensors")
    text = (
        "model.safetensors is beside the shards of the index, and has h.1.w as well: "
        "readers may take it instead of them"
    )
    assert found(tmp_path) == [("doubt", text)]
    write_once(str(tmp_path), str(tmp_path / "out"))
    assert found(tmp_path / "out") == []
    save_file({"other": E}, tmp_path / "model.safetensors")
    assert found(tmp_path) == []


def test_an_array_that_the_index_does_not_name(tmp_path: Path) -> None:
    """Arrays in a shard that the index leaves out are an error."""
    write_shards(tmp_path, {"a": E, "b": numbers(5)}, {"c": numbers(6)})
    index = json.loads((tmp_path / INDEX).read_text())
    del index["weight_map"]["b"]
    (tmp_path / INDEX).write_text(json.dumps(index))
    assert found(tmp_path) == [("error", f"{shard(1)} has b, which the index doesn't name")]


def test_cut_short(file: Any, tmp_path: Path) -> None:
    """A file that ends before its arrays do, or within its header, is an error with figures."""
    path = file({"a": E, "b": E + 1})
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    text = "the file is cut short: the last 100 of 5120 bytes are missing, of b"
    assert found(path) == [("error", text)]
    path.write_bytes(data[:40])
    assert found(path)[0][1].startswith("the file is cut short within its header: ")
    path = tmp_path / "m.gguf"
    write_gguf(path, {"a": E, "b": E + 1})
    path.write_bytes(path.read_bytes()[:-100])
    assert found(path) == [("error", text)]
    path = tmp_path / "m.pt"
    write_torch(path, {"a": whole("0", E)}, {"0": E})
    path.write_bytes(path.read_bytes()[:-100])
    assert found(path) == [
        ("error", "the file is cut short: a zip file of torch's without its end")
    ]


def header(path: Path, rows: Any, size: int) -> Path:
    """A safetensors file with a header of our own."""
    text = json.dumps(
        {
            name: {"dtype": dtype, "shape": shape, "data_offsets": offsets}
            for name, (dtype, shape, offsets) in rows.items()
        }
    ).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
    return path


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ({"a": ("F32", [4], [0, 16]), "b": ("F32", [4], [8, 24])}, "a and b overlap by 8 bytes"),
        (
            {"a": ("F32", [4], [0, 16]), "b": ("F32", [4], [100, 116])},
            "b is said to be at bytes 100 to 116, outside of the file, which has 24",
        ),
        ({"a": ("F32", [4], [16, 32])}, "there are 16 bytes of no array before a"),
        ({"a": ("F32", [4], [0, 16])}, "there are 8 bytes of no array at the end"),
        ({"a": ("F32", [9], [0, 24])}, "a has 24 bytes, and by its type and shape, F32[9], 36"),
        ({"a": ("X", [6], [0, 24])}, "a has a type that is unknown, X"),
        ({"a": ("F32", [-6], [0, 24])}, "a: its shape is no list of sizes"),
        ({"a": ("F32", [2**80], [0, 24])}, "a: its shape is no list of sizes"),
        (
            {"a": ("F32", [6], [24, 0])},
            "a: it is said to end at byte 0, before it begins, at 24",
        ),
    ],
)
def test_offsets_and_types(tmp_path: Path, rows: Any, text: str) -> None:
    """What is wrong with the places, sizes and types in a header is an error each."""
    path = header(tmp_path / "m.safetensors", rows, 24)
    assert ("error", text) in found(path)


def test_gguf(tmp_path: Path) -> None:
    """Arrays of a GGUF file are read behind metadata of any kind, and compared."""
    path = tmp_path / "m.gguf"
    write_gguf(path, {"token_embd.weight": E, "output.weight": E, "n": np.ones(3)})
    (finding,) = check(path)
    assert (finding.level, finding.names) == ("waste", ("token_embd.weight", "output.weight"))
    assert check(path).kind == "GGUF"
