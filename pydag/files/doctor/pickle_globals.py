# SPDX-License-Identifier: Apache-2.0
"""The names that a pickle of torch's may have: all others are reported."""

import enum
from collections.abc import Callable
from typing import Any


class Global:
    """A name on the lists below."""

    def __init__(self, name: str) -> None:
        self.name = name


class Foreign:
    """A name on none of the lists, or what it would have made."""

    def __init__(self, name: str) -> None:
        self.name = name


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


def _nothing(*_: object) -> None:
    return None


def _ordered(*items: Any) -> dict[Any, Any]:
    return dict(*items) if items and type(items[0]) in (list, dict) else {}


def _list_of(*items: Any) -> list[Any]:
    return list(items[0]) if items and type(items[0]) in (list, tuple, set, frozenset) else []


# Containers and other values of which the tensors don't depend. None: it may be named, not called.
HARMLESS: dict[str, Callable[..., Any] | None] = {
    "collections.OrderedDict": _ordered,
    "collections.Counter": _ordered,
    "torch.Size": lambda *items: tuple(_list_of(*items)),
    "torch.device": _nothing,
    "torch.layout": _nothing,
    "torch.serialization._get_layout": _nothing,
    "torch.nn.parameter.Parameter": None,
    "torch.nn.parameter.Buffer": None,
    "torch.Tensor": None,
    "torch._tensor.Tensor": None,
    "torch.per_tensor_affine": None,
    "torch.per_channel_affine": None,
    "_codecs.encode": _nothing,  # how bytes are written
}
for _module in ("builtins", "__builtin__"):
    HARMLESS |= {
        f"{_module}.{name}": make
        for name, make in {
            "list": _list_of,
            "tuple": lambda *items: tuple(_list_of(*items)),
            "dict": _ordered,
            "set": _list_of,
            "frozenset": _list_of,
            "complex": _nothing,
            "bytearray": _nothing,
            "bytes": _nothing,
            "slice": _nothing,
            "range": _nothing,
        }.items()
    }
