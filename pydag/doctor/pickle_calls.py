# SPDX-License-Identifier: Apache-2.0
"""The names that a pickle of torch's may have, and the results of calls: nothing else is called.

A call of any other function, and one that isn't understood, makes an `Opaque`.
"""

from collections.abc import Callable
from typing import Any

from pydag.files.arrays import DTYPES as _SHARED

from .pickle_code import PickleError
from .pickle_objects import Dict, Global, NoValues, Opaque, Sparse, Storage, Tensor

_MOST_AXES = 1000
_MOST_FOREIGN = 1000

DTYPES = {f"torch.{name}": short for name, short in _SHARED.items()} | {"torch.complex128": "C128"}
# The type of the elements, as safetensors calls it; None: bytes.
STORAGES: dict[str, str | None] = {
    f"torch.{name}Storage": DTYPES[f"torch.{dtype}"]
    for name, dtype in {
        "Double": "float64",
        "Float": "float32",
        "Half": "float16",
        "BFloat16": "bfloat16",
        "Long": "int64",
        "Int": "int32",
        "Short": "int16",
        "Char": "int8",
        "Byte": "uint8",
        "Bool": "bool",
        "ComplexFloat": "complex64",
        "ComplexDouble": "complex128",
        "QInt8": "int8",
        "QUInt8": "uint8",
        "QInt32": "int32",
    }.items()
} | {"torch.storage.UntypedStorage": None, "torch.UntypedStorage": None}
# Functions that make arrays of NumPy, whose numbers are in the pickle.
ARRAYS = frozenset(
    f"numpy.{core}.{name}"
    for core in ("core", "_core")
    for name in ("multiarray._reconstruct", "numeric._frombuffer")
)


class Calls:
    """Makes the results of calls.

    Attributes:
        foreign: The names that are on no list, each with itself.
        beside: Objects that containers and tensors got besides their items: attributes, hooks.
    """

    def __init__(self) -> None:
        self.foreign: dict[str, str] = {}
        self.beside: list[Opaque] = []

    def made(self, function: Any, arguments: Any) -> Any:
        """The result of a call."""
        if type(function) is not Global:
            return Opaque(name_of(function), function, arguments)
        found = self._made(function.name, arguments) if type(arguments) is tuple else None
        return Opaque(function.name, arguments) if found is None else found

    def note(self, name: str) -> str:
        """Notes a name that is on no list."""
        if name not in self.foreign and len(self.foreign) >= _MOST_FOREIGN:
            raise PickleError(f"the pickle names more than {_MOST_FOREIGN} classes and functions")
        return self.foreign.setdefault(name, name)

    def keep(self, owner: str, *values: Any) -> None:
        """Keeps what a container or a tensor got besides its items."""
        if any(
            type(value) in (Tensor, Storage, Opaque, NoValues) or is_filled(value)
            for value in values
        ):
            self.beside.append(Opaque(owner, *values))

    def _made(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """The result of a call by the name of the function; None: it isn't understood."""
        if name in _TENSORS:
            return _TENSORS[name](self, name, *arguments)
        make = _HARMLESS.get(name)
        if make is None:
            self.note(name)
            return None
        return make(*arguments)

    def _view(self, name: str, storage: Any, *arguments: Any) -> Any:
        """A tensor: offset, shape, strides, requires_grad, hooks, and how it is read."""
        return self._tensor(name, storage, None, arguments, arguments[5:6])

    def _typed_view(self, name: str, storage: Any, *arguments: Any) -> Any:
        """A tensor with its type after the hooks."""
        dtype = DTYPES.get(name_of(arguments[5]), "") if type(storage) is Storage else ""
        return self._tensor(name, storage, dtype, arguments, arguments[6:7])

    def _quantized(self, name: str, storage: Any, *arguments: Any) -> Any:
        """A tensor of numbers that stand for others."""
        found = self._tensor(name, storage, None, arguments[:3], ())
        return found._replace(reading=("quantized",)) if type(found) is Tensor else found

    def _tensor(
        self, name: str, storage: Any, dtype: str | None, arguments: Any, metadata: Any
    ) -> Any:
        if type(storage) is not Storage:
            return Opaque(name_of(storage), storage, *arguments)
        offset, shape, strides = arguments[:3]
        dtype = storage.dtype if dtype is None else dtype
        self.keep(name, *arguments[4:5])
        if len(shape) > _MOST_AXES:
            raise PickleError(f"malformed pickle: a tensor of more than {_MOST_AXES} axes")
        sizes = (offset, *shape, *strides)
        if not dtype or len(shape) != len(strides) or not all(map(is_size, sizes)):
            raise PickleError("malformed pickle: a tensor without a type, a shape or strides")
        reading = _reading(*metadata)
        return Tensor(storage, dtype, offset, tuple(shape), tuple(strides), reading)

    def _parameter(self, name: str, data: Any, *more: Any) -> Any:
        """A parameter is its data."""
        self.keep(name, *more)
        return data

    def _subclass(self, name: str, function: Any, cls: Any, arguments: Any, state: Any) -> Any:
        """The result of another function, as an instance of a class."""
        if type(function) is Global and type(cls) is Global and type(arguments) is tuple:
            self.keep(name, state)
            return self._made(function.name, arguments)
        return Opaque(name_of(cls), function, cls, arguments, state)

    def _sparse(self, name: str, layout: Any, parts: Any, *_: Any) -> Any:
        return Sparse(parts) if type(parts) is tuple else None

    def _no_values(self, name: str, *_: Any) -> Any:
        return NoValues()


_TENSORS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": Calls._view,
    "torch._utils._rebuild_tensor_v2": Calls._view,
    "torch._utils._rebuild_tensor_v3": Calls._typed_view,
    "torch._utils._rebuild_qtensor": Calls._quantized,
    "torch._utils._rebuild_parameter": Calls._parameter,
    "torch._utils._rebuild_parameter_with_state": Calls._parameter,
    "torch._utils._rebuild_sparse_tensor": Calls._sparse,
    "torch._utils._rebuild_meta_tensor_no_storage": Calls._no_values,
    "torch._tensor._rebuild_from_type_v2": Calls._subclass,
}


