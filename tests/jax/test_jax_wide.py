# SPDX-License-Identifier: Apache-2.0
"""What wide trees and Dags cost: work grows with the number of leaves, not with its square."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
from pydag import jaxinterop
from pydag import jaxinterop as pj

struct: Any = jax.ShapeDtypeStruct
HERE = jax.sharding.SingleDeviceSharding(jax.devices()[0])


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called meanwhile, of Python's and of C's."""
    count = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def first(tree: Any) -> Any:
    return tree["0.weight"]


def work_on(width: int, how: str) -> int:
    """The calls that the first trace for a dict with so many arrays takes."""
    names = [f"{i}.weight" for i in range(width)]
    tree = {name: struct((2,), "float32") for name in names}
    treatments: Any = dict.fromkeys(names, 0 if how == "axes" else HERE)
    if how == "axes":
        mapped = jaxinterop.vmap(first, in_axes=(treatments,))
        return calls_of(lambda: jaxinterop.eval_shape(mapped, tree))
    jitted: Any = {
        "in": lambda: jaxinterop.jit(first, in_shardings=(treatments,)),
        "out": lambda: jaxinterop.jit(lambda tree: tree, out_shardings=treatments),
    }[how]()
    return calls_of(lambda: jitted.trace(tree))


@pytest.mark.parametrize("how", ["axes", "in", "out"])
def test_trees_of_shardings_and_axes(how: str) -> None:
    """A sharding or an axis for each of four times as many names: about four times the work."""
    work_on(50, how)
    assert work_on(800, how) < 6 * work_on(200, how)


def test_a_file_with_a_sharding_for_each_array(tmp_path: Path) -> None:
    """To load four times as many arrays, each with its sharding, is about four times the work."""

    def work(width: int) -> int:
        path = tmp_path / str(width)
        tree = {f"{i}.weight": jnp.ones(1) for i in range(width)}
        jaxinterop.save(path, tree)
        shardings = dict.fromkeys(tree, HERE)
        return calls_of(lambda: jaxinterop.load(path, tree, shardings=shardings))

    work(20)
    assert work(400) < 6 * work(100)


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
