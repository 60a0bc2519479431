# SPDX-License-Identifier: Apache-2.0
"""Bad input: nothing in a file is run, and whatever is wrong is one clear line."""

import contextlib
import io
import json
import os
import struct
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("safetensors")
from model_files import INDEX, write_shards
from operations import needs_posix
from safetensors.numpy import save_file

from pydag.__main__ import main
from pydag.doctor import paths, raw
from pydag.doctor.raw import RawFile
from pydag.files import check

E = np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)
KNOWN = "Known are safetensors files, torch's zip files (.pt, .pth, .bin), GGUF files"
ROW = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of a path that can't be read: one line, and exit code 2."""
    assert main(["check", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("pydag: ")
    assert err.count("\n") == 1
    with pytest.raises((ValueError, OSError)):
        check(path)
    return err


def found(path: Path) -> list[str]:
    """The texts of all errors."""
    report = check(path)
    assert all(finding.level == "error" for finding in report)
    return [finding.text for finding in report]


def safetensors(path: Path, header: bytes, length: int | None = None) -> Path:
    size = struct.pack("<Q", len(header) if length is None else length)
    path.write_bytes(size + header + bytes(4))
    return path


@pytest.mark.parametrize(
    ("header", "length", "said"),
    [
        (b"{}", 1 << 62, "the header is said to have 4611686018427387904 bytes"),
        (b"{nothing", None, "malformed header of a safetensors file: "),
        (b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", None, "malformed header"),
        (f'{{"a":{ROW},"a":{ROW}}}'.encode(), None, "the name 'a' stands twice"),
        (b'{"a":' + b"9" * 5000 + b"}", None, "malformed header"),
        (b'{"a":"\xff"}', None, "malformed header"),
        (f'{{"\\ud800":{ROW}}}'.encode(), None, "malformed header"),
        (b"[1, 2]", None, KNOWN),
    ],
)
def test_hostile_headers(
    header: bytes, length: int | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A header that is none is refused, however long, deep or odd it is."""
    assert said in refused(safetensors(tmp_path / "m.safetensors", header, length), capsys)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"a": 3}, "a: its entry in the header is no object"),
        ({"a": {"dtype": "F32", "shape": [1] * 1000, "data_offsets": [0, 4]}}, "a: its shape is"),
        ({"a": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, "a: its shape is"),
        ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, "a: its offsets are no two"),
        ({"a": {"shape": [1], "data_offsets": [0, 4]}}, "a: its type is missing"),
        ({"a": {"dtype": "F128", "shape": [], "data_offsets": [0, 16]}}, "a has a type that is"),
        ({"a": {"dtype": "C128", "shape": [], "data_offsets": [0, 16]}}, "a has a type that is"),
        ({"a": {"dtype": "I4", "shape": [8], "data_offsets": [0, 4]}}, "a has a type that is"),
        ({"a": {"dtype": "F4", "shape": [9], "data_offsets": [0, 4]}}, "a has 4 bytes, and by "),
        ({"a": {"dtype": "F6_E2M3", "shape": [6], "data_offsets": [0, 4]}}, "a has 4 bytes, and"),
        ({"__metadata__": {"a": 1}}, "the metadata are no object of texts"),
        ({"__metadata__": [1]}, "the metadata are no object of texts"),
    ],
)
def test_hostile_entries(entries: Any, text: str, tmp_path: Path) -> None:
    """An entry of a header that is none is an error."""
    path = safetensors(tmp_path / "m.safetensors", json.dumps(entries).encode())
    assert any(line.startswith(text) for line in found(path))


@needs_posix
def test_unreadable_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Empty and unknown files, links to themselves, pipes, devices, folders: refused at once."""
    (path := tmp_path / "m.safetensors").write_bytes(b"")
    assert "it is empty" in refused(path, capsys)
    path.write_bytes(b"nothing of this kind")
    assert KNOWN in refused(path, capsys)
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert "it is a Git LFS pointer, and the file itself isn't here" in refused(path, capsys)
    (loop := tmp_path / "loop.safetensors").symlink_to(loop)
    assert refused(loop, capsys) == f"pydag: {str(loop)!r}: Too many levels of symbolic links\n"
    os.mkfifo(fifo := tmp_path / "fifo.safetensors")
    assert "it is no regular file" in refused(fifo, capsys)
    assert "it is no regular file" in refused(Path("/dev/zero"), capsys)
    (empty := tmp_path / "empty").mkdir()
    assert "there is no file in this directory that can be read" in refused(empty, capsys)
    (empty / "model.safetensors").symlink_to("model.safetensors")
    assert "Too many levels of symbolic links" in refused(empty, capsys)


def test_what_is_no_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model in the place of a path is a TypeError; nothing is written to an address."""
    with pytest.raises(TypeError, match="the path of a file comes first, got "):
        check(object())  # type: ignore[arg-type]  # on purpose
    save_file({"a": E}, path := tmp_path / "m.safetensors")
    assert check(os.fsencode(path)).ok  # type: ignore[arg-type]  # as open takes it
    assert main(["check", str(path), "--write", "s3://b/m"]) == 2
    out, err = capsys.readouterr()
    assert (out, "'s3://b/m' is an address" in err, err.count("\n")) == ("", True, 1)


@pytest.mark.parametrize("file", ["../outside.safetensors", "/etc/passwd", "..", "a\\b", "C:x"])
def test_an_index_that_leaves_its_directory(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An index may only name files beside it."""
    write_shards(tmp_path / "d", {"a": E}, {"b": E + 1}, index={"x": file})
    said = refused(tmp_path / "d", capsys)
    assert f"'x' is said to be in {file!r}, and only a file beside the index may be named" in said


@needs_posix
def test_a_malformed_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An index that is no JSON, or has no table, is refused; one that names a pipe is an error."""
    for text in ("{nope", "[]", '{"weight_map": 3}', "[" * 100_000):
        (tmp_path / INDEX).write_text(text)
        assert "is no index of safetensors files" in refused(tmp_path, capsys)
    (tmp_path / INDEX).unlink()
    os.mkfifo(tmp_path / INDEX)
    assert "it is no regular file" in refused(tmp_path, capsys)
    (tmp_path / INDEX).unlink()
    os.mkfifo(tmp_path / "f")
    write_shards(tmp_path, {"a": E}, {"b": E + 1}, index={"x": "f"})
    (text,) = found(tmp_path)
    assert text.startswith("f can't be read: ")


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "\udcff", "[]", "\ufeff{}", '{"tie_word_embeddings": ' + "9" * 5000 + "}"],
)
def test_a_malformed_config(text: str, tmp_path: Path) -> None:
    """A config that can't be read is an error of its own."""
    save_file({"model.embed_tokens.weight": E}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(text, errors="surrogateescape")
    (line,) = found(tmp_path)
    assert line.startswith("config.json can't be read: ")


def test_other_containers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Zip files of others, tar archives and programs of torch's are refused, and not unpacked."""
    path = tmp_path / "m.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../outside", "x")
    assert "it is a zip file, and none of torch's" in refused(path, capsys)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02}.")
        archive.writestr("m/constants.pkl", b"\x80\x02).")
    assert "it is a TorchScript program" in refused(path, capsys)
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("storages"), io.BytesIO(b""))
    assert "it is a tar archive" in refused(path, capsys)
    assert list(tmp_path.iterdir()) == [path]


def gguf(path: Path, arrays: int, values: int, *parts: int | bytes, room: int = 200) -> Path:
    """A GGUF header with a number of 8 bytes, or bytes, one after the other, and zeros behind."""
    header = b"GGUF" + struct.pack("<IQQ", 3, arrays, values)
    header += b"".join(p if isinstance(p, bytes) else struct.pack("<Q", p) for p in parts)
    path.write_bytes(header)
    os.truncate(path, len(header) + room)  # without taking space on the disk
    return path


KEY = struct.pack("<QcI", 1, b"k", 8)  # of a text
LIST = struct.pack("<QcI", 1, b"k", 9)
ALIGNMENT = struct.pack("<Q17s", 17, b"general.alignment")
LISTS, TEXTS, BYTES = struct.pack("<I", 9), struct.pack("<I", 8), struct.pack("<I", 0)
SCALAR = struct.pack("<QcIIQ", 1, b"a", 0, 0, 0)  # an array without dimensions
BIG = 6 << 30


@pytest.mark.parametrize(
    ("arrays", "values", "parts", "room", "said"),
    [
        (1 << 60, 1 << 60, [], 200, "it can't have 1152921504606846976 arrays"),
        (1 << 27, 0, [], BIG, "it can't have 134217728 arrays"),
        (0, 1 << 28, [], BIG, "it can't have 268435456 values"),
        (0, 1, [BIG], BIG, "a name of 6442450944 bytes"),
        (1, 0, [BIG], BIG, "a name of 6442450944 bytes"),
        (300, 0, [struct.pack("<Q", 65000) + bytes(65016)] * 300, 200, "names of more than"),
        (0, 1, [struct.pack("<QcI", 1, b"k", 77)], 200, "a value of the type 77"),
        (0, 1, [LIST, TEXTS, 1 << 29], BIG, "it can't have 536870912 items in a list"),
        (0, 1, [LIST, LISTS, 1 << 28], BIG, "it can't have 268435456 items in a list"),
        (0, 1, [LIST, BYTES, BIG + 300], BIG, "it can't have 6442451244 items in a list"),
        (0, 1, [LIST, *[LISTS, 1] * 9], 200, "a value of the type 9"),
        (1, 0, [1, b"a", struct.pack("<I", 1 << 31)], 200, "a has 2147483648 dimensions"),
        (0, 1, [ALIGNMENT, struct.pack("<II", 4, 0)], 200, "an alignment of 0 bytes"),
        (0, 1, [ALIGNMENT, struct.pack("<II", 4, 24)], 200, "an alignment of 24 bytes"),
        (0, 1, [ALIGNMENT, struct.pack("<IQ", 10, 64)], 200, "an alignment of 0 bytes, or of no"),
    ],
)
def test_hostile_gguf(
    arrays: int, values: int, parts: Any, room: int, said: str, tmp_path: Path, capsys: Any
) -> None:
    """A GGUF header with impossible numbers is refused, without memory or time for them."""
    path = gguf(tmp_path / "m.gguf", arrays, values, *parts, room=room)
    tracemalloc.start()
    try:
        assert f"malformed header: {said}" in refused(path, capsys)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("arrays", "values", "parts", "room", "expected"),
    [
        (0, 1, [KEY, BIG], BIG, []),
        (0, 1, [KEY, BIG], 200, ["the file is cut short within its header"]),
        (0, 1, [LIST, BYTES, BIG], BIG, []),
        (0, 1, [LIST, TEXTS, 2, 1 << 63], 200, ["the file is cut short within its header"]),
        (0, 2, [KEY, 0, KEY, 0], 200, ["k is a key twice"]),
        (3, 0, [SCALAR] * 3, 200, ["a is stored twice"]),
        (0, 1, [KEY], 0, ["the file is cut short within its header"]),
        (
            1,
            0,
            [1, b"a", struct.pack("<IQIQ", 1, 4, 77, 0)],
            200,
            ["a has the type 77, which is unknown"],
        ),
        (
            1,
            0,
            [1, b"a", struct.pack("<IQIQ", 1, 4, 2, 0)],
            200,
            ["a has no shape of whole blocks: [4]"],
        ),
    ],
)
def test_gguf_headers(
    arrays: int, values: int, parts: Any, room: int, expected: Any, tmp_path: Path
) -> None:
    """Long values are skipped; what ends too early, or stands twice, is an error."""
    report = check(gguf(tmp_path / "m.gguf", arrays, values, *parts, room=room))
    assert [finding.text for finding in report] == expected


def test_a_gguf_file_of_another_version(tmp_path: Path, capsys: Any) -> None:
    """A version that isn't known is refused."""
    (path := tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 9, 0, 0))
    assert "versions 2 and 3 can be read" in refused(path, capsys)


