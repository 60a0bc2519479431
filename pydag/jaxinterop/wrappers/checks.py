# SPDX-License-Identifier: Apache-2.0
"""What wrappers check of a user's function: that it is one, and what it returns."""

from typing import Any


def check_callable(text: str, *functions: object) -> None:
    """Raises `TypeError` if one of the functions that a wrapper was given can't be called.

    Args:
        text: What JAX says then, without the full stop.
    """
    for function in functions:
        if not callable(function):
            raise TypeError(f"{text}, not of type {type(function).__name__}.")


def pair(result: Any) -> tuple[Any, Any]:
    """The result of a function with `has_aux`."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            "with has_aux=True the function must return a pair (value, aux), a tuple of two, "
            f"but it returned an object of type {type(result).__name__}"
        )
    return result
