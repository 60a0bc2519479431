# SPDX-License-Identifier: Apache-2.0
"""What the values of a pickle are read as. None of it can do anything; no key is ever hashed.

Lists, tuples, text, numbers and None are themselves; a set is a list.
"""

from typing import Any, NamedTuple


class PickleError(ValueError):
    """The pickle is malformed, or holds more than can be read."""


class LongValue:
    """Stands for a text, bytes or an integer that is too long to be a name or a number."""


class Global(NamedTuple):
    """The name of a class or function that is known."""

    name: str


class Opaque:
    """An object that isn't rebuilt; also the name of an unknown class or function.

    Attributes:
        name: The name of its class, or of the function that would have made it.
        contents: The arguments, the state and the items that it would have got.
    """

    __slots__ = ("contents", "name")

    def __init__(self, name: str, *contents: Any) -> None:
        self.name, self.contents = name, list(contents)


class Dict(list[Any]):
    """A dict: key, value, key, value ..."""

    __slots__ = ()


class Frozen(tuple[Any, ...]):
    """A set that may be a key."""

    __slots__ = ()


class Sparse(list[Any]):
    """The parts of a tensor that isn't strided."""

    __slots__ = ()


class Storage(NamedTuple):
    """The description of a storage in a persistent id."""

    key: str
    dtype: str | None  # None: bytes
    size: int  # in elements


class Tensor(NamedTuple):
    """A view of a storage, in elements."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    reading: tuple[str, ...] = ()  # "conj", "neg", "quantized": what its bytes mean


class Meta:
    """A tensor without values, on `meta`."""
