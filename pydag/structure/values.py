# SPDX-License-Identifier: Apache-2.0
"""Exact JSON for the values in keys, aux_data, meta fields and leaves.

None, booleans, ordinary integers, finite floats and text are written unchanged. Any other value is
an object with one field that names its type:

    {"int": "-0x1f"}            an integer that other readers of JSON would round
    {"float": "7ff8000000000000"}   infinity and NaN, as the bits of a double
    {"str": "eda080"}           text with lone surrogates, as UTF-8 that lets them pass
    {"bytes": "AAE="}           base64
    {"tuple": [...]}
    {"class": "module.Name"}    a registered class
    {"function": "module:name"}     of a node that means a call, as {"partial": [f, args, kwargs]}

and only for leaves {"complex": [..., ...]}, {"range": [0, 9, 1]}, {"constant": "Ellipsis"},
{"numpy.bool": true}.
"""

import binascii
import math
import re
import struct
from collections.abc import Callable, Iterable
from typing import Any

from pydag.arrays.kinds import is_class_of
from pydag.registry.function_names import function_name
from pydag.registry.names import ClassNames, class_name

from .calls import Applied, FunctionName, are_options

_DEEPEST = 100  # tuples in tuples; readers of JSON have limits
_LARGEST = 1_000_000  # items in one value
_PLAIN_INT = 2**53
_CONSTANTS = {"Ellipsis": ..., "NotImplemented": NotImplemented}


def _encode_float(x: float) -> Any:
    return x if math.isfinite(x) else {"float": struct.pack(">d", x).hex()}


def _encode_str(x: str) -> Any:
    try:
        x.encode()
    except UnicodeEncodeError:
        return {"str": x.encode("utf-8", "surrogatepass").hex()}
    return x


_ENCODE: dict[type, Callable[[Any], Any]] = {
    type(None): lambda x: x,
    bool: lambda x: x,
    int: lambda x: x if -_PLAIN_INT <= x <= _PLAIN_INT else {"int": hex(x)},
    float: _encode_float,
    str: _encode_str,
    bytes: lambda x: {"bytes": binascii.b2a_base64(x, newline=False).decode()},
}
_ENCODE_LEAF: dict[type, Callable[[Any], Any]] = {
    complex: lambda x: {"complex": [_encode_float(x.real), _encode_float(x.imag)]},
    range: lambda x: {"range": [encode(part, None) for part in (x.start, x.stop, x.step)]},
    type(...): lambda _: {"constant": "Ellipsis"},
    type(NotImplemented): lambda _: {"constant": "NotImplemented"},
}


class UnwritableError(TypeError):
    """A value can't be written as JSON. The text names the value, not its place."""


