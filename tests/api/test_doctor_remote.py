# SPDX-License-Identifier: Apache-2.0
"""The doctor reads models elsewhere by ranges, and of arrays only what it must compare."""

import contextlib
import http.server
import json
import os
import re
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
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
    write_config,
    write_shards,
    write_torch,
)

from pydag.__main__ import main
from pydag.doctor.raw import RawFile
from pydag.files import check

E = numbers(40, 16)
Run = Callable[..., Any]


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves ranges of the files in a folder, and counts the bytes that it sends."""

    folder: Path
    sent = 0
    has_ranges = True

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self.folder / self.path.lstrip("/")
        if not path.is_file():
            return self.send_error(404)
        size = path.stat().st_size
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        ranged = asked if self.has_ranges else None
        begin, end = (int(ranged[1]), min(int(ranged[2]) + 1, size)) if ranged else (0, size)
        self.send_response(206 if ranged else 200)
        self.send_header("Content-Length", str(end - begin))
        if ranged:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.end_headers()
        with open(path, "rb") as file:
            file.seek(begin)
            while self.command == "GET" and begin < end:
                begin += (step := min(1 << 16, end - begin))
                type(self).sent += step
                self.wfile.write(file.read(step))
        return None

    do_HEAD = do_GET  # noqa: N815  # as the base class calls it


class Server(http.server.ThreadingHTTPServer):
    """Ends quietly where a client takes no more."""

    def handle_error(self, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def serving(handler: type[Handler]) -> Iterator[str]:
    """Runs a server; gives its address."""
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, type[Handler]]]:
    """The address of a server of `tmp_path`, and its class, which counts."""
    pytest.importorskip("aiohttp")
    pytest.importorskip("fsspec")
    handler = type("Counting", (Handler,), {"folder": tmp_path})
    with serving(handler) as address:
        yield address, handler


def write_sparse(path: Path, names: list[str], shape: list[int], seed: int = -1) -> None:
    """A safetensors file of matrices of zeros; with a seed of 0 or more, but for their middles."""
    nbytes = 2 * int(np.prod(shape))
    header = {
        name: {"dtype": "BF16", "shape": shape, "data_offsets": [i * nbytes, (i + 1) * nbytes]}
        for i, name in enumerate(names)
    }
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + len(names) * nbytes)
        for i in range(len(names)) if seed >= 0 else ():
            middle = shape[0] // 2 * shape[1] + shape[1] // 2
            file.seek(8 + len(text) + i * nbytes + 2 * middle)
            file.write(numbers(16, seed=seed + i).tobytes())


def write_sparse_shards(folder: Path, total: int, count: int, shape: list[int]) -> dict[str, str]:
    """Shards of such matrices with an index; returns the shard of each."""
    files = {}
    for i in range(1, total + 1):
        names = [f"h.{i}.{k}.w" for k in range(count)]
        write_sparse(folder / shard(i, total), names, shape, seed=i * count)
        files.update(dict.fromkeys(names, shard(i, total)))
    (folder / INDEX).write_text(json.dumps({"weight_map": files}))
    return files


def in_memory(folder: Path) -> str:
    """The address of a copy of a folder."""
    system = pytest.importorskip("fsspec").filesystem("memory")
    system.put(str(folder), f"/{folder.name}", recursive=True)
    return f"memory://{folder.name}"


def test_a_model_elsewhere_is_checked_as_one_here(tmp_path: Path) -> None:
    """A folder, an index, a file and a torch file have the same report, but for the paths."""
    write_shards(tmp_path / "shards", {EMBED: E, "w": E}, {HEAD: E, "v": numbers(64, 64)})
    write_config(tmp_path / "shards", **LM, tie_word_embeddings=True)
    (tmp_path / "torch").mkdir()
    views = {"a": View("0", (600,), (1,)), "b": View("0", (20, 20), (1, 20), 3)}
    write_torch(tmp_path / "torch" / "m.pt", views, {"0": numbers(700)})
    for folder, name in ("shards", ""), ("shards", INDEX), ("shards", shard(1)), ("torch", "m.pt"):
        here, there = tmp_path / folder / name, f"{in_memory(tmp_path / folder)}/{name}"
        expected, report = check(here).to_json(), check(there).to_json()
        assert report | {"path": ""} == expected | {"path": ""}
        assert report["path"] == there


def test_headers_of_a_gigabyte(tmp_path: Path, web: tuple[str, type[Handler]]) -> None:
    """The headers of a model of 1 GB need less than 1 % of its bytes; so do different contents."""
    address, handler = web
    write_sparse_shards(tmp_path, 4, 64, [1024, 2048])
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert size > 1e9
    for headers, most in (True, size / 1000), (False, size / 500):
        handler.sent = 0
        report = check(address, headers=headers)
        assert (report.figures.files, report.figures.arrays, len(report)) == (4, 256, 0)
        assert handler.sent < most


def test_copies_elsewhere_are_found(tmp_path: Path, web: tuple[str, type[Handler]]) -> None:
    """Equal arrays on a web server are read, and reported as here."""
    address, handler = web
    write_shards(tmp_path, {"a": E, "b": numbers(40, 16, seed=1)}, {"c": E})
    assert [str(finding) for finding in check(address)] == [
        "waste: c equals a and is stored again: 2.6 kB"
    ]
    assert handler.sent < 15_000


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("none.safetensors", "there is no such file or folder"),
        ("none", "a web server doesn't say which files it has, and there is none of "),
        ("m.txt", "a web server doesn't say which files it has, and there is none of "),
    ],
)
def test_what_isnt_there(
    web: tuple[str, type[Handler]], path: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line has the address, and what is the matter; the exit code is 2."""
    assert main(["check", f"{web[0]}/{path}"]) == 2
    assert capsys.readouterr().err.startswith(f"pydag: '{web[0]}/{path}': {said}")


