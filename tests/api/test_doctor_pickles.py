# SPDX-License-Identifier: Apache-2.0
"""Torch's files from anywhere: no tensor is lost, nothing is run, nothing fills memory or time."""

import os
import pickle
import struct
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("safetensors")
from model_files import Raw, View, whole, write_torch, write_wide_torch
from operations import needs_posix
from safetensors.numpy import load_file

from pydag.__main__ import main
from pydag.doctor import pickle_names, pickle_values, torch_file, zip_records
from pydag.doctor.opening import open_model
from pydag.doctor.torch_file import contents
from pydag.files import check

E = np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)


def found(path: Path) -> list[str]:
    """The texts of all errors."""
    report = check(path)
    assert all(finding.level == "error" for finding in report)
    return [finding.text for finding in report]


def written(path: Path) -> dict[str, Any]:
    """What `--write` makes of a file."""
    out = path.with_suffix(".safetensors")
    assert main(["check", str(path), "--write", str(out)]) == 0
    arrays = load_file(out)
    out.unlink()
    return arrays


def not_written(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said where `--write` refuses, and leaves nothing behind."""
    beside = set(path.parent.iterdir())
    assert main(["check", str(path), "--write", str(path.with_suffix(".safetensors"))]) == 2
    assert set(path.parent.iterdir()) == beside
    return capsys.readouterr().err


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def pickled(thing: object) -> Raw:
    return Raw(pickle.dumps(thing, 2)[2:-1])


def test_an_executable_pickle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a pickle calls isn't called: it is named, and the tensors beside it are read."""
    mark = tmp_path / "mark"
    path = tmp_path / "m.pt"
    tree = {"a": whole("0", E), "b": pickled(Evil(mark)), "c": whole("0", E)}
    write_torch(path, tree, {"0": E})
    report = check(path)
    assert [finding.level for finding in report] == ["error", "tie"]
    assert report.findings[0].text.startswith(f"the file names {os.name}.system: no tensor, ")
    assert not mark.exists()
    path.write_bytes(pickle.dumps(Evil(mark)))
    assert main(["check", str(path)]) == 2
    assert "that isn't a format that can be read safely" in capsys.readouterr().err
    assert not mark.exists()


def _cyclic() -> Any:
    one: list[Any] = []
    one.append({"x": [one]})
    return one


TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
FLOATS = b"ctorch\nFloatStorage\n"


def storage(kind: bytes = FLOATS, key: bytes = b"X\x01\x00\x00\x000") -> bytes:
    return b"(X\x07\x00\x00\x00storage" + kind + key + b"X\x03\x00\x00\x00cpuM\x80\x02tQ"


STORAGE = storage()
T = TENSOR + b"(" + STORAGE + b"K\x00K\x05\x85K\x01\x85\x89}tR"
SUBCLASS = b"ctorch._tensor\n_rebuild_from_type_v2\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (pickle.dumps(_cyclic(), 2)[2:-1], "a container in the pickle contains itself"),
        (b"]" * 100_000 + b"a" * 99_999, "the pickle is nested more than 200 levels deep"),
        (b"X\xff\xff\xff\x7fabc", "malformed pickle: "),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc", "malformed pickle: "),
        (b"0000", "malformed pickle: "),
        (b"NN", "malformed pickle: it must leave one value"),
        (b"}]Ns", "malformed pickle: "),
        (b"h\x05", "malformed pickle: "),
        (b"\x82\x01", "the pickle has the instruction EXT1"),
        (b"Pabc\n", "the pickle has the instruction PERSID"),
        (b"K\x01Q", "a persistent id that is no storage's"),
        (storage(key=b"K\x01"), "a storage without a key or a size"),
        (storage(kind=b"N"), "a storage of an unknown kind"),
        (storage(kind=b"cos\nsystem\n"), "the file names os.system: "),
        (TENSOR + b"(" + storage() + b"J\xff\xff\xff\xffK\x05\x85K\x01\x85\x89}tR", "a tensor "),
        (TENSOR + b"(" + storage() + b"K\x00X\x01\x00\x00\x00aK\x01\x85\x89}tR", "a tensor "),
        (TENSOR + b"(NK\x00K\x05\x85K\x01\x85\x89}tR", ""),
        (b"cbuiltins\neval\n(X\x01\x00\x00\x00xtR", "the file names builtins.eval: "),
        (b"(X\x01\x00\x00\x00xios\nsystem\n", "the file names os.system: "),
        (b"(cos\nsystem\nX\x01\x00\x00\x00xo", "the file names os.system: "),
        (b"cos\nsystem\n)\x81}b", "the file names os.system: "),
        (FLOATS + b"}X\x06\x00\x00\x00_dtypeNsb", "attributes for torch.FloatStorage"),
        (FLOATS + b"N}X\x06\x00\x00\x00_dtypeNs\x86b", "attributes for torch.FloatStorage"),
        (TENSOR + b"}b", "attributes for torch._utils._rebuild_tensor_v2"),
        (b"ccollections\nOrderedDict\n}b", "attributes for collections.OrderedDict"),
        (b"ccollections\nOrderedDict\n)RN}b\x86b", "attributes for "),
        (b"ccollections\nOrderedDict\n)R}X\x05\x00\x00\x00itemscbuiltins\nlist\nsb", "attribute"),
        (b"]}b", "attributes for list"),
        (T + b")b", "attributes for Tensor"),
        (T + b"(" + STORAGE + b"K\x00K\x05\x85K\x01\x85tb", "attributes for Tensor"),
        (T + b"K\x00K\x05s", "items for what is no dict"),
        (b"}]R", "a call of what is no class or function"),
        (b"ccollections\nOrderedDict\n]R", "a call of what is no class or function"),
        (
            TENSOR + b"(" + STORAGE + b"K\x00K\x05\x85K\x01\x85\x89}}X\x01\x00\x00\x00xNstR",
            "metadata",
        ),
        (TENSOR + b"(" + STORAGE + b"K\x00K\x05\x85K\x01\x85\x89}NNNtR", "more than 8 arguments"),
        (TENSOR + b"(" + STORAGE + b"K\x00K\x05\x85K\x01\x85K\x01}tR", "a tensor without"),
        (STORAGE.replace(b"\x03\x00\x00\x00cpu", b"\x04\x00\x00\x00meta"), "on no device"),
        (SUBCLASS + b"(" + SUBCLASS + b"ctorch\nTensor\n)NtR", "a class that is no tensor"),
        (b"\x80\x06N", "the pickle has the protocol 6"),
        (b"\x95\xff\xff\xff\xff\0\0\0\0N", "a frame goes beyond its end"),
        (b"Nr\xff\xff\xff\x7f", "it leaves out places of the memo"),
        (b"(2", "a mark where a value is wanted"),
        (b"}(Nu", "a key without a value"),
        (b"NN\x93", "a name that is no text"),
        (b"cm\n" + b"C" * 600 + b"\n", "a long name of a class or function"),
        (b"(" + b"".join(b"cm\nC%d\n" % i for i in range(1001)) + b"l", "names more than 1000"),
        (b"(" + STORAGE + storage(b"ctorch\nHalfStorage\n") + b"t", "has two types or sizes"),
        (b"(0N", ""),
        (b"ctorch\nfloat32\nN\x85R", "the file names torch.float32: "),
        (b"ccollections\nOrderedDict\nK\1\x85R", ""),
    ],
)
def test_hostile_pickles(code: bytes, said: str, tmp_path: Path) -> None:
    """Pickles that are cyclic, deep, cut, malformed, or name anything, are errors or nothing."""
    path = tmp_path / "m.pt"
    write_torch(path, Raw(code), {"0": E})
    texts = found(path)
    assert texts if said else not texts
    assert all(said in text for text in texts)