class _Encoder:
    def __init__(self, names: ClassNames | None, functions: bool) -> None:
        self._names, self._functions, self._left = names, functions, _LARGEST

    def encode(self, x: Any, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0:
            raise UnwritableError(f"a value of more than {_LARGEST} items")
        if (write := _ENCODE.get(type(x))) is not None:
            return write(x)
        if type(x) is tuple:
            if depth == _DEEPEST:
                raise UnwritableError(f"tuples nested more than {_DEEPEST} deep")
            return {"tuple": [self.encode(item, depth + 1) for item in x]}
        if isinstance(x, type) and self._names is not None:
            if not self._names.knows(x):
                raise UnwritableError(f"{x!r}, which isn't registered")
            return {"class": class_name(x)}
        if self._functions and type(x) is Applied:
            parts = x.func, x.args, x.options()
            return {"partial": [self.encode(part, depth + 1) for part in parts]}
        if self._functions and callable(x):
            return {"function": _function(x)}
        raise UnwritableError(f"an object of {type(x)!r}")


def _function(f: Any) -> str:
    name = function_name(f)
    if name is None:
        raise UnwritableError(
            f"the function {f!r}, which can't be found by its name: define it in a module, outside "
            "of other functions, in the place of a lambda"
        )
    return name


def encode(x: Any, names: ClassNames | None, functions: bool = False) -> Any:
    """A key, aux_data or the value of a meta field as JSON.

    Args:
        names: The registered classes; None: no class may occur.
        functions: Whether functions may occur.

    Raises:
        UnwritableError: JSON can't represent it.
    """
    return _Encoder(names, functions).encode(x)


def encode_keys(keys: Iterable[Any], names: ClassNames) -> list[Any]:
    """The same of each key."""
    return [x if type(x) is str and x.isascii() else encode(x, names) for x in keys]


def encode_leaf(x: Any, names: ClassNames) -> Any:
    """A leaf that is a value, as JSON. Raises `UnwritableError`."""
    if (write := _ENCODE_LEAF.get(type(x))) is not None:
        return write(x)
    return {"numpy.bool": bool(x)} if is_class_of(type(x), "numpy", "bool_") else encode(x, names)


def _text(x: Any) -> str:
    if type(x) is not str:
        raise ValueError(f"expected text, got {type(x).__name__}")
    return x


def _decode_float(x: Any) -> float:
    if not re.fullmatch("[0-9a-f]{16}", _text(x)):
        raise ValueError("a float is written as 16 hexadecimal digits")
    return float(struct.unpack(">d", bytes.fromhex(x))[0])


def _decode_int(x: Any) -> int:
    if not re.fullmatch("-?0x[0-9a-f]+", _text(x)):
        raise ValueError("an integer is written as hexadecimal digits behind 0x")
    return int(x, 16)


def _decode_bytes(x: Any) -> bytes:
    try:
        return binascii.a2b_base64(_text(x), strict_mode=True)
    except binascii.Error as error:
        raise ValueError(f"bytes are written in base64: {error}") from None


def _numbers(x: Any, count: int, cls: type) -> list[Any]:
    found = [_Decoder(None).decode(item) for item in x] if type(x) is list else []
    if [type(item) for item in found] != [cls] * count:
        raise ValueError(f"expected a list of {count} numbers")
    return found


def _constant(x: Any) -> Any:
    if _text(x) not in _CONSTANTS:
        raise ValueError(f"unknown constant {x[:40]!r}")
    return _CONSTANTS[x]


def _numpy_bool(x: Any) -> Any:
    if type(x) is not bool:
        raise ValueError("expected true or false")
    import numpy as np

    return np.bool_(x)


_DECODE: dict[str, Callable[[Any], Any]] = {
    "int": _decode_int,
    "float": _decode_float,
    "str": lambda x: bytes.fromhex(_text(x)).decode("utf-8", "surrogatepass"),
    "bytes": _decode_bytes,
}
_DECODE_LEAF: dict[str, Callable[[Any], Any]] = {
    "complex": lambda x: complex(*_numbers(x, 2, float)),
    "range": lambda x: range(*_numbers(x, 3, int)),
    "constant": _constant,
    "numpy.bool": _numpy_bool,
}


class _Decoder:
    def __init__(self, names: ClassNames | None) -> None:
        self._names = names

    def decode(self, x: Any, depth: int = 0) -> Any:
        if type(x) is list:
            raise ValueError("a list is no value")
        if type(x) is not dict:
            if type(x) is float and not math.isfinite(x):
                raise ValueError("a number is too large for a float")
            return x
        tag, content = only_field(x)
        if tag == "tuple":
            if type(content) is not list:
                raise ValueError("a tuple is written as a list")
            if depth == _DEEPEST:
                raise ValueError(f"tuples nested more than {_DEEPEST} deep")
            return tuple([self.decode(item, depth + 1) for item in content])
        if tag == "class":
            name = _text(content)
            return name if self._names is None else self._names.find(name, "value")
        if tag == "function":
            name = _text(content)
            return FunctionName(name) if self._names is None else self._names.functions.find(name)
        if tag == "partial":
            return self._partial(content, depth)
        if tag not in _DECODE:
            raise ValueError(f"unknown kind of value {tag[:40]!r}")
        return _DECODE[tag](content)

    def _partial(self, content: Any, depth: int) -> Applied:
        if type(content) is not list or len(content) != 3 or depth == _DEEPEST:
            raise ValueError("a partial is written as a list of three")
        f, args, options = (self.decode(part, depth + 1) for part in content)
        if not callable(f) or type(args) is not tuple or not are_options(options):
            raise ValueError("a partial has a function, a tuple, and a tuple of names and values")
        return Applied(f, *args, **dict(options))


def only_field(x: dict[str, Any]) -> tuple[str, Any]:
    """The name and the content of an object with one field; ValueError if it has more."""
    if len(x) != 1:
        raise ValueError(f"expected an object with one field, got {len(x)}")
    return next(iter(x.items()))


def decode(x: Any, names: ClassNames | None) -> Any:
    """The inverse of `encode`; if `names` is None, classes are given by name.

    Raises:
        ValueError: The text was not made by `encode`, or a class isn't registered.
    """
    return _Decoder(names).decode(x)


def decode_leaf(x: Any, names: ClassNames | None) -> Any:
    """The inverse of `encode_leaf`. Raises ValueError."""
    if type(x) is dict and len(x) == 1 and (read := _DECODE_LEAF.get(next(iter(x)))) is not None:
        return read(next(iter(x.values())))
    return decode(x, names)