def test_a_server_without_ranges(tmp_path: Path, web: tuple[str, type[Handler]]) -> None:
    """A server that sends only whole files is an error, and no whole file is fetched."""
    address, handler = web
    handler.has_ranges = False
    write_sparse(tmp_path / "m.safetensors", [f"h.{i}.w" for i in range(900)], [512, 1024])
    with pytest.raises(OSError, match="range"):
        check(f"{address}/m.safetensors")
    assert handler.sent < (tmp_path / "m.safetensors").stat().st_size / 10


def test_what_is_missing_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without fsspec, or its part for a protocol, one line says what to install."""
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "fsspec", None)
        assert main(["check", "memory://m"]) == 2
    assert capsys.readouterr().err.endswith(" pip install 'pydag-tree[remote]'.\n")
    pytest.importorskip("fsspec")
    for address in ("nothing://b/m", "http://127.0.0.1:9/m.safetensors", "memory://none/m.pt"):
        assert main(["check", address]) == 2
        error = capsys.readouterr().err
        assert (error.startswith(f"pydag: '{address}': "), error.count("\n")) == (True, 1)


def test_local_files_need_no_fsspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of this machine is checked without fsspec."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    write_shards(tmp_path / "m", {"a": E}, {"b": E})
    assert len(check(tmp_path / "m")) == 1


class Hub(Handler):
    """A hub with one repository, in one commit."""

    commit = "0123abcd" * 5

    def answer(self, found: object) -> None:
        text = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def row(self, name: str) -> dict[str, object]:
        size = (self.folder / name).stat().st_size
        return {"type": "file", "oid": "0", "size": size, "path": name}

    def do_GET(self) -> None:
        self.path = self.path.partition("?")[0].removeprefix(f"/org/name/resolve/{self.commit}")
        if "/tree/" in self.path:
            self.answer([self.row(path.name) for path in self.folder.iterdir()])
        elif self.path.startswith("/api/models/org/name"):
            self.answer({"id": "org/name", "sha": self.commit, "siblings": []})
        else:
            super().do_GET()

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        names = [path.name for path in self.folder.iterdir() if path.name in asked]
        self.answer([self.row(name) for name in names])


def test_a_repository_on_a_hub(tmp_path: Path) -> None:
    """A repository is read as it is in one commit, which is that of its revision."""
    pytest.importorskip("huggingface_hub")
    pytest.importorskip("fsspec")
    write_shards(tmp_path, {"a": E}, {"b": E})
    with serving(type("OfTest", (Hub,), {"folder": tmp_path})) as address:
        for path in "hf://org/name", "hf://org/name@main", f"hf://org/name/{shard(1)}":
            command = [sys.executable, "-m", "pydag", "check", path, "--json"]
            environment = os.environ | {"HF_ENDPOINT": address, "HF_HUB_DISABLE_TELEMETRY": "1"}
            run = subprocess.run(command, env=environment, capture_output=True, text=True)
            report = json.loads(run.stdout)
            files = 1 if path.endswith(shard(1)) else 2
            assert (report["path"], report["files"]) == (path, files)
            assert report["revision"] == Hub.commit


def test_a_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository on a hub is read as it is in one commit, which the report names."""
    pytest.importorskip("fsspec")
    from pydag.doctor import remote

    write_shards(tmp_path / "hub", {"a": E}, {"b": E})
    address = in_memory(tmp_path / "hub")
    monkeypatch.setattr(remote, "pinned", lambda path: (address, "0123abcd"))
    report = check("hf://org/name")
    assert str(report).startswith("hf://org/name: safetensors, 2 files, revision 0123abcd\n")
    assert (report.to_json()["revision"], report.revision) == ("0123abcd", "0123abcd")
    assert "revision" not in check(tmp_path / "hub").to_json()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How many reads there were, by their bytes."""
    counted: Counter[int] = Counter()
    original = RawFile.read

    def read(self: RawFile, begin: int, size: int) -> bytes:
        counted[size] += 1
        return original(self, begin, size)

    monkeypatch.setattr(RawFile, "read", read)
    return counted


def test_headers_alone(
    tmp_path: Path, reads: Counter[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--headers` no array is read, and the last line says that none was compared."""
    write_shards(
        tmp_path, {EMBED: E, "a": E}, {HEAD: E + 1, "b": numbers(5, 5)}, index={"x": shard(1)}
    )
    write_config(tmp_path, **LM, tie_word_embeddings=True)
    assert main(["check", str(tmp_path), "--headers"]) == 1
    out = capsys.readouterr().out
    assert "the index names x in" in out
    assert "equal" not in out
    assert out.endswith("; only headers were read, and no content was compared\n")
    assert not {E.nbytes, 64, 16, 4} & set(reads)
    assert check(tmp_path, headers=True).to_json()["headers"]
    assert not check(tmp_path).headers