V3 = b"ctorch._utils\n_rebuild_tensor_v3\n("
BYTES = storage(b"ctorch\nUntypedStorage\n").replace(b"M\x80\x02", b"M\x00\x0a")
PLACE = b"K\x00K\x05\x85K\x01\x85"  # offset, shape, strides


@pytest.mark.parametrize(
    ("code", "sign"),
    [
        (V3 + BYTES + PLACE + b"\x89}ctorch\nfloat32\ntR", 1),
        (SUBCLASS + b"(" + TENSOR + b"ctorch\nTensor\n(" + STORAGE + PLACE + b"\x89}t}tR", 1),
        (TENSOR + b"(" + STORAGE + PLACE + b"\x89}}X\x03\0\0\0neg\x88stR", -1),
    ],
    ids=["v3", "subclass", "negative"],
)
def test_other_kinds_of_tensors(code: bytes, sign: int, tmp_path: Path) -> None:
    """Tensors of bytes, of a subclass, and with a sign that is noted are read and written."""
    path = tmp_path / "m.pt"
    write_torch(path, Raw(code), {"0": E})
    assert check(path).ok
    assert (written(path)["tensor"] == sign * E[0, :5]).all()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (b"ctorch._utils\n_rebuild_qtensor\n(" + STORAGE + PLACE + b"N\x89}tR", "are quantized"),
        (
            b"ctorch._utils\n_rebuild_sparse_tensor\n(N(" + T + T + b"K\x05\x85ttR",
            "it has tensors that are sparse",
        ),
        (
            b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(NK\x05\x85K\x01\x85\x89tR",
            "it has tensors on meta, which have no values",
        ),
        (V3 + BYTES + PLACE + b"\x89}cm\nC\ntR", "tensors in m.C are neither checked nor written"),
    ],
    ids=["quantized", "sparse", "meta", "unknown type"],
)
def test_tensors_that_are_not_written(
    code: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Quantized and sparse tensors, and those without values, are read, and never written."""
    path = tmp_path / "m.pt"
    write_torch(path, Raw(code), {"0": E})
    check(path)
    assert said in not_written(path, capsys)


@pytest.mark.parametrize(
    ("module", "limit", "said"),
    [
        (pickle_values, "_MOST", "holds more values than can be read in little memory"),
        (pickle_names, "_MOST_TENSORS", "the pickle has more than 1 tensors"),
        (pickle_names, "_MOST_ITEMS", "long containers at more places than can be gone to"),
        (torch_file, "_LARGEST_PICKLE", "its pickle has more than 1 bytes"),
        (zip_records, "_MOST_RECORDS", "it has more than 1 records"),
    ],
)
def test_limits(
    module: Any, limit: str, said: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """A pickle or a file with more than there may be is an error that says of what."""
    path = tmp_path / "m.pt"
    write_torch(path, [whole("0", E), [1, 2], whole("0", E[1:])], {"0": E})
    assert check(path).ok
    monkeypatch.setattr(module, limit, 1 if limit != "_MOST_ITEMS" else -1_000_000)
    assert main(["check", str(path)]) > 0
    assert said in "".join(capsys.readouterr())


def test_a_pickle_that_grows(tmp_path: Path) -> None:
    """Lists that each hold the one before twice are given up before they fill the memory."""
    path = tmp_path / "m.pt"
    double = (b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(60))
    write_torch(path, Raw(b"(]q\x00" + b"".join(double) + b"t"), {"0": E})
    assert found(path) == ["data.pkl: the pickle has more than 1000000 containers"]


def test_hostile_tensors(tmp_path: Path) -> None:
    """A tensor beyond its storage, or without one, is an error."""
    path = tmp_path / "m.pt"
    write_torch(path, {"a": View("0", (50, 16), (16, 1))}, {"0": E})
    assert found(path) == ["a needs bytes 0 to 3200 of a storage that has 2560"]
    write_torch(path, {"a": whole("0", E)}, {"0": E})
    with zipfile.ZipFile(path) as archive:
        data = archive.read("archive/data.pkl")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", data)
    assert found(path) == ["the storage of a isn't in the file"]
    write_torch(path, {"a": whole("0", E)}, {"0": E}, zipfile.ZIP_DEFLATED)
    assert found(path)[0] == "the record data.pkl is compressed, which torch's never are"


def test_a_file_of_more_than_four_gigabytes(tmp_path: Path) -> None:
    """Where sizes, places and the number of records need eight bytes, they are read there."""
    path, hole = tmp_path / "m.pt", 1_200_000_000
    tree = {"a": View("0", (4,), (1,), hole), "b": whole("1", E)}
    write_wide_torch(path, tree, {"0": np.arange(4.0), "1": E}, hole)
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 66_004
        assert archive.getinfo("archive/data/1").header_offset > 4 * hole
    assert [str(finding) for finding in check(path)] == [
        "waste: a uses 16 B of a storage of 4.8 GB, which is stored whole"
    ]
    arrays = written(path)
    assert arrays["a"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert (arrays["b"] == E).all()


def rows(*keys: Any) -> dict[Any, View]:
    """A row of `E` under each key."""
    return {key: View("0", (16,), (1,), 16 * i) for i, key in enumerate(keys)}


@pytest.mark.parametrize(
    ("tree", "names"),
    [
        (rows("0", 0, "[0]"), ["0", "[0]", "['[0]']"]),
        (rows("a.b") | {"a": {"b": View("0", (16,), (1,), 16)}}, ["a.b", "['a']['b']"]),
        (rows(True, "True", "[True]"), ["[True]", "True", "['[True]']"]),
        (rows(None, "None", -3, 1.5, 1j), ["[None]", "None", "-3", "[1.5]", "[1j]"]),
        (rows((0, "k"), (0, "v"), ()), ["[(0, 'k')]", "[(0, 'v')]", "[()]"]),
        (rows(2 + 0j, "3"), ["[(2+0j)]", "3"]),
        (rows(b"x", "x", b"", ""), ["[b'x']", "x", "[b'']", "['']"]),
        (rows("__metadata__", "\ud800"), ["['__metadata__']", "['\\ud800']"]),
        (
            {"m": [rows(1), {(1, b"2"): View("0", (16,), (1,), 16)}]},
            ["m.0.1", "['m'][1][(1, b'2')]"],
        ),
        (whole("0", E[:1, :]), ["tensor"]),
    ],
)
def test_any_key(tree: Any, names: list[str], tmp_path: Path) -> None:
    """A tensor under any key is checked and written, each under a name of its own."""
    path = tmp_path / "m.pt"
    write_torch(path, tree, {"0": E})
    assert check(path).figures.arrays == len(names)
    arrays = written(path)
    assert set(arrays) == set(names)
    assert all((arrays[name].reshape(16) == E[i]).all() for i, name in enumerate(names))


@pytest.mark.parametrize("keys", [("a", "a"), (1, True), (0, 0.0), ((1,), (1.0,)), (b"a", b"a")])
def test_a_key_twice(keys: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two keys that are equal in Python hide a tensor: an error, and nothing is written."""
    path = tmp_path / "m.pt"
    code = b"".join(pickled(key).code + T for key in keys)
    write_torch(path, Raw(b"}(" + code + b"u"), {"0": E})
    (text,) = found(path)
    assert text.startswith("data.pkl: malformed pickle: a dict has the key ")
    assert "nothing is written: data.pkl: " in not_written(path, capsys)


ORDERED = b"ccollections\nOrderedDict\n)R"
OWN = b"cm\nC\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (OWN + b")\x81}X\x01\x00\x00\x00x" + T + b"sb", "['b'] (m.C)"),
        (OWN + b")\x81N}X\x01\x00\x00\x00x" + T + b"s\x86b", "['b'] (m.C)"),
        (OWN + b"(" + T + b"tR", "['b'] (m.C)"),
        (OWN + b"(" + T + b"t\x81", "['b'] (m.C)"),
        (OWN + b")}X\x01\x00\x00\x00x" + T + b"s\x92", "['b'] (m.C)"),
        (OWN + b")\x81(" + T + b"e", "['b'] (m.C)"),
        (OWN + b")\x81" + T + b"a", "['b'] (m.C)"),
        (OWN + b")\x81(N" + T + b"u", "['b'] (m.C)"),
        (OWN + b")\x81(N](" + T + b"eu", "['b'] (m.C)"),
        (b"(" + OWN + T + b"o", "['b'] (m.C)"),
        (b"(" + T + b"im\nC\n", "['b'] (m.C)"),
        (OWN + b"(" + OWN + b"(" + T + b"tRtR", "['b'] (m.C)"),
        (OWN + T + b"\x85R)R", "['b'] (m.C)"),
        (OWN + T + b"\x85R0N", "m.C"),
        (b"N(" + OWN + T + b"\x85R1", "m.C"),
        (b"]]" + OWN + b"(" + T + b"tRaa", "['b'][0][0] (m.C)"),
        (b"cbuiltins\nslice\n(" + T + b"tR", "['b'] (builtins.slice)"),
        (b"ccollections\ndeque\n(]K\x01tR" + T + b"a", "['b'] (collections.deque)"),
        (b"cbuiltins\nlist\n](" + T + b"e\x85\x81", "['b'] (builtins.list)"),
        (ORDERED + b"}X\x01\x00\x00\x00x" + T + b"sb", "the attributes of a dict"),
        (
            b"ctorch._utils\n_rebuild_parameter_with_state\n(" + T + b"\x89" + ORDERED
            + b"}X\x01\x00\x00\x00x" + T + b"stR",
            "torch._utils._rebuild_parameter_with_state",
        ),
        (
            b"ctorch._utils\n_rebuild_nested_tensor\n(" + T + b"tR",
            "['b'] (torch._utils._rebuild_nested_tensor)",
        ),
        (
            b"}ctorch\nfloat32\n" + T + b"s",
            "['b'][torch.float32] (under a key that is an object)",
        ),
        (b"}" + OWN + b"(" + T + b"tRNs", "['b'] (a key, m.C)"),
        (TENSOR + b"(" + storage(b"cm\nC\n") + b"K\x00K\x05\x85K\x01\x85\x89}tR", "['b'] (m.C)"),
        (
            b"cnumpy.core.multiarray\n_reconstruct\n)R",
            "['b'] (numpy.core.multiarray._reconstruct)",
        ),
    ],
)  # fmt: skip
def test_what_is_not_rebuilt(
    code: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An object that isn't rebuilt, and holds a tensor: an error with its name, and no file."""
    path = tmp_path / "m.pt"
    write_torch(path, {"a": whole("0", E), "b": Raw(code)}, {"0": E})
    (text,) = [finding.text for finding in check(path) if finding.level == "error"]
    assert f"tensors in {said} are neither checked nor written" in text
    assert f"tensors in {said} are neither checked nor written" in not_written(path, capsys)


def memoized(code: bytes, index: int = 0) -> bytes:
    """Puts a value into the memo, and leaves none."""
    return code + b"q%c0" % index


def text(size: int) -> bytes:
    return b"X" + struct.pack("<I", size) + b"x" * size


BOMBS = {
    "a tuple of tuples as a key": b"})" + b"\x85" * 300_000 + b"Ns",
    "a tuple of tuples": b")" + b"\x85" * 300_000,
    "copies": memoized(b"(" + b"N" * 300_000 + b"l")
    + b"(" + b"cbuiltins\nlist\nh\0\x85R" * 500 + b"l",
    "lists": b"(" + b"]" * 2_000_000 + b"l",
    "levels": b"]" * 300_000 + b"a" * 299_999,
    "marks": b"(" * 500_000,
    "doubled": b"N" + b"2" * 500_000 + b"0" * 500_000,
    "one text": memoized(text(9999)) + b"(" + b"h\0" * 200_000 + b"l",
    "long names": memoized(text(9999)) + memoized(T, 1) + b"(" + b"}h\0h\1s" * 50_000 + b"l",
    "deep long names": memoized(text(9999)) + b"(" + T + b"2" * 30_000 + b"l"
    + b"".join(b"\x94" + b"0}h\0j" + struct.pack("<I", i) + b"s" for i in range(1, 150)),
    "one tensor": memoized(T) + b"(" + b"h\0" * 200_000 + b"l",
    "a huge integer": b"\x8b" + struct.pack("<I", 20_000_000) + b"\x7f" * 20_000_000,
    "a huge decimal": b"L" + b"9" * 3_000_000 + b"L\n",
    "a huge key": b"}\x8b" + struct.pack("<I", 3_000_000) + b"\x7f" * 3_000_000 + b"Ns",
    "names": memoized(text(240)) + b"(" + b"".join(
        b"h\0X\x05\0\0\0%05d\x93" % i for i in range(50_000)
    ) + b"l",
    "a far place": b"Nr\xff\xff\xff\x7f",
    "equal hashes": b"}(" + b"".join(
        b"\x8a\x0a" + (i * (2**61 - 1)).to_bytes(10, "little") + b"N" for i in range(1, 30_000)
    ) + b"u",
    "axes": memoized(b"(" + b"K\1" * 100_000 + b"t") + b"("
    + (TENSOR + b"(" + storage() + b"K\0h\0h\0\x89}tR") * 1000 + b"l",
    "a frame": b"\x95" + b"\xff" * 7 + b"\x7f" + b"N",
    "a list at many places": memoized(b"](" + b"N" * 50_000 + b"e") + b"(" + b"h\0" * 1000 + b"t",
    "a dict at many places": memoized(
        b"}(" + b"".join(b"J" + struct.pack("<i", i) + b"N" for i in range(30_000)) + b"u"
    ) + b"(" + b"h\0" * 1000 + b"t",
    "encoded texts": memoized(b"c_codecs\nencode\n") + memoized(
        b"(" + text(9999) + b"X\x06\0\0\0latin1t", 1
    ) + b"(" + b"h\0h\1R" * 200_000 + b"t",
    "ignored arguments": memoized(b"ctorch\ndevice\n") + memoized(b"(" + b"N" * 500_000 + b"t", 1)
    + b"(" + b"h\0h\1R0" * 2000 + b"t",
    "dropped copies": memoized(b"cbuiltins\nfrozenset\n") + memoized(
        b"](" + b"N" * 100_000 + b"e\x85", 1
    ) + b"(" + b"h\0h\1R0" * 50_000 + b"t",
    "attributes": memoized(
        b"}(" + b"".join(b"J" + struct.pack("<i", i) + b"N" for i in range(30_000)) + b"u"
    ) + b"ccollections\nOrderedDict\n)R" + b"h\0b" * 50_000,
    "classes in classes": memoized(SUBCLASS) + memoized(b"ctorch\nTensor\n", 1) + b"h\0"
    + b"(h\0h\1" * 1000 + b")" + b"Nt" * 1000 + b"R",
    "a doubled key": b"}" + memoized(b"K\0") + b"".join(
        b"h%ch%c\x86q%c0" % (i, i, i + 1) for i in range(60)
    ) + b"h\x3cNs",
    "objects": OWN + b"q\x000N" + b"q\x010h\0h\1\x85R" * 50_000,
}  # fmt: skip
FINE = {"doubled", "a huge integer", "one text", "equal hashes", "objects"}  # in `show`


@pytest.mark.measures
@pytest.mark.parametrize("bomb", BOMBS)
@needs_posix
def test_bombs(bomb: str, tmp_path: Path) -> None:
    """A small file takes neither much memory nor much time, and says what is wrong in few lines."""
    path = tmp_path / "m.pt"
    write_torch(path, Raw(BOMBS[bomb]), {"0": E})
    code = (
        "import sys, pydag.__main__ as m; a = m.main(['check', sys.argv[1]]);"
        "b = m.main(sys.argv[1:]);"
        # Not ru_maxrss, which a process has from the one that started it.
        "peak = next(x for x in open('/proc/self/status') if x.startswith('VmHWM')).split()[1];"
        "print(peak, a, b)"
    )
    arguments = [sys.executable, "-P", "-c", code, str(path)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True)
    kilobytes, checked, shown = map(int, done.stdout.splitlines()[-1].split())
    assert kilobytes < 200_000
    assert checked == (bomb not in FINE or bomb == "objects")
    assert shown == (bomb not in FINE)
    assert len(done.stdout) + len(done.stderr) < 5_000


@pytest.mark.parametrize(
    ("views", "said"),
    [
        ([View("0", (2**31 - 1, 2**31 - 1), (0, 0))], "has more elements than there can be"),
        ([View("0", (1 << 20, 1 << 14), (0, 0))], "0 is expanded, or overlaps others"),
        ([View("0", (2,) * 40, (0,) * 40)] * 2, "0 is expanded, or overlaps others"),
        ([View("0", (2,) * 40, (1,) * 40), View("0", (2,), (1,))], "is expanded, or overlaps"),
        ([View("0", (300, 300), (1, 1))], "is expanded, or overlaps others"),
        ([View("0", (1,) * 100, (1,) * 100)], "has 100 axes, and arrays have at most 64"),
        ([View("0", (600,), (1,), i) for i in range(40)], "is expanded, or overlaps others"),
    ],
)
def test_what_is_expanded(
    views: list[View], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shapes with far more elements than the file has are held against it before all else."""
    path = tmp_path / "m.pt"
    write_torch(path, views, {"0": E})
    assert main(["check", str(path)]) in (0, 1)
    assert said in not_written(path, capsys)
    assert main([str(path)]) == 0


@pytest.mark.parametrize("array", [E, E.T])
def test_a_file_that_becomes_shorter(array: Any, tmp_path: Path) -> None:
    """A file that was cut after it was opened is an OSError that says it, strided tensors too."""
    path = tmp_path / "m.pt"
    write_torch(path, {"a": whole("0", array)}, {"0": np.ascontiguousarray(array)})
    model = open_model(str(path))
    os.truncate(path, 1000)
    with pytest.raises(OSError, match="it has become shorter while it was read"):
        list(contents(model.arrays["a"]))
    model.close()


def test_values_of_checkpoints(tmp_path: Path) -> None:
    """Builtin containers and numbers of NumPy are read; the names of their tensors tell the way."""
    values = [range(3), slice(1, 2), {1}, frozenset([1]), 1j, b"x", bytearray(b"x"), (), 1 << 99]
    values += [np.float32(1), np.int64(1), np.bool_(True), np.dtype("float32"), Counter("aab")]
    values += [deque([1]), deque([1], 2), defaultdict(list, a=[1]), OrderedDict(a=1)]
    path, row = tmp_path / "m.pt", View("0", (16,), (1,))
    key = Raw(b"(K\x01K\x02\x86K\x03\x91")  # a frozenset of a tuple and a number
    tree = [[pickled(value) for value in values], {((0, 1), "a"): row}]
    write_torch(path, tree, {"0": E})
    assert not check(path).at("error")
    assert set(written(path)) == {"[1][((0, 1), 'a')]"}
    write_torch(path, Raw(b"}" + key.code + T + b"s"), {"0": E})
    assert set(written(path)) == {"[((1, 2), 3)]"}
    code = b"ccollections\ndefaultdict\ncbuiltins\nlist\n\x85RX\1\0\0\0d](" + T + b"es"
    write_torch(path, Raw(code), {"0": E})
    assert set(written(path)) == {"d.0"}


def test_what_no_other_format_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tensor without elements is written wherever it begins; a type without a name never is."""
    path = tmp_path / "m.pt"
    write_torch(
        path, {"a": View("0", (0, 16), (16, 1), 640), "b": View("0", (0,), (1,), 9999)}, {"0": E}
    )
    assert {name: array.shape for name, array in written(path).items()} == {"a": (0, 16), "b": (0,)}
    double = storage(b"ctorch\nComplexDoubleStorage\n").replace(b"M\x80\x02", b"M\xa0\x00")
    write_torch(path, Raw(TENSOR + b"(" + double + b"K\x00K\x05\x85K\x01\x85\x89}tR"), {"0": E})
    assert check(path).ok
    assert "tensor is C128[5], which safetensors files can't have" in not_written(path, capsys)
    write_torch(path, Raw(T.replace(b"M\x80\x02", b"M\x81\x02")), {"0": E})
    assert found(path) == ["tensor is in a storage of 641 elements, which has 2560 bytes"]


def rewritten(path: Path, records: Any) -> None:
    """A zip file with these records, in this order."""
    with zipfile.ZipFile(path, "w") as archive, pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # of a name that stands twice
        for name, data in records:
            archive.writestr(name, data)


GOOD, OTHER = b"\x80\x02}.", b"\x80\x02cos\nsystem\n."


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["m/data.pkl", "m/data.pkl"], "two records of one name"),
        (["m/data.pkl", "m/DATA.PKL"], "two records of one name"),
        (["m/Data.pkl", "m/data.pkl"], "two records of one name"),
        (["m/data.pkl", "M/data.pkl"], "the record M/data.pkl isn't in the folder m"),
        (["x/version", "m/data.pkl"], "the record m/data.pkl isn't in the folder x"),
        (["m/data.pkl", "x/data.pkl"], "the record x/data.pkl isn't in the folder m"),
        (["m/data.pkl", "data.pkl"], "the record data.pkl isn't in the folder m"),
        (["m/data.pkl", "m/./data.pkl"], "has a name that readers read differently"),
        (["m/data.pkl", "m//data.pkl"], "has a name that readers read differently"),
        (["m/data.pkl", "m/x/../data.pkl"], "has a name that readers read differently"),
        (["m/data.pkl", "m/x\\data.pkl"], "has a name that readers read differently"),
        (["m/data.pkl", "m\\data.pkl"], "isn't in the folder m"),
        (["m/DATA.PKL", "m/version"], "its first record isn't in the folder of its data.pkl"),
        (["m/data.pkl", "m/ByteOrder"], "it was written on a big-endian machine"),
        (["m/data.pkl", "m/VERSION"], "it has an unknown version of torch's format"),
        (["m/data.pkl", "m/Constants.pkl"], "it is a TorchScript program"),
    ],
)
@pytest.mark.parametrize("is_last", [True, False])
def test_records_that_two_readers_may_take(
    names: list[str], said: str, is_last: bool, tmp_path: Path, capsys: Any
) -> None:
    """Records of which two readers may take different ones: the file is refused."""
    contents = (GOOD, OTHER) if is_last else (OTHER, GOOD)
    rewritten(path := tmp_path / "m.pt", zip(names, contents, strict=True))
    assert main(["check", str(path)]) == 2
    assert said in capsys.readouterr().err
    assert main([str(path)]) == 1


