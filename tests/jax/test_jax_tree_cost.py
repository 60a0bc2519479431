# SPDX-License-Identifier: Apache-2.0
"""What `pydag.jaxinterop.tree` costs beside `jax.tree`: ratios in one process, taken in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
from pydag import jaxinterop as pj

COUNT = 20_000


def least(*functions: Callable[[], Any]) -> list[float]:
    """The least time of each."""
    found = [float("inf")] * len(functions)
    for _ in range(7):
        for i, function in enumerate(functions):
            start = time.process_time()
            function()
            found[i] = min(found[i], time.process_time() - start)
    return found


@pytest.mark.once
@pytest.mark.parametrize(
    "make",
    [lambda i: np.zeros(2), lambda i: f"name{i}", lambda i: 1.5 * i],
    ids=["NumPy arrays", "text", "numbers"],
)
@pytest.mark.parametrize("width", [COUNT, 10], ids=["one dict", "dicts of ten"])
def test_host_trees_cost_at_most_what_they_cost_jax(make: Callable[[int], Any], width: int) -> None:
    """`map` and `leaves` on trees of NumPy arrays, text, numbers take no longer than `jax.tree`'s.

    The bound of the test leaves room for a machine that is busy with other work.
    """
    tree = {f"m{j}": {f"k{i}": make(j + i) for i in range(width)} for j in range(0, COUNT, width)}
    ours, plain, our_leaves, plain_leaves = least(
        lambda: pj.tree.map(lambda x: x, tree),
        lambda: jax.tree.map(lambda x: x, tree),
        lambda: pj.tree.leaves(tree),
        lambda: jax.tree.leaves(tree),
    )
    assert ours < 1.3 * plain
    assert our_leaves < 1.3 * plain_leaves


class Layer:
    """A module with an array and a number, which is configuration."""

    def __init__(self, weight: Any) -> None:
        self.weight, self.eps = weight, 1e-6


pydag.register_module(Layer)


@pytest.mark.once
@pytest.mark.parametrize(("kind", "bound"), [("text", 2.2), ("modules", 4)])
def test_a_dag_with_static_leaves_costs_little_more_than_the_dict(kind: str, bound: float) -> None:
    """`jax.jit` of a new `Dag` at each call, beside `jax.jit` of the nested dict of its arrays.

    Text in each dict costs less than the arrays do. A module around each array, with a number, is
    twice as many leaves, and 300 objects more.
    """
    arrays = [jnp.ones(2) + i for i in range(300)]
    plain = {f"m{j}": {f"k{i}": arrays[10 * j + i] for i in range(10)} for j in range(30)}
    tree: Any = {name: {**part, "name": "text"} for name, part in plain.items()}
    if kind == "modules":
        tree = {name: {key: Layer(x) for key, x in part.items()} for name, part in plain.items()}
    of_dag = jax.jit(lambda dag: jax.tree.leaves(dag)[0])
    of_dict = jax.jit(lambda tree: tree["m0"]["k0"])

    def often(function: Callable[[Any], Any], make: Callable[[], Any]) -> Callable[[], None]:
        function(make())  # compiles it

        def run() -> None:
            for _ in range(100):
                function(make())

        return run

    ours, theirs = least(often(of_dag, lambda: pj.Dag(tree)), often(of_dict, lambda: plain))
    assert ours < bound * theirs