def test_an_alias_in_headers_alone(tmp_path: Path) -> None:
    """An alias that is stored as well isn't compared; one of another shape is an error."""
    from safetensors.numpy import save_file

    path = tmp_path / "m.safetensors"
    for other, levels in (E + 1, []), (E[:3], ["error"]):
        save_file({"a": E, "b": other}, path, metadata={"b": "a"})
        assert [finding.level for finding in check(path, headers=True)] == levels


def test_reads_of_each_array(tmp_path: Path, reads: Counter[int]) -> None:
    """One part of 64 bytes is read of each array; more only of those that agree there."""
    from safetensors.numpy import save_file

    path = tmp_path / "m.safetensors"
    tall = {f"h.{i}.w": numbers(64, 96, seed=i) for i in range(200)}
    save_file(tall | {f"h.{i}.v": numbers(96, 64, seed=i + 300) for i in range(50)}, path)
    assert check(path).ok
    assert reads[64] == 250
    assert sum(reads.values()) <= 254
    reads.clear()
    save_file({**tall, "x": tall["h.7.w"].T.copy(), "y": tall["h.9.w"]}, path)
    assert [finding.level for finding in check(path)] == ["waste", "tie"]
    assert sum(reads.values()) < 202 + 400


def test_zeros_that_take_no_space_arent_read(tmp_path: Path, reads: Counter[int]) -> None:
    """Of arrays that are holes in a file only the first part is read."""
    write_sparse(tmp_path / "m.safetensors", [f"h.{i}.w" for i in range(300)], [64, 64])
    assert len(check(tmp_path / "m.safetensors")) == 0
    assert sum(reads.values()) <= 304


@pytest.mark.measures
def test_the_time_for_headers(tmp_path: Path) -> None:
    """The headers of many shards take a few times as long as to parse them, and no more."""
    files = write_sparse_shards(tmp_path, 10, 600, [64, 64])

    def bare() -> None:
        rows = {}
        for file in sorted(set(files.values())):
            with open(tmp_path / file, "rb") as stream:
                text = stream.read(int.from_bytes(stream.read(8), "little"))
            rows.update({name: (file, entry["shape"]) for name, entry in json.loads(text).items()})

    def seconds(run: Run) -> float:
        start = time.process_time()
        run()
        return time.process_time() - start

    assert check(tmp_path, headers=True).figures.arrays == 6000
    rounds = [(seconds(lambda: check(tmp_path, headers=True)), seconds(bare)) for _ in range(15)]
    ours, theirs = map(min, zip(*rounds, strict=True))
    assert ours < 6 * theirs
