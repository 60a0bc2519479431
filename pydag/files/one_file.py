# SPDX-License-Identifier: Apache-2.0
"""Writes arrays that have names to one safetensors file."""

import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, NamedTuple

from .header import ITEM_SIZES, LARGEST
from .package import package


def check_size(metadata: Mapping[str, str], names: Iterable[str]) -> None:
    """Raises ValueError where a header would be too large."""
    size = sum(len(name) + 120 for name in names)
    most = 12 * sum(map(len, itertools.chain(*metadata.items())))  # a character may need as many
    if size + most > LARGEST:
        size += len(json.dumps(metadata))
    if size > LARGEST:
        raise ValueError(
            f"the names and the structure need some {size} bytes; the header of a safetensors "
            f"file has room for {LARGEST}"
        )


class Content(NamedTuple):
    """An array that is to be written."""

    dtype: str  # as the format calls it
    shape: tuple[int, ...]
    nbytes: int
    pieces: Callable[[], Iterable[Any]]  # makes its bytes, in order, when it is written


def write_contents(
    path: str, contents: Mapping[str, Content], metadata: Mapping[str, str], bar: Any
) -> None:
    """Writes arrays to a file in this order, and waits until it is on the disk.

    A bar counts the bytes that were written.

    Raises:
        ValueError: The header would be too large.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, (dtype, shape, nbytes, _) in contents.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": (end, end + nbytes)}
        end += nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST:
        raise ValueError(f"the header needs {len(text)} bytes, and may have {LARGEST}")
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for content in contents.values():
            _write(file, content, bar)
        file.flush()
        os.fsync(file.fileno())


def _write(file: IO[bytes], content: Content, bar: Any) -> None:
    for piece in content.pieces():
        file.write(piece)
        if bar is not None:
            bar.update(len(piece))


def write_file(
    temporary: str,
    arrays: Mapping[str, Content],
    metadata: Mapping[str, str],
    path: str | os.PathLike[str],
    bar: Any,
) -> None:
    """Writes a file of arrays that NumPy has, and reads its header back.

    The arrays lie as the safetensors package would put them: those with the longest numbers first,
    so that each begins at a multiple of its number's size. Messages name the final `path`.
    """
    safetensors = package()

    def place(item: tuple[str, Content]) -> tuple[int, str, str]:
        return -ITEM_SIZES[item[1].dtype], item[1].dtype, item[0]

    try:
        write_contents(temporary, dict(sorted(arrays.items(), key=place)), metadata, bar)
        with safetensors.safe_open(temporary, framework="np"):
            pass  # reading it back proves that it is whole
    except safetensors.SafetensorError as error:
        raise ValueError(f"{os.fspath(path)!r} can't be written: {error}") from error
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error
