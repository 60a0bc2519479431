# SPDX-License-Identifier: Apache-2.0
"""The names that a pickle of torch's may have, and the results of calls: nothing else is called.

A call of any other function, and one that isn't understood, makes an `Opaque`.
"""

from collections.abc import Callable
from typing import Any

from pydag.arrays.bytes import DTYPES as _SHARED

from .pickle_objects import Dict, Frozen, Global, Meta, Opaque, PickleError, Sparse, Storage, Tensor

CONTAINERS = (list, tuple, Dict, Frozen, Sparse)
SIZED = (str, bytes, *CONTAINERS)
ITEM = 16  # bytes of an item of a container
_MOST_ARGUMENTS = 8  # of a known function
_MOST_FOREIGN = 1000

DTYPES = {f"torch.{name}": short for name, short in _SHARED.items()} | {"torch.complex128": "C128"}
_STORAGES = (
    "Double float64, Float float32, Half float16, BFloat16 bfloat16, Long int64, Int int32, "
    "Short int16, Char int8, Byte uint8, Bool bool, ComplexFloat complex64, "
    "ComplexDouble complex128, QInt8 int8, QUInt8 uint8, QInt32 int32"
)
# The type of the elements, as safetensors calls it; None: bytes.
STORAGES: dict[str, str | None] = {
    f"torch.{name}Storage": DTYPES[f"torch.{dtype}"]
    for name, dtype in map(str.split, _STORAGES.split(","))
} | {"torch.storage.UntypedStorage": None, "torch.UntypedStorage": None}
_FLAGS = ((), ("conj",), ("neg",), ("conj", "neg"), ("neg", "conj"))
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
        beside: Objects that are in no container: attributes, hooks, and what was dropped.
    """

    def __init__(self, spend: Callable[[int], None]) -> None:
        self._spend = spend  # what a walk through items costs
        self.foreign: dict[str, str] = {}
        self.beside: list[Opaque] = []

    def result_of(self, function: Any, arguments: Any) -> Any:
        """The result of a call."""
        if type(function) not in (Global, Opaque) or type(arguments) is not tuple:
            raise PickleError("malformed pickle: a call of what is no class or function")
        name = function.name
        if type(function) is Opaque:
            return Opaque(name, function, arguments)
        if len(arguments) > _MOST_ARGUMENTS:
            raise PickleError(f"malformed pickle: more than {_MOST_ARGUMENTS} arguments of {name}")
        self._spend(ITEM * sum(len(part) for part in arguments if type(part) in SIZED))
        if name in _TENSORS:
            found = _TENSORS[name](self, name, *arguments)
        elif (make := _HARMLESS.get(name)) is not None:
            found = make(*arguments)
        else:
            self.note(name)
            found = None
        return Opaque(name, arguments) if found is None else found

    def note(self, name: str) -> str:
        """Notes a name that is on no list."""
        if name not in self.foreign and len(self.foreign) >= _MOST_FOREIGN:
            raise PickleError(f"the pickle names more than {_MOST_FOREIGN} classes and functions")
        return self.foreign.setdefault(name, name)

    def keep(self, owner: str, *values: Any) -> None:
        """Keeps what a container or a tensor got besides its items: attributes, or hooks."""
        for value in values:
            parts = value if type(value) is Dict else ()
            self._spend(ITEM * len(parts))
            if any(type(part) is Global and part.name not in DTYPES for part in parts):
                raise PickleError("malformed pickle: an attribute that is a class or function")
            if type(value) in (Tensor, Storage, Opaque, Meta) or is_filled(value):
                self.beside.append(Opaque(owner, value))

    def _view(self, name: str, storage: Any, *more: Any) -> Any:
        """A tensor: offset, shape, strides, requires_grad, hooks, and how it is read."""
        if type(storage) is not Storage:
            return Opaque(name_of(storage), storage, *more)
        (offset, shape, strides), besides, metadata = more[:3], more[3:5], more[5:]
        self.keep(name, *besides)
        is_whole = is_size(offset) and _are_sizes(shape) and _are_sizes(strides)
        is_whole = is_whole and len(shape) == len(strides)
        if storage.dtype is None or not is_whole or (besides and type(besides[0]) is not bool):
            raise PickleError("malformed pickle: a tensor without a type, a shape or strides")
        reading = _reading(*metadata)
        return Tensor(storage, storage.dtype, offset, tuple(shape), tuple(strides), reading)

    def _typed_view(self, name: str, storage: Any, *more: Any) -> Any:
        """A tensor with its type after the hooks."""
        dtype = DTYPES.get(name_of(more[5]))
        if type(storage) is not Storage or dtype is None:
            return Opaque(name_of(more[5]), storage, *more)
        typed = storage._replace(dtype=dtype)
        return self._view(name, typed, *more[:5], *more[6:])._replace(storage=storage)

    def _quantized(self, name: str, storage: Any, *more: Any) -> Any:
        """A tensor of numbers that stand for others; how comes after the strides."""
        found = self._view(name, storage, *more[:3], *more[4:])
        return found._replace(reading=("quantized",)) if type(found) is Tensor else found

    def _parameter(self, name: str, data: Any, *more: Any) -> Any:
        """A parameter is its data; hooks and attributes come after it."""
        self.keep(name, *more)
        return data

    def _subclass(self, name: str, function: Any, cls: Any, arguments: Any, state: Any) -> Any:
        """The result of another function, as an instance of a class."""
        if type(function) is type(cls) is Global and type(arguments) is tuple:
            if function.name == name or function.name not in _TENSORS:
                raise PickleError("malformed pickle: an instance of a class that is no tensor")
            self.keep(name, *(state[:2] if type(state) is tuple else (state,)))
            return self.result_of(function, arguments)
        return Opaque(name_of(cls), function, cls, arguments, state)

    def _no_values(self, name: str, *more: Any) -> Any:
        self.keep(name, more)
        return Meta()


_TENSORS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": Calls._view,
    "torch._utils._rebuild_tensor_v2": Calls._view,
    "torch._utils._rebuild_tensor_v3": Calls._typed_view,
    "torch._utils._rebuild_qtensor": Calls._quantized,
    "torch._utils._rebuild_parameter": Calls._parameter,
    "torch._utils._rebuild_parameter_with_state": Calls._parameter,
    "torch._utils._rebuild_sparse_tensor": lambda *x: Sparse(x[3]) if type(x[3]) is tuple else None,
    "torch._utils._rebuild_meta_tensor_no_storage": Calls._no_values,
    "torch._tensor._rebuild_from_type_v2": Calls._subclass,
}


def is_filled(value: Any) -> bool:
    """Whether a value is a container with items."""
    return type(value) in CONTAINERS and bool(value)


def name_of(thing: Any) -> str:
    """The name of a class or function, or that of the class of a value."""
    return thing.name if type(thing) in (Global, Opaque) else type(thing).__name__


def is_size(number: Any) -> bool:
    """Whether a number can be a length, a step or an offset."""
    return type(number) is int and 0 <= number < 1 << 62


def _are_sizes(numbers: Any) -> bool:
    return type(numbers) in (tuple, list) and all(map(is_size, numbers))


def _reading(metadata: Any = None) -> tuple[str, ...]:
    """What a tensor's metadata say of its bytes."""
    for flags in _FLAGS if type(metadata) is Dict else ():
        if metadata == [part for flag in flags for part in (flag, True)]:
            return tuple(sorted(flags))
    if metadata is not None:
        raise PickleError("malformed pickle: the metadata of a tensor aren't known")
    return ()


