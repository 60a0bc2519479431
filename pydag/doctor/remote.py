# SPDX-License-Identifier: Apache-2.0
"""Files and folders elsewhere, by fsspec. Only the parts that are needed are fetched."""

import bisect
import contextlib
import errno
import itertools
import operator
import threading
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from .finding import listed
from .paths import ENDINGS, INDEX_ENDINGS, STEMS
from .progress import Bar
from .raw import RawFile

_AT_ONCE = 16  # requests
_FIRST = 1 << 16  # bytes that are fetched with the first ones, at most
_SMALL, _LAST = 1 << 12, 1 << 17  # bytes of a part that is kept in memory, and of the last part
_GAP, _MOST = 1 << 15, 1 << 22  # bytes between two parts that are fetched as one, and of all
_WEB = ("http://", "https://")
# A web server doesn't say what is in a folder: it is asked for these.
_USUAL = (
    *("config.json", "adapter_config.json"),
    *(stem + ending for stem in STEMS for ending in (*ENDINGS[:2], *INDEX_ENDINGS)),
)

T = TypeVar("T")
_begin = operator.itemgetter(0)


@contextlib.contextmanager
def _readable(path: str) -> Iterator[None]:
    """Makes one kind of error of all that the many systems raise."""
    try:
        yield
    except ImportError as error:
        why = " ".join(str(error).split())
        raise ImportError(f"{path!r}: {why}\n  pip install 'pydag-tree[remote]'.") from error
    except Exception as error:  # of the network, of a package for it, of what a server says
        cause = error.__cause__ if isinstance(error, FileNotFoundError) else error
        if cause is None or getattr(cause, "status", None) == 404:
            why = "there is no such file or folder"
            raise FileNotFoundError(errno.ENOENT, why, path) from error
        why = " ".join(f"{type(cause).__name__}: {cause}".split())
        raise OSError(errno.EIO, f"it can't be read: {why[:300]}", path) from error


def _system(path: str) -> tuple[Any, str]:
    """The file system of an address, and the path there."""
    with _readable(path):
        import fsspec

        system, inner = fsspec.core.url_to_fs(path)
        return system, inner


def pinned(path: str) -> tuple[str, str | None]:
    """The address with the commit of its repository on a hub, and that commit."""
    system, inner = _system(path)
    with _readable(path):
        found = system.resolve_path(inner)
        if not hasattr(found, "repo_id"):  # pragma: no cover: a bucket, which has no commits
            return path, None
        from huggingface_hub import HfApi

        api = HfApi(endpoint=system.endpoint, token=system.token)
        info = api.repo_info(found.repo_id, repo_type=found.repo_type, revision=found.revision)
        repository = f"{found.repo_type}s/{found.repo_id}".removeprefix("models/")
        return f"hf://{repository}@{info.sha}/{found.path_in_repo}".rstrip("/"), info.sha


def is_folder(path: str) -> bool:
    """Whether an address is that of a folder."""
    system, inner = _system(path)
    if path.startswith(_WEB):  # fsspec would fetch a whole file, and look for links in it
        return not urllib.parse.urlsplit(path).path.endswith((".json", *ENDINGS))
    with _readable(path):
        return bool(system.isdir(inner))


def names_in(folder: str) -> list[str]:
    """The names of what is in a folder; of one on a web server the usual ones that are there."""
    system, inner = _system(folder)
    with _readable(folder):
        if not folder.startswith(_WEB):
            paths = (path.rstrip("/") for path in system.ls(inner, detail=False))
            return [path.rpartition("/")[2] for path in paths]
        there = at_once(lambda name: _is_there(system, f"{inner.rstrip('/')}/{name}"), _USUAL)
    if any(there):
        return list(itertools.compress(_USUAL, there))
    why = f"a web server doesn't say which files it has, and there is none of {listed(_USUAL)}"
    raise FileNotFoundError(errno.ENOENT, f"{why}: give the address of a file", folder)


def _is_there(system: Any, address: str) -> bool:
    """Whether a web server has a file. fsspec's `exists` would begin to fetch it."""
    with contextlib.suppress(FileNotFoundError):
        return bool(system.info(address))
    return False


def at_once(function: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
    """The results of a function, which is called for several items at once."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, items))


class RemoteFile(RawFile):
    """A file at an address: see `RawFile`."""

    is_far = True

    def __init__(self, path: str) -> None:
        from fsspec.spec import AbstractBufferedFile

        self.path = path
        system, inner = _system(path)
        with _readable(path):
            self._stream = system.open(inner, "rb", cache_type="none")
            self._can_fetch = isinstance(self._stream, AbstractBufferedFile)
            size = self._stream.size if self._can_fetch else system.size(inner)
            if size is None:
                raise ValueError("its server doesn't say how long it is, or gives no parts of it")
        self.size = size
        self._first = min(size, max(1 << 10, min(_FIRST, size >> 8)))
        self._lock = threading.Lock()
        self._kept: list[tuple[int, bytes]] = []  # parts by their places, in order

    def read(self, begin: int, size: int) -> bytes:
        """The bytes from `begin` on."""
        at = bisect.bisect(self._kept, begin, key=_begin)
        place, part = self._kept[at - 1] if at else (0, b"")
        if begin + size <= place + len(part):
            return part[begin - place : begin - place + size]
        found = self._fetched(begin, size if begin else max(size, self._first))
        if not begin or size <= (_LAST if begin + size == self.size else _SMALL):
            self.keep(begin, found)
        return found[:size]

    def keep(self, begin: int, part: bytes) -> None:
        """Keeps a part that is read again."""
        with self._lock:
            bisect.insort(self._kept, (begin, part), key=_begin)

    def _fetched(self, begin: int, size: int) -> bytes:
        with _readable(self.path):
            if self._can_fetch:
                found = self._stream._fetch_range(begin, begin + size) if size else b""
            else:
                with self._lock:  # it has one position for all threads
                    self._stream.seek(begin)
                    found = self._stream.read(size)
            if len(found) != size:
                raise ValueError(f"{len(found)} bytes came instead of {size}")
        if Bar.shown is not None:
            Bar.shown.update(0, size)
        return bytes(found)

    def mapped(self, begin: int, size: int) -> Any:
        """These bytes as an array of NumPy, all of them fetched."""
        import numpy as np

        return np.frombuffer(self.read(begin, size), np.uint8)


def fetch(places: Iterable[tuple[Any, int, int]]) -> None:
    """Fetches parts of files, several at once, and those that are near each other together."""
    runs: list[list[tuple[Any, int, int]]] = []
    last, start, end = None, 0, 0
    for file, begin, size in sorted(places, key=lambda place: (id(place[0]), place[1])):
        if file is not last or begin > end + _GAP or begin + size > start + _MOST:
            runs.append([])
            last, start, end = file, begin, begin
        runs[-1].append((file, begin, size))
        end = max(end, begin + size)
    at_once(_fetch, runs)


def _fetch(run: list[tuple[RemoteFile, int, int]]) -> None:
    file, start, _ = run[0]
    whole = file.read(start, max(begin + size for _, begin, size in run) - start)
    for _, begin, size in run:
        file.keep(begin, whole[begin - start : begin - start + size])
