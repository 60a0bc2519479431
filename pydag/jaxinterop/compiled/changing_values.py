# SPDX-License-Identifier: Apache-2.0
"""What kinds of values change from call to call, and how many different ones are too many.

The warning comes after three compilations for values that are new in each call, such as functions.
Other values may be the few settings of a model that come back, such as the names of modes: the
warning waits for more of them.
"""

import functools
import inspect
import itertools
import re
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydag.jaxinterop.static.leaves import Static, is_number

from .compared_calls import ARGUMENT, ATTRIBUTE, ORDER, SHARING, Difference, Keys, Size

NUMBER, TEXT, FUNCTION, OBJECT = "number", "text", "function", "object"
STRUCTURE = "structure"

CALLS = 3
"""Compilations after which it is told of values that don't come again."""

_ALIKE, _CONFIGURATIONS, STATIC_ARGUMENTS = 4, 7, 8


def kind_of(difference: Difference, value: Any) -> str | None:
    """What kind of value stands at a place; None for a kind with few values, such as flags."""
    if type(value) in (Size, Keys) or difference.where in (SHARING, ORDER):
        return STRUCTURE
    if value is None or isinstance(value, bool | np.bool_ | type):
        return None
    if is_number(value):
        return NUMBER
    if isinstance(value, str | bytes):
        return TEXT
    return OBJECT if origin(value) is None else FUNCTION


def origin(value: Any) -> Any:
    """The code of a function, or of what a partial calls; None for anything else."""
    depth = 0
    while isinstance(value, functools.partial | types.MethodType):
        value = value.func if isinstance(value, functools.partial) else value.__func__
        depth += 1
    if not callable(value) or isinstance(value, type):
        return None
    try:
        code = getattr(inspect.unwrap(value), "__code__", None)
    except Exception:  # reading an attribute may run code of the class
        return None
    if isinstance(code, types.CodeType):
        return code, depth
    return value if isinstance(value, types.BuiltinFunctionType) else None


def different(values: Sequence[Any]) -> list[Any]:
    """The values without those that are equal to an earlier one."""
    found: dict[Static, Any] = {}
    for value in values:
        found.setdefault(Static(value), value)
    return list(found.values())


def is_too_many(values: Sequence[Any], kind: str, last: Difference) -> bool:
    """Whether these different values, in the order in which they came, call for a warning."""
    return len(values) >= CALLS and len(values) >= _most(values, kind, last)


def _most(values: Sequence[Any], kind: str, last: Difference) -> int:
    """The number of compilations for different values at which the warning comes."""
    if kind == FUNCTION and len(set(map(origin, values))) == 1:
        return CALLS
    if last.where == ARGUMENT:
        return STATIC_ARGUMENTS
    if kind == NUMBER or (_fill(values) and last.place != "args"):
        return CALLS
    is_object = kind == OBJECT and last.where != ATTRIBUTE
    return _ALIKE if is_object or _differ_in_digits(values, kind) else _CONFIGURATIONS


def _differ_in_digits(values: Sequence[Any], kind: str) -> bool:
    """Whether the values are text with a number in it."""
    return kind == TEXT and len({re.sub(r"\d+(\.\d+)?", "#", str(value)) for value in values}) == 1


def _fill(values: Sequence[Any]) -> bool:
    """Whether the values are the sizes of a list that was empty, and gets more and more items."""
    if not all(type(value) is Size for value in values) or values[0] != 0:
        return False
    return all(a < b for a, b in itertools.pairwise(values))
