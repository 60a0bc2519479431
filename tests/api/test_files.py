# SPDX-License-Identifier: Apache-2.0
"""`pydag.files.save` and `load`."""

import collections
import json
import os
import random
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

np = pytest.importorskip("numpy")
safetensors = pytest.importorskip("safetensors")
ml_dtypes = pytest.importorskip("ml_dtypes")
from operations import needs_posix, run_apart
from safetensors.numpy import load_file, save_file

import pydag
from pydag.files import load, save
from pydag.files.save import STRUCTURE


@pytest.fixture
def w() -> Any:
    return np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def tied(w: Any) -> Any:
    return {"encoder": {"w": w, "b": np.zeros(2)}, "decoder": [w, np.ones(3)]}


@pydag.register_fields(meta_fields=("name",))
class Block:
    def __init__(self, weight: Any, bias: Any, name: str) -> None:
        self.weight, self.bias, self.name = weight, bias, name


class Pair(NamedTuple):
    first: Any
    second: Any


def metadata(path: Path) -> dict[str, str]:
    with safetensors.safe_open(path, framework="np") as file:
        return dict(file.metadata())


def rewritten(path: Path, **changes: str) -> Path:
    """The file with other metadata."""
    arrays = load_file(path)
    save_file(arrays, path, metadata=metadata(path) | changes)
    return path


def structure_with(path: Path, **changes: Any) -> Path:
    """The file with another structure in its metadata."""
    return rewritten(
        path, **{STRUCTURE: json.dumps(json.loads(metadata(path)[STRUCTURE]) | changes)}
    )


def assert_same(a: Any, b: Any) -> None:
    assert pydag.dag_structure(a) == pydag.dag_structure(b)
    for x, y in zip(pydag.dag_leaves(a), pydag.dag_leaves(b), strict=True):
        assert type(x) is type(y) or isinstance(x, np.ndarray)
        assert np.asarray(x).dtype == np.asarray(y).dtype
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def test_an_ordinary_file(path: Path, tied: Any, w: Any) -> None:
    """Any reader of the format finds each array once, under its anchor's name, and the aliases."""
    save(path, tied)
    found = load_file(path)
    assert sorted(found) == ["decoder.0", "decoder.1", "encoder.b"]
    assert found["decoder.0"].tolist() == w.tolist()
    kept = metadata(path)
    assert set(kept) == {"encoder.w", STRUCTURE}
    assert kept["encoder.w"] == "decoder.0"