def _dict(pairs: Any = ()) -> Dict | None:
    if type(pairs) is Dict:
        return Dict(pairs)
    if type(pairs) in (list, tuple) and all(type(pair) in (list, tuple) for pair in pairs):
        return Dict(part for key, value in pairs for part in (key, value))
    return None


def _sequence(make: type[Any]) -> Callable[..., Any]:
    return lambda items=(): make(items) if type(items) in (list, tuple) else None


def _bytes(*text: Any) -> bytes | None:
    """What `_codecs.encode` makes of text, which is how older protocols write bytes."""
    if not text:
        return b""
    is_latin = len(text) == 2 and type(text[0]) is str and text[1] in ("latin1", "latin-1")
    return text[0].encode("latin-1") if is_latin else None


# Values on which the tensors don't depend, and names that may be in a pickle but aren't called.
_VALUES = (
    "torch.device torch.layout torch.serialization._get_layout numpy.dtype builtins.bytearray "
    "builtins.slice builtins.range numpy.core.multiarray.scalar numpy._core.multiarray.scalar"
)
_NAMES = (
    "torch.nn.parameter.Parameter torch.nn.parameter.Buffer torch.Tensor torch._tensor.Tensor "
    "torch.per_tensor_affine torch.per_channel_affine builtins.int builtins.float builtins.str "
    "builtins.bool"
)
# A function that returns None: the call isn't understood.
_HARMLESS: dict[str, Callable[..., Any] | None] = {
    "collections.OrderedDict": _dict,
    "collections.Counter": lambda *counts: _dict(*counts) if Dict in map(type, counts) else None,
    "collections.defaultdict": lambda _=None, pairs=(): _dict(pairs),
    # One with a greatest length, which drops items, isn't understood.
    "collections.deque": lambda items=(), *most: None if most else _sequence(list)(items),
    "torch.Size": _sequence(tuple),
    "builtins.list": _sequence(list),
    "builtins.tuple": _sequence(tuple),
    "builtins.dict": _dict,
    "builtins.set": _sequence(list),
    "builtins.frozenset": _sequence(Frozen),
    "builtins.complex": lambda *x: complex(*x) if {*map(type, x)} <= {float, int} else None,
    "builtins.bytes": _bytes,
    "_codecs.encode": _bytes,
    **dict.fromkeys(_VALUES.split(), lambda *_: None),
    **dict.fromkeys(_NAMES.split()),
}

KNOWN = frozenset((*_TENSORS, *STORAGES, *DTYPES, *_HARMLESS))
