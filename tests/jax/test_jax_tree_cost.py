# SPDX-License-Identifier: Apache-2.0
"""What `pydag.jaxinterop.tree` costs beside `jax.tree`: ratios in one process, taken in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
from pydag import jaxinterop as pj


def least(*functions: Callable[[], Any]) -> list[float]:
    """The least time of each."""
    found = [float("inf")] * len(functions)
    for _ in range(7):
        for i, function in enumerate(functions):
            start = time.thread_time()
            function()
            found[i] = min(found[i], time.thread_time() - start)
    return found


class Layer:
    """A module with an array and a number, which is configuration."""

    def __init__(self, weight: Any) -> None:
        self.weight, self.eps = weight, 1e-6


pydag.register_module(Layer)


@pytest.mark.once
@pytest.mark.parametrize("count", [30, 300])
@pytest.mark.parametrize("kind", ["text", "modules"])
def test_a_dag_with_static_leaves_costs_little_more_than_the_dict(kind: str, count: int) -> None:
    """`jax.jit` of a new `Dag` at each call, at most twice `jax.jit` of the dict of its arrays.

    The arrays are in dicts with text in them, or each in a module with a number. The bound of the
    test leaves room for a machine that is busy with other work.
    """
    arrays = [jnp.ones(2) + i for i in range(count)]
    plain: Any = {f"m{i}": {"k": x} for i, x in enumerate(arrays)}
    tree: Any = {name: {**part, "name": "text"} for name, part in plain.items()}
    if kind == "modules":
        tree = {name: Layer(part["k"]) for name, part in plain.items()}
    of_dag = jax.jit(lambda dag: jax.tree.leaves(dag)[0])
    of_dict = jax.jit(lambda tree: tree["m0"]["k"])

    def often(function: Callable[[Any], Any], make: Callable[[], Any]) -> Callable[[], None]:
        function(make())  # compiles it

        def run() -> None:
            for _ in range(30_000 // count):
                function(make())

        return run

    ours, theirs = least(often(of_dag, lambda: pj.Dag(tree)), often(of_dict, lambda: plain))
    assert ours < 2.2 * theirs
