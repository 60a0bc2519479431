# SPDX-License-Identifier: Apache-2.0
"""The names that a pickle of torch's may have: all others are reported."""

import enum
from collections.abc import Callable
from typing import Any

from .pickle_objects import Dict


class Call(enum.Enum):
    """What a call of one of torch's functions makes."""

    VIEW = "a tensor: (storage, offset, shape, strides, requires_grad, hooks, how it is read)"
    QUANTIZED = "the same, of numbers that stand for others"
    TYPED_VIEW = "a view with its type after the hooks"
    FIRST = "its first argument"
    SPARSE = "the parts of a tensor that isn't strided"
    SUBCLASS = "what another function of the list makes"
    NO_VALUES = "a tensor without values"


TENSORS = {
    "torch._utils._rebuild_tensor": Call.VIEW,
    "torch._utils._rebuild_tensor_v2": Call.VIEW,
    "torch._utils._rebuild_qtensor": Call.QUANTIZED,
    "torch._utils._rebuild_tensor_v3": Call.TYPED_VIEW,
    "torch._utils._rebuild_parameter": Call.FIRST,
    "torch._utils._rebuild_parameter_with_state": Call.FIRST,
    "torch._utils._rebuild_sparse_tensor": Call.SPARSE,
    "torch._utils._rebuild_meta_tensor_no_storage": Call.NO_VALUES,
    "torch._tensor._rebuild_from_type_v2": Call.SUBCLASS,
}

# The type of the elements, as safetensors calls it; None: bytes.
STORAGES: dict[str, str | None] = {
    f"torch.{name}Storage": dtype
    for name, dtype in {
        "Double": "F64",
        "Float": "F32",
        "Half": "F16",
        "BFloat16": "BF16",
        "Long": "I64",
        "Int": "I32",
        "Short": "I16",
        "Char": "I8",
        "Byte": "U8",
        "Bool": "BOOL",
        "ComplexFloat": "C64",
        "ComplexDouble": "C128",
        "QInt8": "I8",
        "QUInt8": "U8",
        "QInt32": "I32",
    }.items()
} | {"torch.storage.UntypedStorage": None, "torch.UntypedStorage": None}

DTYPES = {
    f"torch.{name}": dtype
    for name, dtype in {
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
        "bfloat16": "BF16",
        "float32": "F32",
        "float64": "F64",
        "complex64": "C64",
        "complex128": "C128",
        "float8_e4m3fn": "F8_E4M3",
        "float8_e5m2": "F8_E5M2",
        "float8_e4m3fnuz": "F8_E4M3FNUZ",
        "float8_e5m2fnuz": "F8_E5M2FNUZ",
        "float8_e8m0fnu": "F8_E8M0",
    }.items()
}


def _dict(*items: Any) -> Dict | None:
    if not items:
        return Dict()
    (pairs,) = items
    if type(pairs) is Dict:
        return Dict(pairs)
    if type(pairs) is list and all(type(pair) in (list, tuple) for pair in pairs):
        return Dict(part for key, value in pairs for part in (key, value))
    return None


def _sequence(make: type[Any]) -> Callable[..., Any]:
    def call(*items: Any) -> Any:
        if not items:
            return make()
        return make(items[0]) if type(items[0]) in (list, tuple) else None

    return call


def _bytes(*text: Any) -> bytes | None:
    """What `_codecs.encode` makes of text, which is how older protocols write bytes."""
    if not text:
        return b""
    is_latin = len(text) == 2 and type(text[0]) is str and text[1] in ("latin1", "latin-1")
    return text[0].encode("latin-1") if is_latin else None


def _complex(*parts: Any) -> complex | None:
    return complex(*parts) if all(type(part) in (float, int) for part in parts) else None


def _opaque(*_: Any) -> None:
    return None


_list, _tuple = _sequence(list), _sequence(tuple)

# Containers, and values of which the tensors don't depend. A function that gives None: what it is
# called with isn't rebuilt. None: it may be named, not called.
HARMLESS: dict[str, Callable[..., Any] | None] = {
    "collections.OrderedDict": _dict,
    "collections.Counter": _dict,
    "torch.Size": _tuple,
    "torch.device": _opaque,
    "torch.layout": _opaque,
    "torch.serialization._get_layout": _opaque,
    "torch.nn.parameter.Parameter": None,
    "torch.nn.parameter.Buffer": None,
    "torch.Tensor": None,
    "torch._tensor.Tensor": None,
    "torch.per_tensor_affine": None,
    "torch.per_channel_affine": None,
    "_codecs.encode": _bytes,
}
for _module in ("builtins", "__builtin__"):
    HARMLESS |= {
        f"{_module}.{name}": make
        for name, make in {
            "list": _list,
            "tuple": _tuple,
            "dict": _dict,
            "set": _list,
            "frozenset": _list,
            "complex": _complex,
            "bytearray": _opaque,
            "bytes": _bytes,
            "slice": _opaque,
            "range": _opaque,
        }.items()
    }
