# SPDX-License-Identifier: Apache-2.0
"""What wide trees and Dags cost: work grows with the number of leaves, not with its square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
from pydag import jaxinterop

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


class Layer:
    """A module with an array and a number, which is configuration."""

    def __init__(self, weight: Any) -> None:
        self.weight, self.eps = weight, 1e-6


pydag.register_module(Layer)
