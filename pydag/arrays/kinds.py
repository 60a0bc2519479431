# SPDX-License-Identifier: Apache-2.0
"""Which objects are arrays, and their type and shape, in values and in words.

Nothing here imports NumPy, torch or JAX: whoever has an array has imported its library, which is
found among the loaded modules.
"""

import functools
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any


def is_class_of(cls: type, module: str, name: str) -> bool:
    """Whether a class is one of a library's, or derived from it: then the library is imported."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and issubclass(cls, found)


def is_tensor_class(cls: type) -> bool:
    """Whether the instances of a class are tensors."""
    return is_class_of(cls, "torch", "Tensor")


def is_array(leaf: object) -> bool:
    """Whether a leaf is an array, or describes one by shape and dtype."""
    return is_array_class(type(leaf))


def looks_like_array(leaf: object) -> bool:
    """The same, also of booleans of NumPy and where only the instance has a shape and a dtype."""
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype") and not isinstance(leaf, type)


def is_array_class(cls: type) -> bool:
    """Whether the instances of a class are arrays, or describe them."""
    if is_class_of(cls, "numpy", "bool_") or issubclass(cls, type):
        return False  # a boolean of NumPy is a value, like Python's own
    return hasattr(cls, "shape") and hasattr(cls, "dtype")


def of_class(leaves: Sequence[object], test: Callable[[type], bool]) -> list[bool]:
    """The result of `test` for the class of each leaf; called once for each class."""
    answers = {cls: test(cls) for cls in set(map(type, leaves))}
    if len(answers) == 1:
        return list(answers.values()) * len(leaves)
    return list(map(answers.__getitem__, map(type, leaves)))


def is_scalar_class(cls: type) -> bool:
    """Whether the arrays of a class are NumPy's numbers."""
    return is_class_of(cls, "numpy", "generic")


@functools.lru_cache(256)
def name_of_numpy(dtype: Any) -> str:
    """The name of a type of NumPy's."""
    return str(dtype.name)  # computed by NumPy each time


@functools.lru_cache(256)
def _name_of_torch(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def dtype_name(dtype: Any) -> str:
    """The name of a type of numbers, NumPy's or another one."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(dtype, numpy.dtype):
        return name_of_numpy(dtype)
    if is_class_of(type(dtype), "torch", "dtype"):  # pragma: no cover: PyTorch, as above
        return _name_of_torch(dtype)
    return str(getattr(dtype, "name", dtype))


def signature(leaf: Any) -> tuple[str, tuple[int, ...]]:
    """Type and shape, which must agree before one array may replace another."""
    return dtype_name(leaf.dtype), tuple(leaf.shape)


def have_one_signature(a: Any, b: Any) -> bool:
    """Whether two arrays, or objects that describe arrays, agree in type and shape."""
    if a.dtype is b.dtype:  # most often, and quicker than two names
        return tuple(a.shape) == tuple(b.shape)
    return signature(a) == signature(b)


def array_text(dtype: str, shape: Sequence[int]) -> str:
    """Type and shape as messages and views show them."""
    return f"{dtype}[{','.join(map(str, shape))}]"


def signature_text(leaf: Any) -> str:
    """The signature of an array as an error message shows it."""
    return array_text(*signature(leaf))


# In these modules only arrays have a long `repr`.
LIBRARIES = ("numpy", "jax", "jaxlib", "ml_dtypes")


def module_of(cls: type) -> str:
    """The name of the class's module, even if the class overrides it."""
    name = getattr(cls, "__module__", None)
    return name if isinstance(name, str) else "?"


_KINDS = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c"}


def short_dtype(dtype: Any) -> str:
    """A type of numbers in JAX's short form: `f32`, `bf16`, `i8`, `f8_e4m3fn`."""
    name = dtype_name(dtype)
    kind = re.sub(r"\d.*", "", name, flags=re.DOTALL)
    return _KINDS.get(kind, kind) + name[len(kind) :] if kind != name else name


def outline(array: Any) -> str | None:
    """An array by its dtype and shape, such as `f32[128,64]`; None for other objects.

    Only objects of NumPy's and JAX's classes are inspected: others may return any shape.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or isinstance(array, numpy.generic):
        return None
    shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
    if not isinstance(shape, tuple) or dtype is None:
        return None
    return array_text(short_dtype(dtype), shape)


def array_outline(x: Any) -> str | None:
    """Like `outline`, for any object: None unless its class is NumPy's or JAX's."""
    return outline(x) if module_of(type(x)).partition(".")[0] in LIBRARIES else None
