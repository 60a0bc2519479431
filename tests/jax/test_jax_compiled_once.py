# SPDX-License-Identifier: Apache-2.0
"""Calling again, and wrapping again, compiles nothing anew where JAX doesn't."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from small_models import tied_under

import pydag
from pydag import jaxinterop

tied = tied_under("a", "b", lambda: jnp.ones((2, 2, 2)), name="net")


def double(tree: Any) -> Any:
    """The tree with its array doubled."""
    return pydag.dag_map(lambda x: x if isinstance(x, str) else 2 * x, tree)


def untied() -> dict[str, Any]:
    """The same with two arrays."""
    return {**tied(), "b": jnp.ones((2, 2, 2))}


def calls(name: str, traces: list[str]) -> Callable[[Any], Any]:
    """A call of a wrapper with functions that are nobody else's, and stay the same.

    Args:
        traces: Where the functions note that they run.
    """

    def body(tree: Any) -> Any:
        traces.append("trace")
        return double(tree)

    def scanned(carry: Any, _: Any) -> Any:
        return body(carry), None

    def counted(_: Any, carry: Any) -> Any:
        return body(carry)

    def is_small(carry: Any) -> Any:
        return carry["a"][0, 0, 0] < 3

    ways: dict[str, Callable[[Any], Any]] = {
        "scan": lambda tree: jaxinterop.scan(scanned, tree, length=2),
        "fori_loop": lambda tree: jaxinterop.fori_loop(0, 2, counted, tree),
        "while_loop": lambda tree: jaxinterop.while_loop(is_small, body, tree),
        "cond": lambda tree: jaxinterop.cond(True, body, body, tree),
        "switch": lambda tree: jaxinterop.switch(0, [body, body], tree),
        "jit": lambda tree: jaxinterop.jit(body)(tree),
        "checkpoint": lambda tree: jaxinterop.checkpoint(body)(tree),
        "keep_sharing": lambda tree: jaxinterop.keep_sharing(jax.jit)(body)(tree),
    }
    return ways[name]


@pytest.mark.parametrize(
    "name",
    ["scan", "fori_loop", "while_loop", "cond", "switch", "jit", "checkpoint", "keep_sharing"],
)
def test_a_function_is_traced_once(name: str) -> None:
    """For one structure and sharing, called and wrapped again outside of `jit`."""
    traces: list[str] = []
    call = calls(name, traces)
    call(tied())
    first = len(traces)
    assert first > 0
    call({**(tree := tied()), "a": (w := 2 * tree["a"]), "b": w})
    assert len(traces) == first
    call(untied())
    assert len(traces) == 2 * first