def test_what_overlaps_is_not_read_again(tmp_path: Path, monkeypatch: Any) -> None:
    """However many arrays are said to be in one place, few bytes are read to compare them."""
    rows = ((b"%03d" % i, i) for i in range(200))
    infos = [struct.pack("<Q3sIQIQ", 3, name, 1, 250_000, 0, i * 32) for name, i in rows]
    path = gguf(tmp_path / "m.gguf", 200, 0, *infos, room=2_000_000)
    with open(path, "r+b") as file:
        file.seek(-1_990_000, os.SEEK_END)
        file.write(bytes(1_990_000))
    read, original = [], RawFile.read

    def counted(self: RawFile, begin: int, size: int) -> bytes:
        read.append(size)
        return original(self, begin, size)

    monkeypatch.setattr(RawFile, "read", counted)
    assert len(check(path).at("error")) == 199
    assert sum(read) < 10_000_000


def test_the_structure_decides(tmp_path: Path) -> None:
    """The length of a header may look like a zip file or a pickle; the name doesn't count."""
    path = tmp_path / "m.bin"
    for start in (b"PK\x03\x04", b"\x80\x02}q"):
        length = int.from_bytes(start, "little")
        if length > 1 << 27:
            length = int.from_bytes(start[:3], "little")
        text = f'{{"a":{ROW}}}'.encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", length) + text + b" " * (length - len(text)) + bytes(4))
        assert check(path).kind == "safetensors"
        assert len(check(path)) == 0


def test_a_file_that_becomes_shorter(tmp_path: Path, monkeypatch: Any) -> None:
    """A read that gives fewer bytes goes on; where nothing is left, an error says why."""
    (path := tmp_path / "m").write_bytes(b"0123456789")
    with contextlib.closing(raw.RawFile(str(path))) as file:
        monkeypatch.setattr(
            raw, "_read", lambda handle, size, at: os.pread(handle, min(3, size), at)
        )
        assert file.read(1, 8) == b"12345678"
        monkeypatch.setattr(raw, "_read", raw._seek_and_read)  # as on Windows
        assert file.read(2, 5) == b"23456"
        os.truncate(path, 4)
        with pytest.raises(OSError, match="it has become shorter while it was read"):
            file.read(2, 5)


def test_a_small_file_that_is_large(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """A config or an index of more bytes than any has is refused before it is read."""
    save_file({"a": np.zeros(3)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}" + " " * 200)
    monkeypatch.setattr(paths, "LARGEST", 100)
    assert "has more than 100 bytes" in " ".join(found(tmp_path))
