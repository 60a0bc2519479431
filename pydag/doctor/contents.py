# SPDX-License-Identifier: Apache-2.0
"""The bytes of an array in the order of its elements, however they lie in the file."""

from collections.abc import Iterator
from typing import Any

from pydag.files.arrays import numpy_dtype

from .stored import Stored
from .torch_file import View

_PIECE = 1 << 20


def contents(array: Stored) -> Iterator[bytes]:
    """The bytes of the elements, in order."""
    if array.is_plain:
        for begin in range(0, array.nbytes, _PIECE):
            yield array.read(begin, min(_PIECE, array.nbytes - begin))
        return
    # They don't lie in order. Each piece is from everywhere: the file is mapped.
    import numpy as np

    assert isinstance(array.storage, tuple)  # only tensors of torch have strides
    view: View = array.storage[1]
    dtype = numpy_dtype(array.dtype) if view.reading else np.dtype(f"V{view.itemsize}")
    size = view.end - view.begin
    flat = array.file.mapped(array.begin, size).view(dtype)
    strides = [step * view.itemsize for step in view.strides]
    strided = np.lib.stride_tricks.as_strided(flat, view.shape, strides, writeable=False)
    flags: Any = ["external_loop", "buffered", "zerosize_ok"]
    parts: Any = np.nditer(strided, flags, order="C", buffersize=_PIECE)
    for part in parts:
        for reading in view.reading:
            part = np.conj(part) if reading == "conj" else np.negative(part)
        yield part.tobytes()