def test_round_trip(path: Path, tied: Any) -> None:
    """What was saved comes back, shared as it was; the arrays are mapped and read-only."""
    save(path, tied)
    model = load(path)
    assert_same(model, tied)
    assert model["encoder"]["w"] is model["decoder"][0]
    assert isinstance(model["decoder"][0].base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        model["decoder"][0][0] = 1


def test_registered_classes(path: Path, w: Any) -> None:
    """Classes come back by their names, with their meta fields."""
    block = Block(w, np.ones(2), "first")
    save(path, [block, Block(w, None, "second"), block])
    one, two, three = load(path)
    assert one is three
    assert one.weight is two.weight
    assert (one.name, two.name, two.bias) == ("first", "second", None)


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8"),
        *("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
        *("float8_e8m0fnu", ">f4", ">i8", ">c8"),
    ],
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_types_and_shapes(path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    """Every type of the format, of both byte orders, and every shape comes back bit for bit."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    size = int(np.prod(shape))
    array = np.arange(size * kind.itemsize, dtype=np.uint8).view(kind).reshape(shape)
    if dtype == "bool":
        array = (np.arange(size) % 2).astype(bool).reshape(shape)
    save(path, {"x": array})
    found = load(path)["x"]
    native = array.astype(kind.newbyteorder("<")) if dtype[0] == ">" else array
    assert (found.shape, found.dtype) == (shape, native.dtype)
    assert found.tobytes() == native.tobytes()


def test_orders_of_memory(path: Path) -> None:
    """Transposed, strided and broadcast arrays are written as what they look like."""
    base = np.arange(24).reshape(2, 3, 4)
    other = base + 1
    arrays = [np.asfortranarray(base[0]), base.T, other[:, ::2, 1], np.broadcast_to(3.5, (2, 2))]
    save(path, arrays)
    assert [x.tolist() for x in load(path)] == [x.tolist() for x in arrays]


def test_values(path: Path) -> None:
    """Numbers, text, None and the like go into the JSON and come back exactly."""
    values = [1, True, 2.5, -0.0, 1j, "x", "\ud800", b"\xff", None, 2**90, range(1, 9, 2), ...]
    save(path, {"values": values, "step": np.float32(3), "flag": np.bool_(True), "a": np.ones(1)})
    found = load(path)
    assert found["values"] == values
    assert list(map(type, found["values"])) == list(map(type, values))
    assert (type(found["step"]), type(found["flag"])) == (np.float32, np.bool_)
    assert repr(found["values"][3]) == "-0.0"


@pytest.mark.parametrize(
    "leaf",
    [
        *(object(), {1, 2}, lambda: 1, np.array(["text"]), np.array([object()])),
        *(np.zeros(2, "c16"), np.zeros(2, "i4,f4"), np.datetime64("2020-01-01")),
        np.ma.masked_array([1, 2], [True, False]),
    ],
    ids=lambda leaf: type(leaf).__name__,
)
def test_other_objects_are_refused(path: Path, leaf: Any) -> None:
    """Any other object is a TypeError with the path, and the old file is still there."""
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match=r"at tree\['a'\]\[1\]"):
        save(path, {"a": [1, leaf]})
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_names(path: Path, w: Any) -> None:
    """Names are dotted paths, also with keys that have dots; any other step is Python text."""
    tree = {
        "a": Pair(w + 1, [w + 2]),
        "a.b": [w + 3],
        "block": Block(w + 4, collections.deque([w + 5]), "n"),
        3: w + 6,
        "[3]": w + 7,
        "": w + 8,
        "__metadata__": w + 9,
        "\ud800": w + 10,
        (1, "]"): w + 11,
        "k": {"0": w + 12},
    }
    save(path, tree)
    assert set(load_file(path)) == {
        *("a.first", "a.second.0", "a.b.0", "block.weight", "block.bias.0", "[3]"),
        *("['[3]']", "['']", "['__metadata__']", "['\\ud800']", "[(1, ']')]", "k.0"),
    }
    for like in (tree, pydag.dag_map(lambda x: np.zeros_like(x), tree)):
        assert_same(load(path, like), tree)


def test_a_single_array(path: Path, w: Any) -> None:
    """An array without a container has an empty name."""
    save(path, w)
    assert list(load_file(path)) == [""]
    assert load(path).tolist() == load(path, w).tolist() == w.tolist()


def test_aliases_below_shared_nodes(path: Path, w: Any) -> None:
    """While they are few, all further paths to an array are aliases."""
    layer = {"w": w}
    save(path, {"a": layer, "b": layer, "c": [layer]})
    assert set(metadata(path)) == {"b.w", "c.0.w", STRUCTURE}
    assert metadata(path)["c.0.w"] == "a.w"


def test_sixty_levels(path: Path, w: Any) -> None:
    """Sixty levels of [t, t] are saved and loaded in linear time."""
    tree: Any = [w]
    for _ in range(60):
        tree = [tree, tree]
    began = time.thread_time()
    save(path, tree)
    assert set(metadata(path)) == {STRUCTURE}
    assert_same(load(path), tree)
    assert_same(load(path, tree), tree)
    assert time.thread_time() - began < 3


def test_any_alias_path_fits(path: Path, w: Any, tied: Any) -> None:
    """With `like` a file may have all names of a shared array, or any one of them."""
    b, c = tied["encoder"]["b"], tied["decoder"][1]
    rest = {"encoder.b": b, "decoder.1": c}
    like = pydag.dag_map(np.zeros_like, tied)
    for names in (["encoder.w"], ["decoder.0"], ["encoder.w", "decoder.0"]):
        save_file(rest | dict.fromkeys(names, w), path)
        assert_same(load(path, like), tied)
    deep: Any = {"w": w}
    for _ in range(60):
        deep = {"a": deep, "b": deep}
    save_file({".".join("ab" * 30) + ".w": w}, path)
    assert pydag.dag_leaves(load(path, deep))[0].tolist() == w.tolist()


def test_copies_that_differ(path: Path, w: Any, tied: Any) -> None:
    """Several names of one array must hold equal bytes, strict or not; both are named."""
    rest = {"encoder.b": tied["encoder"]["b"], "decoder.1": tied["decoder"][1]}
    save_file(rest | {"encoder.w": w, "decoder.0": w + 1}, path)
    for strict in (True, False):
        with pytest.raises(ValueError, match=r"'decoder.0' and 'encoder.w'|'encoder.w' and"):
            load(path, tied, strict=strict)
    nan = np.full(2, np.nan, np.float32)
    save_file({"a": nan, "b": nan.copy()}, path)
    assert np.isnan(load(path, {"a": nan, "b": nan})["a"]).all()
    save_file({"a": np.zeros(1), "b": -np.zeros(1)}, path)
    zero = np.zeros(1)
    with pytest.raises(ValueError, match="differ"):
        load(path, {"a": zero, "b": zero})


def test_a_tie_that_the_file_lacks(path: Path, w: Any) -> None:
    """A file that ties what `like` does not, and the other way round, fits."""
    save(path, {"a": w, "b": w})
    loose = load(path, {"a": w * 0, "b": w * 0})
    assert loose["a"].tolist() == loose["b"].tolist() == w.tolist()
    save(path, {"a": w, "b": w.copy()})
    like = {"a": w, "b": w}
    found = load(path, like)
    assert found["a"] is found["b"]


def test_missing_and_surplus_names(path: Path, w: Any) -> None:
    """Missing and surplus names are an error with the names; a warning with strict=False."""
    save_file({"a": w, "x": w}, path)
    like = {"a": np.zeros_like(w), "b": np.ones(1)}
    with pytest.raises(ValueError, match=r"(?s)missing: b.*surplus: x.*strict=False takes what"):
        load(path, like)
    with pytest.warns(UserWarning, match="strict=False") as caught:
        found = load(path, like, strict=False)
    assert found["a"].tolist() == w.tolist()
    assert found["b"] is like["b"]
    assert [warning.filename for warning in caught] == [__file__]
    assert str(caught[0].message).splitlines() == [
        f"strict=False: {str(path)!r} has 1 of the 2 arrays of `like`; 1 are missing and stay as "
        "they are, 1 are surplus",
        "  missing: b",
        "  surplus: x",
    ]
    assert load(path, {"a": w, "x": w}, strict=False)["a"].tolist() == w.tolist()  # no warning


@pytest.mark.parametrize("like", [{"model": {"a": 0, "x": 1}}, {"A": 0}, {"step": 3}, {}, {"a": 3}])
def test_a_file_of_which_nothing_fits(path: Path, w: Any, like: Any) -> None:
    """Such a file is an error with strict=False, too, which isn't recommended then."""
    save_file({"a": w, "x": w} if like != {"a": 3} else {"b": w}, path)
    like = pydag.dag_map(lambda i: np.full_like(w, i) if i < 3 else i, like)
    for strict in (True, False):
        with pytest.raises(ValueError, match=r"(?s)surplus: .*strict=False is no help: no array"):
            load(path, like, strict=strict)


def test_what_fits_of_a_part(path: Path, w: Any) -> None:
    """With `only`, the selected arrays count, and nothing is surplus."""
    save_file({"a": w, "x": w}, path)
    like = {"a": w + 1, "b": w + 2}
    assert load(path, like, only="['a']", strict=False)["b"] is like["b"]
    with pytest.warns(UserWarning, match=r"has 1 of the 2 arrays of `like`; 1 .*, 0 are surplus"):
        load(path, like, only=lambda x: True, strict=False)
    with pytest.raises(ValueError, match=r"missing: b\n  strict=False is no help"):
        load(path, like, only="['b']", strict=False)


def test_a_file_of_another_format(path: Path) -> None:
    """The error says what it is, and what reads it."""
    for start, words in ((b"PK\x03\x04", "zip file"), (b"GGUF\x03", r"pydag check.*gguf_file=")):
        path.write_bytes(start + bytes(100))
        with pytest.raises(ValueError, match=rf"(?s)model\.safetensors.*{words}"):
            load(path)


def test_other_types_and_shapes(path: Path, w: Any) -> None:
    """Another dtype or shape than that of `like` is an error with the name and both sides."""
    save(path, {"a": w})
    for like in (w.astype(np.float16), w.T, np.zeros(6, np.float32)):
        with pytest.raises(ValueError, match=r"(?s)'a'.*float32\[2,3\].*like: "):
            load(path, {"a": like}, strict=False)


def test_only_without_like(path: Path, tied: Any) -> None:
    """What wasn't asked for is None, so that `dag_combine` fits; sharing is kept."""
    save(path, tied)
    found = load(path, only=["*encoder*w*", int])
    assert found["encoder"] == {"w": found["decoder"][0], "b": None}
    assert found["encoder"]["w"] is found["decoder"][0]
    assert found["decoder"][1] is None


def test_only_with_like(path: Path, tied: Any) -> None:
    """What wasn't asked for is `like`'s own leaf; its names are neither missing nor surplus."""
    save(path, tied)
    like = pydag.dag_map(np.zeros_like, tied)
    found = load(path, like, only=lambda x: x.ndim == 2)
    assert found["decoder"][0].tolist() == tied["decoder"][0].tolist()
    assert found["decoder"][1] is like["decoder"][1]
    save_file({"encoder.w": tied["decoder"][0], "else": np.ones(1)}, path)
    assert load(path, like, only="*['w']")["decoder"][0].shape == (2, 3)


def test_a_long_difference_of_configuration(path: Path, w: Any) -> None:
    """The warning about configuration that differs shows a few places, and counts the others."""
    save(path, [Block(w, i, "old") for i in range(30)])
    with pytest.warns(UserWarning, match=r"'old' in the file, 'new' in the code\n  and \d+ more\n"):
        load(path, [Block(w, i, "new") for i in range(30)])


def test_an_array_that_others_call_value(path: Path, w: Any) -> None:
    """A file of a library whose variables hold a `value` is read into the plain array."""
    save_file({"dense.kernel.value": w}, path)
    like = {"dense": {"kernel": np.zeros_like(w)}}
    assert load(path, like)["dense"]["kernel"].tolist() == w.tolist()


@pytest.mark.parametrize("is_there", [True, False])
def test_types_of_ml_dtypes_where_nobody_imported_it(path: Path, is_there: bool) -> None:
    """Reading bfloat16 imports ml_dtypes, or says that it is missing; a check does without."""
    arrays = [np.arange(2048).reshape(64, 32).astype(ml_dtypes.bfloat16) + i for i in range(2)]
    save_file(dict(zip(("model.embed_tokens.weight", "lm_head.weight"), arrays, strict=True)), path)
    (path.parent / "config.json").write_text('{"tie_word_embeddings": true}')
    output = run_apart(f"""
import sys
if not {is_there}: sys.modules["ml_dtypes"] = None
from pydag.files import check
from pydag.files import load
print(*[finding.text for finding in check({str(path)!r})])
try: print(load({str(path)!r})["lm_head.weight"].dtype)
except ImportError as error: print(error)
""")
    figures, answer = output.splitlines()
    assert ("no correlation" in figures) == (not is_there)
    assert answer.startswith("bfloat16" if is_there else "BF16 needs ml_dtypes: pip install")


def test_a_file_that_is_not_ours(path: Path, w: Any) -> None:
    """Without `like` it is a flat dict of its names, with the aliases of its table tied."""
    save_file({"a.b": w, "c": w + 1}, path, metadata={"d.e": "a.b", "format": "pt"})
    found = load(path)
    assert sorted(found) == ["a.b", "c", "d.e"]
    assert found["d.e"] is found["a.b"]
    like = {"a": {"b": w}, "c": w + 1, "d": {"e": w * 0}}
    assert load(path, like)["d"]["e"].tolist() == w.tolist()


def test_unregistered_class(path: Path, w: Any) -> None:
    """A class that isn't registered here is named; with `like` the file can still be read."""
    save(path, {"x": Block(w, 1, "n")})
    text = metadata(path)[STRUCTURE].replace("Block", "Unheard")
    rewritten(path, **{STRUCTURE: text})
    with pytest.raises(ValueError, match="Unheard"):
        load(path)
    assert load(path, {"x": Block(w * 0, 1, "n")})["x"].weight.tolist() == w.tolist()


def test_update_into_mapped_arrays(path: Path, w: Any) -> None:
    """`dag_update` refuses to write to a mapped array: its file stays as it is."""
    save(path, [w])
    before = path.read_bytes()
    model = load(path)
    with pytest.raises(TypeError):
        pydag.dag_update(model[0], w + 1)
    assert pydag.dag_update(model, [w + 1])[0].tolist() == (w + 1).tolist()
    with pytest.raises(ValueError, match="read-only"):
        load(path)[0] += 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("cut", [0, 4, 8, 20, -1])
def test_truncated(path: Path, tied: Any, cut: int) -> None:
    """A truncated file is a ValueError with its name."""
    save(path, tied)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        load(path)


def test_mutilated_files_never_crash(path: Path, tied: Any) -> None:
    """Random changes of header and metadata give a model or a ValueError, nothing else."""
    rng = random.Random(0)
    save(path, tied)
    good = path.read_bytes()
    header = 8 + int.from_bytes(good[:8], "little")
    outcomes = collections.Counter[str]()
    for _ in range(1500):
        raw = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(8, header)
            raw[place : place + rng.randint(0, 2)] = rng.choice(
                [b"", b"0", b"9", b'"', b"{", b"]", b",", b"a", b"\\", b"\xff", b"99999999999"]
            )
        raw[:8] = (header - 8 + len(raw) - len(good)).to_bytes(8, "little")
        path.write_bytes(raw)
        for like in (None, tied):
            try:
                pydag.dag_map(np.array, load(path, like))
                outcomes["loaded"] += 1
            except ValueError:
                outcomes["refused"] += 1
    assert outcomes["loaded"] > 10
    assert outcomes["refused"] > 1000


def test_a_header_that_is_too_large(path: Path) -> None:
    """A file that says its header has gigabytes is refused at once."""
    path.write_bytes((2**60).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        load(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": "nowhere"}, "'x' is an alias of 'nowhere', which is no array"),
        ({"x": "x"}, "'x' is an alias of 'x', which is no array"),
        ({"x": "y", "y": "x"}, "which is no array"),
        ({"decoder.1": "decoder.0"}, "'decoder.1' is an array and an alias of 'decoder.0'"),
    ],
)
def test_bad_aliases(path: Path, tied: Any, changes: dict[str, str], words: str) -> None:
    """Aliases that point nowhere, to each other or to themselves are an error with the name."""
    save(path, tied)
    rewritten(path, **changes)
    for like in (None, tied):
        with pytest.raises(ValueError, match=words):
            load(path, like)


def test_bad_aliases_of_others(path: Path, w: Any) -> None:
    """In somebody else's file, a missing name tells what the table of aliases says of it."""
    save_file({"a": w}, path, metadata={"b": "nowhere"})
    with pytest.raises(ValueError, match=r"missing: b \(an alias of 'nowhere', which is no array"):
        load(path, {"a": w, "b": w + 1})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"pydag": 2}, "expected version 1, got 2"),
        ({"leaves": []}, "leaves"),
        ({"leaves": 3}, "leaves"),
        ({"leaves": [{"array": "nowhere"}] * 3}, r"leaves\[0\]: there is no array 'nowhere'"),
        ({"leaves": [{"file": "/etc/passwd"}] * 3}, r"leaves\[0\]: unknown kind 'file'"),
        ({"leaves": [{"scalar": "decoder.0"}] * 3}, r"leaves\[0\].*no single number"),
        ({"leaves": [{"value": {"class": "os.system"}}] * 3}, r"os.system"),
        ({"structure": None}, "the text"),
        ({"leaves": [{"array": "a", "value": 1}] * 3}, "a name, or an object with one field"),
        ({"leaves": [{"value": {"function": "os:system"}}] * 3}, r"leaves\[0\].*os:system"),
    ],
)
def test_bad_structures(path: Path, tied: Any, changes: dict[str, Any], field: str) -> None:
    """A structure that is malformed, or of another version, is a ValueError with the field."""
    save(path, tied)
    structure_with(path, **changes)
    with pytest.raises(ValueError, match=field) as caught:
        load(path, strict=False)
    assert "model.safetensors" in str(caught.value)


