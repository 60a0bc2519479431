# SPDX-License-Identifier: Apache-2.0
"""Writes arrays that have names to one safetensors file."""

import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pydag._core as _core

from .arrays import dtype_name
from .header import LARGEST
from .package import package


def check_size(metadata: Mapping[str, str], names: Iterable[str]) -> None:
    """Raises ValueError where a header would be too large."""
    import json

    size = sum(len(name) + 120 for name in names)
    most = 12 * sum(map(len, itertools.chain(*metadata.items())))  # a character may need as many
    if size + most > LARGEST:
        size += len(json.dumps(metadata))
    if size > LARGEST:
        raise ValueError(
            f"the names and the structure need some {size} bytes; the header of a safetensors "
            f"file has room for {LARGEST}"
        )


def write_file(
    temporary: str,
    arrays: Mapping[str, Any],
    metadata: Mapping[str, str],
    path: str | os.PathLike[str],
) -> None:
    """Writes a file, and reads its header back.

    Args:
        temporary: Where.
        arrays: Contiguous arrays of NumPy by name.
        metadata: Goes into the header.
        path: Where it will be, for messages.
    """
    safetensors = package()
    entries = _entries(safetensors.TensorSpec, arrays)
    try:
        safetensors.serialize_file(entries, temporary, metadata=dict(metadata) or None)
        with safetensors.safe_open(temporary, framework="np"):
            pass  # reading it back proves that it is whole
    except safetensors.SafetensorError as error:
        raise _system_error(error, path) from error


def _entries(make: Callable[..., Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """What safetensors gets for each array, which must live until it is written."""
    dtypes: dict[Any, str] = {}
    entries = {}
    for name, array in arrays.items():
        dtype = array.dtype
        if dtype not in dtypes:
            dtypes[dtype] = dtype_name(dtype)
        entries[name] = make(
            dtype=dtypes[dtype],
            shape=array.shape,
            data_ptr=_core.buffer_address(array),
            data_len=array.nbytes,
        )
    return entries


def _system_error(error: Exception, path: str | os.PathLike[str]) -> Exception:
    """An OSError if the system refused; else a ValueError."""
    number = re.search(r"os error (\d+)", str(error))
    if number is None:
        return ValueError(f"{os.fspath(path)!r} can't be written: {error}")
    return OSError(int(number[1]), os.strerror(int(number[1])), os.fspath(path))
