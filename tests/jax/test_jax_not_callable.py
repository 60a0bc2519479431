# SPDX-License-Identifier: Apache-2.0
"""What is given to a wrapper as a function, and can't be called."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from pydag import jaxinterop as pj

CALLS: dict[str, Callable[[Any], Any]] = {
    "cond, if true": lambda lax: lax.cond(True, 42, lambda: 1),
    "cond, if false": lambda lax: lax.cond(True, lambda: 1, 42),
    "switch": lambda lax: lax.switch(0, [lambda: 1, 42]),
    "while_loop, condition": lambda lax: lax.while_loop(42, lambda c: c, 0),
    "while_loop, body": lambda lax: lax.while_loop(lambda c: True, 42, 0),
    "fori_loop": lambda lax: lax.fori_loop(0, 1, 42, 0),
    "scan": lambda lax: lax.scan(42, 0, jnp.arange(3)),
    "scan without xs": lambda lax: lax.scan(42, 0, None, length=2),
    "associative_scan": lambda lax: lax.associative_scan(42, jnp.arange(2)),
    "associative_scan of a number": lambda lax: lax.associative_scan(42, 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_function_is_refused_as_by_jax(name: str) -> None:
    """JAX's error, before anything else is looked at; and the type of what was given."""
    with pytest.raises(TypeError) as of_jax:
        CALLS[name](jax.lax)
    with pytest.raises(TypeError) as of_pydag:
        CALLS[name](pj)
    assert str(of_pydag.value) == str(of_jax.value).removesuffix(".") + ", not of type int."
