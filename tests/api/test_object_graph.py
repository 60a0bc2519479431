"""Graphs of objects under plain JAX: objects that refer to one another, derefed and by index."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree
import pytest

import pydag

pytest.importorskip("jax")

import jax
import jax.numpy as jnp


@pydag.register_fields
class Slope:
    """A number that many equations refer to."""

    def __init__(self, value: Any) -> None:
        self.value = value


@pydag.register_fields
class Equation:
    """`slope * x = right_side`."""

    def __init__(self, right_side: Any, slope: Slope, x: Any) -> None:
        self.right_side, self.slope, self.x = right_side, slope, x

    def error(self) -> Any:
        """The squared difference of the sides."""
        return (self.right_side - self.slope.value * self.x) ** 2

    def error_by_branch(self) -> Any:
        """The same, through a method of this object as either branch of a `cond`."""
        return jax.lax.cond(True, self.error, self.error)


def equations(slope: Any) -> list[Equation]:
    """Two equations over one slope."""
    shared, one = Slope(slope), jnp.ones_like(slope)
    return [Equation(3.0 * one, shared, 1.0 * one), Equation(8.0 * one, shared, 3.0 * one)]


def test_deref_takes_the_graph_through_plain_vmap() -> None:
    """A derefed graph is an ordinary pytree, so `vmap` needs no `Dag`; methods run as ever."""

    def error(derefed: Any) -> Any:
        system = pydag.reref(derefed)
        assert system[0].slope is system[1].slope
        return sum(equation.error_by_branch() for equation in system)

    derefed = pydag.deref(equations(jnp.array([1.0, 2.0, 3.0])))
    accessors, leaves, _ = optree.tree_flatten_with_accessor(derefed)
    for accessor, leaf in zip(accessors, leaves, strict=True):
        assert accessor(derefed) is eval(accessor.codify("derefed")) is leaf
    errors = jax.vmap(error)(derefed)
    assert errors.tolist() == [29.0, 5.0, 1.0]


def tied_arrays() -> dict[str, Any]:
    """Two arrays of equal content: one stands at two places, and so does the other."""
    first, second = np.array(0.0), np.array(0.0)
    return {"x": [first, first, second], "y": second}


def test_reref_and_deref_inside_plain_jit() -> None:
    """Arrays are passed once and tied inside; another sharing is another trace."""
    traces: list[bool] = []

    @jax.jit
    def add_one(derefed: Any) -> Any:
        tree = pydag.reref(derefed)
        traces.append(tree["x"][0] is tree["x"][1] and tree["x"][2] is tree["y"])
        assert tree["x"][0] is not tree["y"]
        return pydag.deref(pydag.dag_map(lambda x: x + 1.0, tree))

    assert len(jax.tree.leaves(tied_arrays())) == 4
    assert len(jax.tree.leaves(pydag.deref(tied_arrays()))) == 2
    for tree in (tied_arrays(), tied_arrays(), {"x": [*map(np.array, (0.0, 0.0, 0.0))], "y": 0.0}):
        out = pydag.reref(add_one(pydag.deref(tree)))
        assert (out["x"][0] is out["x"][1] and out["x"][2] is out["y"]) == traces[-1]
        assert out["x"][0] is not out["y"]
        assert [float(out["x"][0]), float(out["y"])] == [1.0, 1.0]
    assert traces == [True, False]
