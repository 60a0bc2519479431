# SPDX-License-Identifier: Apache-2.0
"""Hashes of static leaves that are the same in every process.

Python's own hash of text differs from process to process, and that of a class or a function is
its address. Processes that compile one program compare structures, and caches are shared.
"""

import enum
import types
import zlib
from typing import Any

import numpy as np

from pydag.registry.names import class_name

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)


def text_hash(text: str) -> int:
    """A number that depends on what a text says."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def stable_hash(value: Any) -> int:
    """A hash for values that are equal if they are of one type and equal, tuples item by item.

    It is the same in every process for text, numbers, classes, functions, members of enums, and
    tuples and frozensets of such values. Of any other class, it is the one that the class gives.

    Raises:
        TypeError: The value can't be hashed.
    """
    cls = type(value)
    if cls is str:
        return text_hash(value)
    if cls is int or cls is bool:
        return hash(value)
    if value is None:
        return 0
    if isinstance(value, tuple):
        return hash(tuple(map(stable_hash, value)))
    if isinstance(value, frozenset):
        return hash(frozenset(map(stable_hash, value)))
    if cls is bytes:
        return zlib.crc32(value)
    if isinstance(value, type):
        return text_hash(class_name(value))
    if isinstance(value, _FUNCTIONS):
        return text_hash(value.__qualname__)
    if isinstance(value, enum.Enum):
        return text_hash(value.name)
    if isinstance(value, float | complex | np.inexact) and (value != value or value == 0):
        return text_hash(repr(value))  # the hash of NaN is an address
    return hash(value)
