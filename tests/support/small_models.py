# SPDX-License-Identifier: Apache-2.0
"""The smallest tied models: one array under two names, new at each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

Make = Callable[..., dict[str, Any]]


def number(value: float = 3.0) -> Any:
    """An array that is a number."""
    return jnp.float32(value)


def tied_under(first: str, second: str, make: Callable[..., Any], **others: Any) -> Make:
    """A function that makes a dict with one array under two names.

    Args:
        make: Makes the array of the arguments that the function is called with.
        others: What else the dict has, such as leaves that JAX can't trace.
    """

    def tied(*args: Any) -> dict[str, Any]:
        w = make(*args)
        return {first: w, second: w, **others}

    return tied