def local(data: bytes, at: int, byte: int) -> bytes:
    """A byte of the first record's own header, counted behind its mark, changed."""
    return data[: at + 2] + bytes([byte]) + data[at + 3 :]


def entry(data: bytes, at: int, byte: int) -> bytes:
    """A byte of the first record's row in the table, changed."""
    at += data.index(b"PK\1\2")
    return data[:at] + bytes([byte]) + data[at + 1 :]


def changed(data: bytes, old: bytes, new: bytes, count: int = 1) -> bytes:
    assert old in data
    return data.replace(old, new, count)


def wide_end(place: int) -> bytes:
    """The end of a large file, which is at another place, and the beginning of the usual end."""
    return bytes(56) + b"PK\6\7" + struct.pack("<IQI", 0, place, 1) + b"PK\5\6"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: OTHER + data, "it is a zip file with something before it"),
        (lambda data: data + b"x", "it has something behind its end"),
        (lambda data: data[:-2] + b"\1\0x", "it has something behind its end"),
        (lambda data: data[:-2] + b"\1\0", "its table of records isn't where it is said to be"),
        (lambda data: data[:4] + b"x" * 9 + data[4:], "isn't where it is said to be"),
        (
            lambda data: changed(data, b"m/data.pkl", b"m/evil.pkl"),
            "is called m/evil.pkl where its",
        ),
        (lambda data: changed(data, b"PK\1\2", b"PK\1\3"), "its table of records is damaged"),
        (lambda data: local(data, 4, 32), "is encrypted, compressed, or of another size"),
        (lambda data: local(data, 6, 8), "or of another size where its bytes are"),
        (lambda data: local(data, 20, 1), "or of another size where its bytes are"),
        (lambda data: entry(data, 34, 1), "is on another disk, or a folder"),
        (lambda data: entry(data, 8, 1), "is encrypted, or a patch"),
        (lambda data: entry(data, 42, 255), "is outside of the file"),
        (lambda data: local(data, 24, 255), "is outside of the file"),
        (lambda data: data[:-14] + b"\x09\0\x09\0" + data[-10:], "cut short"),
        (lambda data: changed(data, b"PK\5\6", wide_end(1)), "its two ends differ"),
        (lambda data: entry(entry(data, 42, 255), 43, 255), "is outside of the file"),
        (lambda data: entry(data, 38, 16), "is on another disk, or a folder"),
        (lambda data: changed(data, b"m/version", b"m/persion", 2), "no record of its version"),
        (lambda data: data[:-12] + b"\0\0" + data[-10:], "more records than it says"),
        (lambda data: data[:-14] + b"\1\0\1\0" + data[-10:], "more records than it says"),
    ],
)
def test_zip_files_that_two_readers_may_read_differently(
    change: Any, said: str, tmp_path: Path, capsys: Any
) -> None:
    """Bytes before and behind, and headers that disagree, are refused, or an error."""
    rewritten(path := tmp_path / "m.pt", [("m/data.pkl", GOOD), ("m/version", b"3")])
    assert main(["check", str(path)]) == 0
    path.write_bytes(change(path.read_bytes()))
    capsys.readouterr()
    assert main(["check", str(path)]) > 0
    assert said in "".join(capsys.readouterr())
