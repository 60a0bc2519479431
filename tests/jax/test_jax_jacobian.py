"""`jaxinterop.jacfwd`, `jacrev` and `hessian`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from small_models import tied_under

from pydag import jaxinterop

structure: Any = jax.tree.structure
BOTH = pytest.mark.parametrize("jacobian", [jaxinterop.jacfwd, jaxinterop.jacrev])


tied = tied_under("a", "b", lambda: jnp.array([1.0, 2.0]))


@BOTH
def test_of_a_shared_array(jacobian: Any) -> None:
    """One derivative for one array, at all its places, and one row for one result."""

    def f(p: Any) -> Any:
        out = p["a"] * p["b"]
        return {"x": out, "y": [out]}

    found = jacobian(f)(tied())
    assert found["x"] is found["y"][0]
    assert found["x"]["a"] is found["x"]["b"]
    assert found["x"]["a"].tolist() == [[2.0, 0.0], [0.0, 4.0]]


@BOTH
def test_aux_and_static_leaves(jacobian: Any) -> None:
    """What is passed on comes back; None stands for static leaves, on both sides."""

    def f(p: Any) -> Any:
        return {"out": p["w"] ** 2, "name": "out"}, [p["w"], p["name"]]

    found, aux = jacobian(f, has_aux=True)({"w": jnp.float32(3.0), "name": "net"})
    assert found == {"out": {"w": 6.0, "name": None}, "name": None}
    assert aux == [3.0, "net"]


def test_options() -> None:
    """`holomorphic` and `allow_int` mean what they do in JAX."""
    z = jnp.complex64(1 + 2j)
    for jacobian in (jaxinterop.jacfwd, jaxinterop.jacrev, jaxinterop.hessian):
        assert jacobian(lambda p: p[0] * p[1], holomorphic=True)([z, z]) is not None
    found = jaxinterop.jacrev(lambda p: p[0] * 2.0, allow_int=True)([1.0, 2])
    assert found[0] == 2.0
    assert jaxinterop.jacfwd(lambda p: p[0] * 2.0)([1.0, 2]) == [2.0, None]


def test_hessian() -> None:
    """Of a tied model: the second derivative of w^3 by w, wherever it stands."""

    def f(p: Any) -> Any:
        return jnp.sum(p["a"] ** 2 * p["b"])

    found = jaxinterop.hessian(f)(tied())
    assert found["a"] is found["b"]
    assert found["a"]["a"] is found["a"]["b"]
    assert found["a"]["b"].tolist() == [[6.0, 0.0], [0.0, 12.0]]
    untied = {"a": jnp.ones(1), "b": jnp.ones(1)}
    assert jaxinterop.hessian(f)(untied) == jax.hessian(f)(untied)
    value, aux = jaxinterop.hessian(lambda p: (f(p), [p["a"]]), has_aux=True)(tied())
    assert value["a"]["a"].tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert aux[0].tolist() == [1.0, 2.0]
    found = jaxinterop.hessian(lambda x, y: x * y**2, argnums=(0, 1))(2.0, 3.0)
    assert found == jax.hessian(lambda x, y: x * y**2, argnums=(0, 1))(2.0, 3.0)
