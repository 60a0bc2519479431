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
    LM,
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


@pytest.fixture
def e() -> Any:
    return numbers(40, 16)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a safetensors file, with a config beside it, and returns its path."""
    return lambda *arguments, **options: write_file(tmp_path, *arguments, **options)


def test_tied_by_alias_metadata(file: Any, e: Any) -> None:
    """An alias in the metadata is a tie, and counts in the parameters without ties."""
    path = file({EMBED: e}, LM | {"tie_word_embeddings": True}, {HEAD: EMBED, "format": "pt"})
    assert found(path) == [("tie", f"{HEAD} is {EMBED}, by alias metadata")]
    figures = check(path).figures
    assert (figures.with_ties, figures.without_ties) == (640, 1280)
    assert (figures.stored, figures.wasted) == (2560, 0)


def test_one_torch_storage(tmp_path: Path, e: Any) -> None:
    """Tensors of one storage are a tie, wherever they stand in the containers."""
    view = whole("0", e)
    path = tmp_path / "model.pt"
    write_torch(path, {"model": {"embed.weight": view, "head": [view]}}, {"0": e})
    assert found(path) == [("tie", "model.head.0 is model.embed.weight, by one storage")]
    figures = check(path).figures
    assert (figures.with_ties, figures.without_ties, figures.stored) == (640, 1280, 2560)


def test_a_transposed_twin(file: Any, e: Any) -> None:
    """A matrix that is another one transposed is a tie, also where both are square."""
    square = numbers(30, 30, seed=1)
    arrays = {"embed.weight": e, "head.kernel": e.T.copy(), "a": square, "b": square.T.copy()}
    path = file(arrays)
    assert sorted(found(path)) == [
        ("tie", "b is a, transposed"),
        ("tie", "head.kernel is embed.weight, transposed"),
    ]


def test_stored_twice(file: Any, e: Any) -> None:
    """Equal arrays are waste, in bytes, once for all of them."""
    report = check(file({"a": e, "b": e.copy(), "c": e.copy(), "d": e + 1}))
    (finding,) = report
    assert (finding.level, finding.names) == ("waste", ("a", "b", "c"))
    assert finding.nbytes == 5120
    assert finding.text == "b, c equal a and are stored again: 5.1 kB"
    assert report.figures.wasted == 5120
    assert report.figures.with_ties == report.figures.without_ties == 4 * 640


def test_alias_and_anchor_stored(file: Any, e: Any) -> None:
    """An alias that is stored as well is waste if the two are equal, else an error."""
    path = file({"a": e, "b": e.copy()}, metadata={"b": "a"})
    assert found(path) == [("waste", "b is noted as an alias of a, and stored as well: 2.6 kB")]
    path = file({"a": e, "b": e + 1}, metadata={"b": "a"})
    text = "b is noted as an alias of a, and both are stored: they differ"
    assert found(path) == [("error", text)]


def test_a_storage_larger_than_its_view(tmp_path: Path, e: Any) -> None:
    """What no tensor uses of a storage is waste."""
    path = tmp_path / "model.pt"
    write_torch(path, {"a": View("0", (10, 16), (16, 1), 16)}, {"0": e})
    (finding,) = check(path)
    assert (finding.level, finding.names, finding.nbytes) == ("waste", ("a",), 2560 - 640)
    text = "a uses 640 B of a storage of 2.6 kB, which is stored whole"
    assert finding.text == text


def test_an_alias_without_its_anchor(file: Any, e: Any) -> None:
    """An alias of what isn't there is an error, also in a file of another program."""
    path = file({"model.norm.weight": e}, metadata={HEAD: EMBED, "author": "somebody.else"})
    assert found(path) == [("error", f"{HEAD} is an alias of {EMBED}, which isn't there")]


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
    file: Any, e: Any, metadata: dict[str, str], expected: list[str]
) -> None:
    """A text is an alias if it names an array, or looks like a name; the framework is none."""
    lines = sorted(map(str, check(file({"a": e, "h.w": e + 1}, metadata=metadata))))
    assert len(lines) == len(expected)
    for line, part in zip(lines, expected, strict=True):
        assert part in line


