# SPDX-License-Identifier: Apache-2.0
"""The result of a call in a pickle: a value if the function is on a fixed list, else an `Opaque`.

Only the functions of `pickle_globals` are called.
"""

from typing import Any

from .pickle_code import PickleError
from .pickle_globals import DTYPES, HARMLESS, TENSORS, Call
from .pickle_objects import Dict, Global, NoValues, Opaque, Sparse, Storage, Tensor

_MOST_AXES = 1000
# Functions that make arrays of NumPy, whose numbers are in the pickle.
ARRAYS = frozenset(
    f"{module}.{name}"
    for package in ("numpy.core", "numpy._core")
    for module, name in (
        (f"{package}.multiarray", "_reconstruct"),
        (f"{package}.numeric", "_frombuffer"),
    )
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
        if type(function) is Global and type(arguments) is tuple:
            found = self._made(function.name, arguments)
            if found is not None:
                return found
        contents = (arguments,) if type(function) is Global else (function, arguments)
        return Opaque(name_of(function), *contents)

    def note(self, name: str) -> str:
        """Notes a name that is on no list."""
        if name not in self.foreign and len(self.foreign) >= 1000:
            raise PickleError("the pickle names more than 1000 classes and functions")
        return self.foreign.setdefault(name, name)

    def keep(self, owner: str, *values: Any) -> None:
        """Keeps what a container or a tensor got besides its items."""
        if any(
            type(value) in (Tensor, Storage, Opaque, NoValues) or is_filled(value)
            for value in values
        ):
            self.beside.append(Opaque(owner, *values))

    def _made(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """What a call of a function on the lists makes; None: nothing that is known."""
        call = TENSORS.get(name)
        if call is None:
            make = HARMLESS.get(name)
            if make is None:
                self.note(name)
                return None
            return make(*arguments)
        if call is Call.NO_VALUES:
            return NoValues()
        if call is Call.FIRST:  # a Parameter is its data
            self.keep(name, *arguments[1:])
            return arguments[0]
        if call is Call.SPARSE:  # its layout and its parts
            return Sparse(arguments[1]) if type(arguments[1]) is tuple else None
        if call is Call.SUBCLASS:  # (function, class, arguments, state)
            function, cls, inner, state = arguments
            if type(function) is Global and type(cls) is Global and type(inner) is tuple:
                self.keep(name, state)
                return self._made(function.name, inner)
            return Opaque(name_of(cls), *arguments)
        return self._view(name, call, arguments)

    def _view(self, name: str, call: Call, arguments: tuple[Any, ...]) -> Any:
        storage, offset, shape, strides = arguments[:4]
        if type(storage) is not Storage:
            return Opaque(name_of(storage), *arguments)
        dtype, more = storage.dtype, arguments[6:]
        if call is Call.TYPED_VIEW:
            dtype, more = DTYPES.get(name_of(arguments[6])), arguments[7:]
        if call is Call.QUANTIZED:
            reading: tuple[str, ...] = ("quantized",)
        else:
            self.keep(name, *arguments[5:6])
            reading = _reading(*more[:1])
        if len(shape) > _MOST_AXES:
            raise PickleError(f"malformed pickle: a tensor of more than {_MOST_AXES} axes")
        sizes = (offset, *shape, *strides)
        if dtype is None or len(shape) != len(strides) or not all(map(is_size, sizes)):
            raise PickleError("malformed pickle: a tensor without a type, a shape or strides")
        return Tensor(storage, dtype, offset, tuple(shape), tuple(strides), reading)


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
