# SPDX-License-Identifier: Apache-2.0
"""Writes a safetensors file of arrays that lie in other files, piece by piece."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from pydag.files.arrays import numpy_dtype
from pydag.files.header import LARGEST

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
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in names:
        array = arrays[name]
        offsets = [end, end + array.nbytes]
        header[name] = {"dtype": array.dtype, "shape": array.shape, "data_offsets": offsets}
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST:
        raise ValueError(f"the header needs {len(text)} bytes, and may have {LARGEST}")
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            for piece in _contents(arrays[name]):
                file.write(piece)
                bar.update(len(piece))
        file.flush()
        os.fsync(file.fileno())


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