@pytest.mark.parametrize("is_ours", [False, True])
def test_shards_contradict_each_other(tmp_path: Path, e: Any, is_ours: bool) -> None:
    """One alias that is two arrays is an error with both, and nothing can be written of it."""
    if is_ours:
        save(tmp_path, {"a": e, "b": e + 1}, shard_size="3KB")
    else:
        write_shards(tmp_path, {"a": e}, {"b": e + 1})
    save_file({"a": e}, tmp_path / shard(1), {"head": "a", "loss": "1"})
    save_file({"b": e + 1}, tmp_path / shard(2), {"head": "b", "loss": "2"})
    text = f"head is an alias of a by {shard(1)}, and of b by {shard(2)}"
    assert found(tmp_path) == [("error", text)]
    with pytest.raises(ValueError, match="nothing is written: head is an alias"):
        write_once(str(tmp_path), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_one_name_in_two_shards(tmp_path: Path, e: Any) -> None:
    """A name that two shards have is an error."""
    write_shards(tmp_path, {"a": e, "b": e + 1}, {"b": e + 1, "c": numbers(5)})
    assert found(tmp_path) == [("error", f"b is stored in {shard(1)} and in {shard(2)}")]


def test_an_index_names_what_is_not_there(tmp_path: Path, e: Any) -> None:
    """A missing file, a missing array and an array in another file are errors."""
    write_shards(tmp_path, {"a": e}, {"b": numbers(5)}, index={"gone": "other.safetensors"})
    text = "the index names other.safetensors, which isn't there, for gone"
    assert found(tmp_path) == [("error", text)]
    write_shards(tmp_path, {"a": e}, {"b": numbers(5)}, index={"gone": shard(2)})
    assert found(tmp_path) == [("error", f"the index names gone in {shard(2)}, and it isn't there")]
    write_shards(tmp_path, {"a": e}, {"b": numbers(5), "c": e + 1}, index={"b": shard(1)})
    text = f"by the index b is in {shard(1)}, and it is in {shard(2)}"
    assert found(tmp_path) == [("error", text)]


def test_a_shard_that_the_index_does_not_know(tmp_path: Path, e: Any) -> None:
    """A shard by its name, or by its arrays, is an error; another form of the model is none."""
    write_shards(tmp_path, {"h.0.w": e}, {"h.1.w": numbers(5)})
    save_file({"other": e}, tmp_path / "adapter_model.safetensors")
    save_file({"h.1.w": e}, tmp_path / "consolidated.safetensors")
    assert found(tmp_path) == []
    save_file({"x": e}, tmp_path / "model-00003-of-00003.safetensors")
    text = "the index doesn't name model-00003-of-00003.safetensors, and it has x"
    assert found(tmp_path) == [("error", text)]
    (tmp_path / "model-00003-of-00003.safetensors").rename(tmp_path / "rest.safetensors")
    assert found(tmp_path) == []
    save_file({"h.2.w": e}, tmp_path / "rest.safetensors")
    text = "the index doesn't name rest.safetensors, and it has h.2.w"
    assert found(tmp_path) == [("error", text)]


def test_a_whole_file_beside_its_shards(tmp_path: Path, e: Any) -> None:
    """A file that readers may take for the model is a doubt, with the weights that are in both."""
    write_shards(tmp_path, {"h.0.w": e}, {"h.1.w": numbers(5)})
    save_file({"h.1.w": e}, tmp_path / "model.safetensors")
    text = (
        "model.safetensors is beside the shards of the index, and has h.1.w as well: "
        "readers may take it instead of them"
    )
    assert found(tmp_path) == [("doubt", text)]
    write_once(str(tmp_path), str(tmp_path / "out"))
    assert found(tmp_path / "out") == []
    save_file({"other": e}, tmp_path / "model.safetensors")
    assert found(tmp_path) == []


def test_an_array_that_the_index_does_not_name(tmp_path: Path, e: Any) -> None:
    """Arrays in a shard that the index leaves out are an error."""
    write_shards(tmp_path, {"a": e, "b": numbers(5)}, {"c": numbers(6)})
    index = json.loads((tmp_path / INDEX).read_text())
    del index["weight_map"]["b"]
    (tmp_path / INDEX).write_text(json.dumps(index))
    assert found(tmp_path) == [("error", f"{shard(1)} has b, which the index doesn't name")]


def test_cut_short(file: Any, tmp_path: Path, e: Any) -> None:
    """A file that ends before its arrays do, or within its header, is an error with figures."""
    path = file({"a": e, "b": e + 1})
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    text = "the file is cut short: the last 100 of 5120 bytes are missing, of b"
    assert found(path) == [("error", text)]
    path.write_bytes(data[:40])
    assert found(path)[0][1].startswith("the file is cut short within its header: ")
    path = tmp_path / "m.gguf"
    write_gguf(path, {"a": e, "b": e + 1})
    path.write_bytes(path.read_bytes()[:-100])
    assert found(path) == [("error", text)]
    path = tmp_path / "m.pt"
    write_torch(path, {"a": whole("0", e)}, {"0": e})
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


def test_no_false_alarms(file: Any, tmp_path: Path) -> None:
    """Norms of ones, biases of zeros, small arrays and equal shapes are nothing."""
    arrays: dict[str, Any] = {}
    for i in range(3):
        arrays |= {
            f"h.{i}.norm.weight": np.ones(2000, np.float32),
            f"h.{i}.bias": np.zeros(2000, np.float32),
            f"h.{i}.freq": np.arange(64.0, dtype=np.float32),
            f"h.{i}.weight": numbers(40, 40, seed=i),
            f"h.{i}.empty": np.zeros((0, 4000), np.float32),
        }
    assert found(file(arrays, LM | {"tie_word_embeddings": False})) == []


def test_parts_of_quantized_weights(file: Any) -> None:
    """`g_idx` and its like are no waste; a whole quantized weight that is stored twice is."""
    main = [np.arange(i, i + 640, dtype=np.int32) for i in range(3)]
    more = {"g_idx": np.arange(300, dtype=np.int32), "scales": numbers(400)}
    arrays = {
        f"h.{i}.{name}": array
        for i in range(3)
        for name, array in {"qweight": main[i], **more}.items()
    }
    assert found(file(arrays)) == []
    arrays["h.1.qweight"] = main[0]
    (finding,) = check(file(arrays))
    assert (finding.level, finding.names) == ("waste", ("h.0", "h.1"))
    assert finding.nbytes == 2560 + 1200 + 1600
    arrays["h.1.scales"] = arrays["h.1.scales"] + 1
    assert found(file(arrays)) == []


def test_disjoint_slices_of_one_buffer(tmp_path: Path, e: Any) -> None:
    """Tensors that are different parts of one storage are nothing."""
    parts = {f"q{i}": View("0", (10, 16), (16, 1), 160 * i) for i in range(4)}
    path = tmp_path / "m.pt"
    write_torch(path, parts, {"0": e})
    assert found(path) == []
    columns = {"a": View("0", (40, 8), (16, 1)), "b": View("0", (40, 8), (16, 1), 8)}
    write_torch(path, columns, {"0": e})
    assert found(path) == []


def test_parts_of_one_storage(tmp_path: Path, e: Any) -> None:
    """Tensors that share a part of a storage, or are one another transposed, are ties."""
    path = tmp_path / "m.pt"
    write_torch(path, {"a": whole("0", e), "b": whole("0", e.T)}, {"0": e})
    assert found(path) == [("tie", "b is a, transposed, by one storage")]
    write_torch(path, {"a": whole("0", e), "b": View("0", (5, 16), (16, 1))}, {"0": e})
    assert found(path) == [("tie", "b and a share a part of one storage")]


def test_gguf(tmp_path: Path, e: Any) -> None:
    """Arrays of a GGUF file are read behind metadata of any kind, and compared."""
    path = tmp_path / "m.gguf"
    write_gguf(path, {"token_embd.weight": e, "output.weight": e, "n": np.ones(3)})
    (finding,) = check(path)
    assert (finding.level, finding.names) == ("waste", ("token_embd.weight", "output.weight"))
    assert check(path).kind == "GGUF"
