# SPDX-License-Identifier: Apache-2.0
"""The bytes of arrays, as a safetensors file stores them: from arrays and tensors, and back.

Neither NumPy nor torch is imported before there is an array: whoever has a tensor imported torch.
"""

import contextlib
import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

from .kinds import dtype_name, have_one_signature, is_tensor_class, name_of_numpy

# The types that NumPy and the format share: NumPy's name, then the format's.
_BOTH = (
    "bool BOOL, uint8 U8, int8 I8, uint16 U16, int16 I16, uint32 U32, int32 I32, uint64 U64, "
    "int64 I64, float16 F16, float32 F32, float64 F64, complex64 C64, bfloat16 BF16, "
    "float8_e4m3fn F8_E4M3, float8_e5m2 F8_E5M2, float8_e4m3fnuz F8_E4M3FNUZ, "
    "float8_e5m2fnuz F8_E5M2FNUZ, float8_e8m0fnu F8_E8M0"
)
DTYPES = {name: short for name, _, short in (pair.partition(" ") for pair in _BOTH.split(", "))}
NUMPY_NAMES = {short: name for name, short in DTYPES.items()}


@functools.cache
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


@functools.cache
def stored_as_they_are() -> tuple[Any, dict[Any, str]]:
    """NumPy's arrays, and its types whose bytes are those of the format, with their name there."""
    import numpy as np

    odd = ("bfloat", "float8", "bool")  # any byte but 0 is True to NumPy
    plain = {name: short for name, short in DTYPES.items() if not name.startswith(odd)}
    return np.ndarray, {np.dtype(name).newbyteorder("<"): plain[name] for name in plain}


host_copies: dict[type, Callable[[Any], Any]] = {}
"""How arrays of a class are copied to the host, where `numpy.asarray` would leave a copy there."""


def storable(leaf: Any) -> tuple[str, tuple[int, ...]]:
    """The type that an array has in the format, and its shape.

    Raises:
        TypeError: It can't be stored.
    """
    import numpy as np

    is_plain = type(leaf) is np.ndarray
    if is_plain and (short := DTYPES.get(name_of_numpy(leaf.dtype))) is not None:
        return short, leaf.shape
    is_tensor = is_tensor_class(type(leaf))
    if isinstance(leaf, np.ma.MaskedArray):
        raise TypeError("a masked array would lose its mask")
    if is_tensor:  # pragma: no cover: PyTorch, as by `make test-torch`
        check_plain(leaf)
    elif not is_plain and not hasattr(type(leaf), "__array__"):
        raise TypeError(f"an object of {type(leaf)!r} only describes an array")
    short = DTYPES.get(dtype_name(leaf.dtype))
    if short is None:
        what = "tensors" if is_tensor else "arrays"
        raise TypeError(f"a safetensors file can't store {what} of type {leaf.dtype}")
    return short, tuple(map(operator.index, leaf.shape))


def to_numpy(leaf: Any) -> Any:
    """An array that is `storable` as NumPy's: contiguous, little-endian."""
    import numpy as np

    array, (plain, dtypes) = leaf, stored_as_they_are()
    if type(leaf) is not plain:
        if is_tensor_class(type(leaf)):  # pragma: no cover: PyTorch, as by `make test-torch`
            return tensor_to_numpy(leaf, numpy_dtype(DTYPES[dtype_name(leaf.dtype)]))
        array = host_copies.get(type(leaf), np.asarray)(leaf)
    if array.dtype in dtypes and array.flags.c_contiguous:
        return array
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.require(array, requirements=["C"])


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


def check_plain(tensor: Any) -> None:  # pragma: no cover: PyTorch, as by `make test-torch`
    """Checks that a tensor has its numbers in one memory.

    Raises:
        TypeError: It is on `meta`, sparse, quantized, or of a class that keeps them elsewhere.
    """
    torch: Any = sys.modules["torch"]
    if tensor.is_meta:
        raise TypeError(
            "a tensor on the meta device has no numbers\n"
            "  Give it some first: module.to_empty(device=...), or "
            "load_state_dict(..., assign=True)."
        )
    if tensor.is_nested:
        raise TypeError("a nested tensor: save its parts, tensor.unbind()")
    if hasattr(tensor, "full_tensor"):
        raise TypeError("a distributed tensor: save tensor.full_tensor()")
    if tensor.layout != torch.strided:
        raise TypeError(f"a tensor of layout {tensor.layout}: save tensor.to_dense()")
    if tensor.is_quantized:
        raise TypeError("a quantized tensor: save tensor.dequantize(), or its parts")
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise TypeError(
            f"a tensor of the class {type(tensor).__qualname__}, which keeps its numbers elsewhere"
        )


def tensor_to_numpy(tensor: Any, numpy_type: Any) -> Any:  # pragma: no cover: PyTorch, as above
    """The numbers of a tensor that is plain, as an array of NumPy's: contiguous, of this type."""
    import numpy as np

    torch: Any = sys.modules["torch"]
    dtype = np.dtype(numpy_type)
    if dtype.isbuiltin == 1:
        return np.require(tensor.numpy(force=True), requirements=["C"])
    # NumPy doesn't know the type: as bytes.
    plain = tensor.detach().cpu().contiguous()
    flat = plain.reshape(-1).view(torch.uint8).numpy().view(dtype)
    return flat.reshape(tuple(tensor.shape))


def as_tensor(array: Any) -> Any:  # pragma: no cover: PyTorch, as above
    """An array as a tensor over its memory where PyTorch takes that, else a copy."""
    import numpy as np

    torch: Any = sys.modules["torch"]
    if isinstance(array, torch.Tensor):
        return array.detach()
    array = np.asarray(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.writeable or min(array.strides, default=0) < 0:
        array = array.copy()
    if array.dtype.isbuiltin == 1 or (dtype := getattr(torch, array.dtype.name, None)) is None:
        return torch.from_numpy(array)
    # NumPy has bfloat16 and the like from another package. `reshape` keeps arrays without axes.
    raw = torch.from_numpy(np.ascontiguousarray(array).view(f"u{array.itemsize}"))
    return raw.view(dtype).reshape(array.shape)


def tensor_like(array: Any, like: Any) -> Any:  # pragma: no cover: PyTorch, as above
    """A new tensor with the numbers of an array from a file, and of the kind of `like`.

    It is a parameter if `like` is one, and on the device of `like`: not on `meta`, where there are
    no numbers, and not where `like` is of a class that keeps its numbers elsewhere.
    """
    torch: Any = sys.modules["torch"]
    is_plain = type(like).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    tensor = as_tensor(array)  # a copy: a file is mapped to be read
    if is_plain and not like.is_meta:
        tensor = tensor.to(like.device)
    if isinstance(like, torch.nn.Parameter):
        return torch.nn.Parameter(tensor, requires_grad=like.requires_grad)
    return tensor.requires_grad_(like.requires_grad)
