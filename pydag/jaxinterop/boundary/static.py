# SPDX-License-Identifier: Apache-2.0
"""Which leaves JAX traces; the others are static: part of what a compiled function is made for."""

import weakref
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

_is_traced: "weakref.WeakKeyDictionary[type, bool]" = weakref.WeakKeyDictionary(
    dict.fromkeys((bool, int, float, complex), True)
)

# The commonest of the dtypes that JAX takes.
_dtypes = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "uint8", "bool")))


def _ask_jax(leaf: Any) -> bool:
    try:
        jax.typeof(leaf)
    except TypeError:
        return False
    except Exception:
        return True  # JAX has something to say about such leaves: let it
    return True


def is_traced(leaf: Any) -> bool:
    """Whether JAX takes this leaf for an array. Asked once per class; NumPy's vary by dtype."""
    cls = type(leaf)
    if cls is np.ndarray:
        return leaf.dtype in _dtypes or _ask_jax(leaf)
    answer = _is_traced.get(cls)
    if answer is None:
        answer = _is_traced[cls] = _ask_jax(leaf)
    return answer


def static_positions(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Where the leaves stand that JAX can't trace."""
    examples = dict(zip(map(type, leaves), leaves, strict=True))
    if np.ndarray not in examples and all(map(is_traced, examples.values())):
        return ()
    return tuple(i for i, leaf in enumerate(leaves) if not is_traced(leaf))


def _typed(value: Any) -> Any:
    """A key that is equal for values of one type that are equal, tuples item by item."""
    cls = type(value)
    if isinstance(value, tuple):
        return cls, tuple(map(_typed, value))
    if isinstance(value, frozenset):
        return cls, frozenset(map(_typed, value))
    if isinstance(value, float | complex | np.inexact) and value != value:
        return cls, repr(value)  # NaN, which is not even equal to itself
    return cls, value


class Static:
    """A leaf that JAX doesn't see. Equal to another of the same type and value: 1 is not True."""

    __slots__ = ("_hash", "_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = _typed(value)
        self._hash: int | None = None

    def check_hashable(self) -> None:
        """Raises what the value's own `__hash__` raises."""
        if isinstance(self.value, Static):
            self.value.check_hashable()
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = hash(self._key)
            except TypeError:  # fine in an output, which is compared but never looked up
                self._hash = hash(type(self.value))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static):
            return NotImplemented
        if self.value is other.value:
            return True
        try:
            return bool(self._key == other._key)
        except Exception:  # such as the truth value of an array
            return False

    def __repr__(self) -> str:
        return f"Static({self.value!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Static, (self.value,)
