# SPDX-License-Identifier: Apache-2.0
"""What every derivative of `jaxinterop` claims: it is JAX's, a tied weight has one, they nest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from pydag import jaxinterop as pj

ONE = jnp.float32(1.0)

# The derivative of a function that gives a number, by its arguments, as a module has it.
BY: dict[str, Callable[..., Any]] = {
    "grad": lambda m, f, *by: m.grad(f, argnums=(*range(len(by)),))(*by),
    "value_and_grad": lambda m, f, *by: m.value_and_grad(f, argnums=(*range(len(by)),))(*by)[1],
    "jacfwd": lambda m, f, *by: m.jacfwd(f, argnums=(*range(len(by)),))(*by),
    "jacrev": lambda m, f, *by: m.jacrev(f, argnums=(*range(len(by)),))(*by),
    "vjp": lambda m, f, *by: m.vjp(f, *by)[1](ONE),
}
every = pytest.mark.parametrize("name", BY)


def square(p: Any) -> Any:
    """Cubic where both places are one."""
    return p["a"] ** 2 * p["b"]


@every
def test_untied_is_as_in_jax(name: str) -> None:
    """Where nothing is shared all is JAX's."""
    p, q = {"a": jnp.float32(2.0), "b": jnp.float32(5.0)}, [jnp.float32(3.0)]

    def f(p: Any, q: Any) -> Any:
        return square(p) * jnp.sin(q[0])

    assert BY[name](pj, f, p, q) == BY[name](jax, f, p, q)


@every
def test_an_array_in_two_arguments(name: str) -> None:
    """It has one derivative, the sum over its uses, which stands in both."""
    w = jnp.float32(3.0)
    p, q = BY[name](pj, lambda p, q: p["w"] * q[0] ** 2, {"w": w}, [w])
    assert p["w"] is q[0]
    assert float(p["w"]) == 27.0


@every
def test_in_each_other(name: str) -> None:
    """In `jit`, `vmap` and derivatives, pydag's and JAX's, a tied weight has one derivative."""

    def slope(w: Any) -> Any:
        (found,) = BY[name](pj, pj.jit(square), {"a": w, "b": w})
        assert found["a"] is found["b"]
        return found["a"]

    w = jnp.float32(2.0)
    for module in (pj, jax):
        m: Any = module
        assert float(m.jit(slope)(w)) == 12.0
        assert m.vmap(slope)(jnp.arange(3.0)).tolist() == [0.0, 3.0, 12.0]
        assert float(m.jit(m.grad(m.jit(slope)))(w)) == 12.0
        assert float(m.jvp(slope, (w,), (ONE,))[1]) == 12.0
        assert float(m.jacfwd(slope)(w)) == 12.0
        assert jax.vmap(m.linearize(slope, w)[1])(jnp.arange(3.0)).tolist() == [0.0, 12.0, 24.0]


@every
def test_an_argument_without_leaves(name: str) -> None:
    """It has a derivative of its own form."""
    assert BY[name](pj, lambda p: 2 * ONE, {"none": None}) == ({"none": None},)
