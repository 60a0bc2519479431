# SPDX-License-Identifier: Apache-2.0
"""How chex opens and builds its dataclasses, which it doesn't promise: told by trying it out."""

import functools
import sys
from typing import Any

from .jax_private import registry


@functools.cache
def _functions_of_chex() -> tuple[Any, ...]:
    chex: Any = sys.modules["chex"]

    class Known:
        b: Any
        a: Any

    entry = registry[chex.dataclass(Known)]
    return entry.to_iter.__code__, entry.from_iter.func.__code__


def is_opened_by_chex(entry: Any) -> bool:
    """Whether a class is opened as chex opens its dataclasses; False if that can't be told."""
    unflatten = getattr(entry.from_iter, "func", None)
    functions = [getattr(function, "__code__", None) for function in (entry.to_iter, unflatten)]
    if "chex" not in sys.modules or None in functions:
        return False
    try:
        return functions == list(_functions_of_chex())
    except Exception:
        return False