def is_filled(value: Any) -> bool:
    """Whether a value is a container with items."""
    return type(value) in (Dict, list, tuple, Sparse) and bool(value)


def name_of(thing: Any) -> str:
    """The name of a class or function, or that of the class of a value."""
    return thing.name if type(thing) in (Global, Opaque) else type(thing).__name__


def is_size(number: Any) -> bool:
    """Whether a number can be a length, a step or an offset."""
    return type(number) is int and 0 <= number < 1 << 62


def _reading(metadata: Any = None) -> tuple[str, ...]:
    """What a tensor's metadata say of its bytes."""
    if type(metadata) is not Dict:
        return ()
    keys = [key for key, value in zip(metadata[::2], metadata[1::2], strict=True) if value is True]
    return tuple(name for name in ("conj", "neg") if name in keys)


def _dict(pairs: Any = ()) -> Dict | None:
    if type(pairs) is Dict:
        return Dict(pairs)
    if type(pairs) in (list, tuple) and all(type(pair) in (list, tuple) for pair in pairs):
        return Dict(part for key, value in pairs for part in (key, value))
    return None


def _sequence(make: type[Any]) -> Callable[..., Any]:
    return lambda items=(), *_: make(items) if type(items) in (list, tuple) else None


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


# Containers, and values of which the tensors don't depend. A function that returns None: the call
# isn't understood. None: the name may be in a pickle, and must not be called.
_HARMLESS: dict[str, Callable[..., Any] | None] = {
    "collections.OrderedDict": _dict,
    "collections.Counter": _dict,
    "torch.Size": _sequence(tuple),
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
    _HARMLESS |= {
        f"{_module}.list": _sequence(list),
        f"{_module}.tuple": _sequence(tuple),
        f"{_module}.dict": _dict,
        f"{_module}.set": _sequence(list),
        f"{_module}.frozenset": _sequence(list),
        f"{_module}.complex": _complex,
        f"{_module}.bytearray": _opaque,
        f"{_module}.bytes": _bytes,
        f"{_module}.slice": _opaque,
        f"{_module}.range": _opaque,
    }

KNOWN = frozenset((*_TENSORS, *STORAGES, *DTYPES, *_HARMLESS))
