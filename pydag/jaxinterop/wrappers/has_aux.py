# SPDX-License-Identifier: Apache-2.0
"""What a function with `has_aux` returns."""

from typing import Any


def pair(result: Any) -> tuple[Any, Any]:
    """The result of a function with `has_aux`."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            "with has_aux=True the function must return a pair (value, aux), a tuple of two, "
            f"but it returned an object of type {type(result).__name__}"
        )
    return result
