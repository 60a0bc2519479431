# SPDX-License-Identifier: Apache-2.0
"""Arguments that are arrays are variables of their own; in containers one array is one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
import pydag.jaxinterop as pj

X = jnp.float32(3.0)


def f(x: Any, y: Any) -> Any:
    return x**2 * y


@pytest.mark.parametrize("x", [X, np.full((), 3.0, np.float32)], ids=["JAX", "NumPy"])
def test_gradients(x: Any) -> None:
    """Two arguments that are one array have two partial derivatives."""
    assert pj.grad(f, argnums=(0, 1))(x, x) == (18.0, 9.0)
    assert pj.grad(f)(x, x) == 18.0
    assert pj.grad(f, argnums=1)(x, x) == 9.0
    assert pj.grad(f)(x, y=x) == 18.0
    assert pj.jacfwd(f, argnums=(0, 1))(x, x) == (18.0, 9.0)
    assert pj.jit(lambda x: pj.grad(f, argnums=(0, 1))(x, x))(x) == (18.0, 9.0)


def test_hessian() -> None:
    """The second derivatives are those of two variables, as JAX's."""
    assert pj.hessian(f, argnums=(0, 1))(X, X) == jax.hessian(f, argnums=(0, 1))(X, X)


def test_linear_maps() -> None:
    """`vjp`, `jvp` and `linearize` as `grad`."""
    one, zero = jnp.float32(1.0), jnp.float32(0.0)
    assert pj.vjp(f, X, X)[1](one) == (18.0, 9.0)
    assert pj.jvp(f, (X, X), (one, zero))[1] == 18.0
    assert pj.linearize(f, X, X)[1](zero, one) == 9.0


def test_vmap() -> None:
    """One is mapped, and the other isn't."""
    x = jnp.arange(3.0)
    found = pj.vmap(lambda a, b: a + b, in_axes=(0, None))(x, x)
    assert found.tolist() == [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]
    assert pj.vmap(lambda a, b: a + b)(x, x).tolist() == [0.0, 2.0, 4.0]


def test_scan() -> None:
    """One is carried, and the other scanned."""
    x = jnp.arange(3.0)
    carry, seen = pj.scan(lambda c, a: (c + a, a), x, x)
    assert (carry.tolist(), seen.tolist()) == ([3.0, 4.0, 5.0], [0.0, 1.0, 2.0])


def test_arrays_that_a_container_holds_too() -> None:
    """The argument is a variable of its own, as in every tuple."""
    g = lambda x, p: x**2 * p["w"]  # noqa: E731 (a name for what is called)
    found = pj.grad(g, argnums=(0, 1))(X, {"w": X})
    assert found == (18.0, {"w": 9.0})
    w = jnp.ones(2)
    assert float(pj.grad(g)(X, {"w": X})) == 18.0
    assert pj.vmap(g, in_axes=(0, None))(w, {"w": w}).tolist() == [[1, 1], [1, 1]]
    carry, _ = pj.scan(lambda c, x: ({"w": c["w"] + x}, x), {"w": w}, w)
    assert carry["w"].tolist() == [3, 3]


def test_donation_stays_an_error() -> None:
    """An array that is donated and kept is gone, whatever it is passed as."""
    x = jnp.ones(2)
    with pytest.raises(pydag.SharingError, match="donated"):
        pj.jit(lambda a, b: a + b, donate_argnums=0)(x, x)