def test_an_array_beside_the_structure(path: Path, tied: Any) -> None:
    """An array that the structure doesn't use is an error, unless strict=False."""
    save(path, tied)
    kept = metadata(path)
    save_file(dict(load_file(path)) | {"more": np.ones(1)}, path, metadata=kept)
    with pytest.raises(ValueError, match="'more' is not in the structure"):
        load(path)
    with pytest.warns(UserWarning, match=r"1 of 4 arrays are not in .*\(strict=False\): more$"):
        assert_same(load(path, strict=False), tied)


def test_system_errors(tmp_path: Path, w: Any) -> None:
    """What the system says is an OSError."""
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        save(tmp_path / "no" / "folder", [w])
    with pytest.raises(OSError, match="directory"):
        save(tmp_path, [w])
    assert os.listdir(tmp_path) == []


FULL = """
import resource, signal, sys
import numpy as np
from pydag.files import save
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save(sys.argv[1], [np.ones(1_000_000)])
except OSError as error:
    print("OSError", error.errno)
"""


@needs_posix
def test_a_full_disk(path: Path, w: Any) -> None:
    """Where the disk is full the system's error comes through and the old file is still there."""
    save(path, [w])
    before = path.read_bytes()
    run = subprocess.run(
        [sys.executable, "-P", "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    assert run.stdout == "OSError 27\n"
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@needs_posix
def test_modes_and_links(tmp_path: Path, w: Any) -> None:
    """A new file has the umask's mode, a replaced one the old mode; a link's target is replaced."""
    old = os.umask(0o027)
    try:
        save(tmp_path / "new", [w])
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    (tmp_path / "link").symlink_to("new")
    save(tmp_path / "link", [w, w + 1])
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604
    assert len(load(tmp_path / "new")) == 2


def test_namespaces(path: Path, w: Any) -> None:
    """Classes are looked up in the recorded namespace, or in the one given."""

    class Local:
        def __init__(self, x: Any) -> None:
            self.x = x

    pydag.register_fields(Local, namespace="files-one")
    pydag.register_fields(Local, namespace="files-two")
    save(path, [Local(w)], namespace="files-one")
    assert load(path)[0].x.tolist() == w.tolist()
    assert load(path, namespace="files-two")[0].x.tolist() == w.tolist()
    with pytest.raises(ValueError, match="files-three"):
        load(path, namespace="files-three")


def test_without_structure(path: Path, w: Any) -> None:
    """structure=False writes arrays and aliases alone; what isn't an array is `like`'s own."""
    tree = {"w": w, "again": [w], "f": print, "step": 3}
    save(path, tree, structure=False)
    assert metadata(path) == {"w": "again.0"}
    like = pydag.dag_map(lambda x: x * 0 if x is w else x, tree)
    found = load(path, like)
    assert found["w"] is found["again"][0]
    assert found["w"].tolist() == w.tolist()
    assert found["f"] is print
    assert sorted(load(path)) == ["again.0", "w"]


@pytest.mark.parametrize("changed", [None, "shape", "dtype", "number", "scalar", "text", "tie"])
def test_like_of_the_very_structure(
    changed: str | None, path: Path, w: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tree is filled in without looking at names; values and errors are those by name."""

    def model(factor: float) -> dict[str, Any]:
        tied = w * factor
        return {
            "block": Block(tied, np.ones(2) * factor, "n"),
            "again": [tied, np.float32(factor), int(factor), "text", True, None],
            "pair": Pair(0.5 * factor, np.zeros((), np.int8)),
        }

    save(path, model(2))
    like = model(1)
    if changed == "shape":
        like["block"].bias = np.ones(3)
    elif changed == "dtype":
        like["block"].bias = np.ones(2, np.float16)
    elif changed == "number":
        like["again"][2] = 1.0
    elif changed == "scalar":
        like["again"][1] = np.float64(1)
    elif changed == "text":
        like["again"][3] = 7
    elif changed == "tie":
        like["again"][0] = like["again"][0].copy()

    def loaded() -> tuple[str, str]:
        try:
            found = load(path, like)
        except ValueError as error:
            return "error", str(error)
        return str(pydag.dag_structure(found)), repr(pydag.dag_leaves(found))

    quick = loaded()
    monkeypatch.setattr("pydag.files.fill.Filler.in_order", lambda *_: None)
    assert quick == loaded()
    assert (quick[0] == "error") == (changed not in (None, "tie"))


@pytest.mark.parametrize("address", ["gs://bucket/model.safetensors", "memory://model"])
def test_an_address_is_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address isn't taken for the name of a folder: an error that says what to do, no file."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="is an address, and pydag writes files of this machine"):
        save(address, {"a": 1.0})
    for like in (None, {"a": 1.0}):
        with pytest.raises(
            ValueError, match="and pydag reads files of this machine alone\n  Copy it"
        ):
            load(address, like)
    assert list(tmp_path.iterdir()) == []


def test_a_name_of_another_format(tmp_path: Path) -> None:
    """A file that is called like torch's is one of safetensors nevertheless, with a warning."""
    with pytest.warns(UserWarning, match=r"m\.pt' gets a safetensors file"):
        pydag.files.save(tmp_path / "m.pt", {"w": np.ones(2)})
    assert pydag.files.load(tmp_path / "m.pt")["w"].tolist() == [1.0, 1.0]
