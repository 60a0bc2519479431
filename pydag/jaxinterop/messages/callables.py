# SPDX-License-Identifier: Apache-2.0
"""What must be a function and is none: JAX's error, before anything else is looked at."""


def check_callable(text: str, *functions: object) -> None:
    """Raises `TypeError` if one of the functions that a wrapper was given can't be called.

    Args:
        text: What JAX says then, without the full stop.
    """
    for function in functions:
        if not callable(function):
            raise TypeError(f"{text}, not of type {type(function).__name__}.")
