"""`jaxinterop.associative_scan` and `map`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from small_models import tied_under

import pydag
from pydag import jaxinterop

tied = tied_under("a", "b", lambda: jnp.arange(4.0), name="net")


def add(x: Any, y: Any) -> Any:
    """The sum of two trees, shared as they are."""
    assert x["a"] is x["b"]
    assert y["a"] is y["b"]
    return pydag.dag_map(lambda p, q: p if isinstance(p, str) else p + q, x, y)


def test_associative_scan() -> None:
    """Both arguments of the function, and the result, are shared as the elements are."""
    out = jaxinterop.associative_scan(add, tied())
    assert out["a"] is out["b"]
    assert (out["a"].tolist(), out["name"]) == ([0.0, 1.0, 3.0, 6.0], "net")
    out = jaxinterop.associative_scan(add, tied(), reverse=True)
    assert out["a"].tolist() == [6.0, 6.0, 5.0, 3.0]
    w = jnp.ones((2, 3))
    rows = jaxinterop.associative_scan(lambda x, y: [x[0] + y[0]] * 2, [w, w], axis=1)
    assert rows[0].tolist() == [[1.0, 2.0, 3.0]] * 2


def test_a_function_that_changes_structure() -> None:
    """`TypeError`, of which the text says what was given and what was returned."""
    with pytest.raises(TypeError, match="must be structured alike"):
        jaxinterop.associative_scan(lambda x, y: [x], tied())


def test_map() -> None:
    """The function sees slices that are shared as the whole is."""

    def f(tree: Any) -> Any:
        assert tree["a"] is tree["b"]
        assert tree["a"].shape == ()
        out = tree["a"] * tree["b"]
        return {"x": out, "y": out, "name": tree["name"]}

    for batch_size in (None, 2, 3):
        out = jaxinterop.map(f, tied(), batch_size=batch_size)
        assert out["x"] is out["y"]
        assert (out["x"].tolist(), out["name"]) == ([0.0, 1.0, 4.0, 9.0], "net")
    assert jaxinterop.map(lambda x: x + 1, jnp.arange(2.0)).tolist() == [1.0, 2.0]


def test_under_transformations() -> None:
    """`jit`, `grad` and `vmap` of both."""

    def f(w: Any) -> Any:
        tree = {"a": w, "b": w, "name": "net"}
        summed = jaxinterop.associative_scan(add, tree)
        return jnp.sum(jaxinterop.map(lambda t: t["a"] * t["b"], summed))

    w = jnp.ones(3)
    assert float(jaxinterop.jit(f)(w)) == 14.0
    assert jaxinterop.grad(f)(w).tolist() == [12.0, 10.0, 6.0]
    assert jaxinterop.vmap(f)(jnp.ones((2, 3))).tolist() == [14.0, 14.0]
