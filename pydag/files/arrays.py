# SPDX-License-Identifier: Apache-2.0
"""Converts arrays to what a safetensors file stores, and back. NumPy is imported lazily."""

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .tensors import check_plain, is_class_of, is_tensor_class, tensor_to_numpy

# The types that NumPy and the format share: NumPy's name, then the format's.
DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}
NUMPY_NAMES = {short: name for name, short in DTYPES.items()}


def numpy_dtype(short: str) -> Any:
    """NumPy's type for a type of the format.

    Raises:
        ValueError: NumPy has none.
        ImportError: ml_dtypes has it, and isn't installed.
    """
    import numpy as np

    name = NUMPY_NAMES.get(short)
    if name is None:
        raise ValueError(f"NumPy has no type for {short}")
    with contextlib.suppress(TypeError):
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f'{short} needs ml_dtypes: pip install "pydag-tree[files]"') from error
    return np.dtype(getattr(ml_dtypes, name))


def is_array(leaf: object) -> bool:
    """Whether a leaf is an array, or describes one by shape and dtype."""
    return is_array_class(type(leaf))


def is_array_class(cls: type) -> bool:
    """Whether the instances of a class are arrays, or describe them."""
    if is_class_of(cls, "numpy", "bool_") or issubclass(cls, type):
        return False  # a boolean of NumPy is a value, like Python's own
    return hasattr(cls, "shape") and hasattr(cls, "dtype")


def of_class(leaves: Sequence[object], test: Callable[[type], bool]) -> list[bool]:
    """The result of `test` for the class of each leaf; called once for each class."""
    answers = {cls: test(cls) for cls in set(map(type, leaves))}
    return [answers[type(leaf)] for leaf in leaves]


def is_scalar_class(cls: type) -> bool:
    """Whether the arrays of a class are NumPy's numbers."""
    return is_class_of(cls, "numpy", "generic")


@functools.lru_cache(256)
def _name_of_numpy(dtype: Any) -> str:
    return str(dtype.name)  # computed by NumPy each time


def dtype_name(dtype: Any) -> str:
    """The name of a type of numbers, NumPy's or another one."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(dtype, numpy.dtype):
        return _name_of_numpy(dtype)
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")


@functools.cache
def _stored_as_they_are() -> tuple[Any, type, frozenset[Any], type]:
    """NumPy, its arrays, its types in the byte order of the format, and its masked arrays."""
    import numpy as np

    plain = (name for name in DTYPES if not name.startswith(("bfloat", "float8")))
    dtypes = frozenset(np.dtype(name).newbyteorder("<") for name in plain)
    return np, np.ndarray, dtypes, np.ma.MaskedArray


host_copies: dict[type, Callable[[Any], Any]] = {}
"""How arrays of a class are copied to the host, where `numpy.asarray` would leave a copy there."""


def storable(leaf: Any) -> tuple[str, tuple[int, ...]]:
    """The type that an array has in the format, and its shape.

    Raises:
        TypeError: It can't be stored.
    """
    _, plain, _, masked = _stored_as_they_are()
    is_plain = type(leaf) is plain
    if is_plain and (short := DTYPES.get(_name_of_numpy(leaf.dtype))) is not None:
        return short, leaf.shape
    is_tensor = is_tensor_class(type(leaf))
    if isinstance(leaf, masked):
        raise TypeError("a masked array would lose its mask")
    if is_tensor:
        check_plain(leaf)
    elif not is_plain and not hasattr(type(leaf), "__array__"):
        raise TypeError(f"an object of {type(leaf)!r} only describes an array")
    short = DTYPES.get(dtype_name(leaf.dtype))
    if short is None:
        what = "tensors" if is_tensor else "arrays"
        raise TypeError(f"a safetensors file can't store {what} of type {leaf.dtype}")
    return short, tuple(leaf.shape)


def to_numpy(leaf: Any) -> Any:
    """An array that is `storable` as NumPy's: contiguous, little-endian."""
    np, plain, dtypes, _ = _stored_as_they_are()
    array = leaf
    if type(leaf) is not plain:
        if is_tensor_class(type(leaf)):
            return tensor_to_numpy(leaf, numpy_dtype(DTYPES[dtype_name(leaf.dtype)]))
        array = host_copies.get(type(leaf), np.asarray)(leaf)
    if array.dtype in dtypes and array.flags.c_contiguous:
        return array
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.require(array, requirements=["C"])


def signature(leaf: Any) -> tuple[str, tuple[int, ...]]:
    """Type and shape, which must agree before one array may replace another."""
    return dtype_name(leaf.dtype), tuple(leaf.shape)


def have_one_signature(a: Any, b: Any) -> bool:
    """Whether two arrays, or objects that describe arrays, agree in type and shape."""
    if a.dtype is b.dtype:  # most often, and quicker than two names
        return tuple(a.shape) == tuple(b.shape)
    return signature(a) == signature(b)


def signature_text(leaf: Any) -> str:
    """Type and shape as an error message shows them."""
    dtype, shape = signature(leaf)
    return f"{dtype}[{','.join(map(str, shape))}]"


def same_bytes(a: Any, b: Any) -> bool:
    """Whether two arrays agree in type, shape and bytes; read piece by piece."""
    if a is b:
        return True
    if not have_one_signature(a, b):
        return False
    import numpy as np

    flat = [np.require(x, requirements=["C"]).reshape(-1).view(np.uint8) for x in (a, b)]
    piece = 1 << 24
    return all(
        bool((flat[0][i : i + piece] == flat[1][i : i + piece]).all())
        for i in range(0, math.prod(flat[0].shape), piece)
    )
