# SPDX-License-Identifier: Apache-2.0
"""Writes a safetensors file of arrays that lie in other files, piece by piece."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from pydag.files.arrays import numpy_dtype
from pydag.files.one_file import Content, write_contents

from .stored import Stored, bits_of
from .torch_file import View

_PIECE = 1 << 20


def write_raw(
    path: str, arrays: Mapping[str, Stored], metadata: Mapping[str, str], bar: Any
) -> None:
    """Writes a file.

    Args:
        path: Where; it is replaced.
        arrays: By the names that they get.
        metadata: Goes into the header.
        bar: Is told how many bytes were written.

    Raises:
        ValueError: The header would be too large.
    """
    # The widest first, so that each begins at a multiple of its size.
    names = sorted(arrays, key=lambda name: (-(bits_of(arrays[name].dtype) or 0), name))
    contents = {
        name: Content(array.dtype, array.shape, array.nbytes, functools.partial(_contents, array))
        for name, array in ((name, arrays[name]) for name in names)
    }
    write_contents(path, contents, metadata, bar)


def _contents(array: Stored) -> Iterator[bytes]:
    """The bytes of the elements, in order."""
    if array.is_plain:
        for begin in range(0, array.nbytes, _PIECE):
            yield array.read(begin, min(_PIECE, array.nbytes - begin))
    else:
        yield _gathered(array)


def _gathered(array: Stored) -> bytes:
    import numpy as np

    assert isinstance(array.storage, tuple)  # for torch's tensors alone have strides
    view: View = array.storage[1]
    whole = array.file.read(array.begin, view.end - view.begin)
    dtype = numpy_dtype(array.dtype) if view.reading else np.dtype(f"V{view.itemsize}")
    flat = np.frombuffer(whole, dtype)
    strides = [step * view.itemsize for step in view.strides]
    strided = np.lib.stride_tricks.as_strided(flat, view.shape, strides, writeable=False)
    for reading in view.reading:
        strided = np.conj(strided) if reading == "conj" else np.negative(strided)
    return strided.tobytes()
