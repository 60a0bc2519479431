# SPDX-License-Identifier: Apache-2.0
"""Writes a safetensors file of arrays that lie in other files, piece by piece."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from pydag.files.arrays import numpy_dtype
from pydag.files.header import bits_of
from pydag.files.one_file import Content, write_contents

from .stored import Stored
from .torch_file import View

_PIECE = 1 << 20
_LARGE_PIECE = 1 << 24


def write_raw(
    path: str, arrays: Mapping[str, Stored], metadata: Mapping[str, str], bar: Any
) -> None:
    """Writes arrays under these names: see `write_contents`."""
    # The widest first, so that each begins at a multiple of its size.
    rows = sorted(arrays.items(), key=lambda row: (-(bits_of(row[1].dtype) or 0), row[0]))
    contents = {
        name: Content(array.dtype, array.shape, array.nbytes, functools.partial(_contents, array))
        for name, array in rows
    }
    write_contents(path, contents, metadata, bar)


def _contents(array: Stored) -> Iterator[bytes]:
    """The bytes of the elements, in order."""
    if array.is_plain:
        for begin in range(0, array.nbytes, _PIECE):
            yield array.read(begin, min(_PIECE, array.nbytes - begin))
        return
    # They don't lie in order. Each piece is from everywhere: the file is mapped.
    import numpy as np

    view: View = array.storage[1]  # only tensors of torch have strides
    dtype = numpy_dtype(array.dtype) if view.reading else np.dtype(f"V{view.itemsize}")
    size = view.end - view.begin
    flat = np.memmap(array.file.stream, np.uint8, "r", array.begin, (size,)).view(dtype)
    strides = [step * view.itemsize for step in view.strides]
    strided = np.lib.stride_tricks.as_strided(flat, view.shape, strides, writeable=False)
    for piece in _split(strided):
        for reading in view.reading:
            piece = np.conj(piece) if reading == "conj" else np.negative(piece)
        yield piece.tobytes()


def _split(array: Any) -> Iterator[Any]:
    """The parts of an array, in order, none of them large."""
    if array.nbytes <= _LARGE_PIECE:
        yield array
    elif array[0].nbytes > _LARGE_PIECE:
        for part in array:
            yield from _split(part)
    else:
        step = _LARGE_PIECE // array[0].nbytes
        for begin in range(0, len(array), step):
            yield array[begin : begin + step]
