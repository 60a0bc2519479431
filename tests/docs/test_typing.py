# SPDX-License-Identifier: Apache-2.0
"""What a type checker knows: mypy reads this file, and the tests see that it is true at run time.

A line with `type: ignore` is a mistake that mypy must find: it complains of waivers without need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_type

import pytest

import pydag

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from pydag import jaxinterop as pj


@pydag.register_fields
@dataclass
class Model:
    first: jax.Array
    second: jax.Array


def model() -> Model:
    """A tied one."""
    w = jnp.ones(2)
    return Model(w, w)


def loss(model: Model, scale: float = 1.0) -> jax.Array:
    """The parameters of this function are what a wrapper of it takes."""
    return scale * jnp.sum(model.first * model.second)


def test_the_core() -> None:
    """A copy has the type of the original; a registered class stays the class that it is."""
    copied = assert_type(pydag.dag_copy(model()), Model)
    assert type(copied) is Model
    leaves, spec = assert_type(pydag.dag_flatten(copied), tuple[list[Any], pydag.PyDagSpec])
    assert_type(spec.shared, list[pydag.SharedObject])
    assert len(leaves) == 1
    assert_type(Model(jnp.ones(1), jnp.ones(1)), Model)
    with pytest.raises(AttributeError):
        pydag.no_such_name  # type: ignore[attr-defined]  # noqa: B018  # the point
    with pytest.raises(ValueError, match="identity"):
        pydag.dag_leaves([], identity="leaves")  # type: ignore[call-overload]  # the point


def test_a_compiled_function_has_the_types_of_the_function() -> None:
    """`jit` keeps parameters and result, as a function and as a decorator."""
    fast = pj.jit(loss, donate_argnums=())
    assert float(assert_type(fast(model(), scale=2.0), jax.Array)) == 4.0
    assert assert_type(fast.lower(model()).as_text(), Any)

    @pj.jit(inline=True)
    def halved(model: Model) -> Model:
        return pydag.dag_copy(model)

    assert type(assert_type(halved(model()), Model)) is Model
    with pytest.raises(TypeError):
        fast(model(), 1.0, 2.0)  # type: ignore[call-arg]  # the point
    with pytest.raises(TypeError):
        fast(model(), scael=2.0)  # type: ignore[call-arg]  # the point
    with pytest.raises(TypeError):
        pj.jit(loss, donate=0)  # type: ignore[call-overload]  # the point


def test_a_compiled_method() -> None:
    """`jit` in a class body makes a method, with the result that it has."""

    @pydag.register_fields
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

        @pj.jit
        def of(self, x: jax.Array) -> jax.Array:
            return self.by * x

        @partial(pj.jit, static_argnums=1)
        def power(self, n: int) -> Any:
            return self.by**n

    assert float(assert_type(Scale(2.0).of(jnp.float32(3.0)), jax.Array)) == 6.0
    assert float(Scale(2.0).power(3)) == 8.0


def test_wrappers_keep_the_parameters_of_the_function() -> None:
    """`grad` and its kin take what the function takes; `vmap` and `checkpoint` return it, too."""
    value, gradient = assert_type(pj.value_and_grad(loss)(model(), 3.0), tuple[jax.Array, Model])
    assert (float(value), float(gradient.first[0])) == (6.0, 6.0)
    assert_type(pj.grad(loss)(model(), scale=3.0), Model)
    assert_type(pj.checkpoint(loss)(model()), jax.Array)
    assert_type(pj.hessian(loss)(model()), Any)

    def double(x: jax.Array) -> jax.Array:
        return 2 * x

    mapped: Callable[[jax.Array], jax.Array] = pj.vmap(double)
    assert assert_type(mapped(jnp.ones(2)), jax.Array).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError):
        pj.grad(loss)(model(), scael=3.0)  # type: ignore[call-arg]  # the point


def test_results_have_the_types_of_the_bodies() -> None:
    """What `cond`, the loops, `vjp` and `jvp` return is what their functions return."""
    x = jnp.float32(1.0)

    def add(carry: jax.Array, _: Any) -> tuple[jax.Array, list[jax.Array]]:
        return carry + 1, [carry]

    def negative(x: jax.Array) -> jax.Array:
        return -x

    carry, seen = assert_type(pj.scan(add, x, length=3), tuple[jax.Array, list[jax.Array]])
    assert (float(carry), seen[0].tolist()) == (4.0, [1.0, 2.0, 3.0])
    assert float(assert_type(pj.cond(True, negative, negative, x), jax.Array)) == -1.0
    assert float(assert_type(pj.switch(0, [negative], x), jax.Array)) == -1.0
    assert_type(pj.fori_loop(0, 2, lambda i, x: negative(x), x), jax.Array)
    assert_type(pj.associative_scan(jnp.add, jnp.ones(2)), jax.Array)
    value, pullback = pj.vjp(negative, x)
    assert_type(value, jax.Array)
    assert float(pullback(x)[0]) == -1.0
    assert_type(pj.jvp(negative, (x,), (x,)), tuple[jax.Array, jax.Array])
    assert_type(pj.vjp(lambda x: (x, 0), x, has_aux=True), tuple[Any, ...])


def test_functions_with_derivatives_of_their_own() -> None:
    """`custom_jvp` and `custom_vjp` are called as the function is."""

    @pj.custom_jvp
    def square(x: jax.Array) -> jax.Array:
        return x**2

    @square.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return square(*primals), 2 * primals[0] * tangents[0]

    assert_type(square(jnp.float32(3.0)), jax.Array)
    with pytest.raises(TypeError):
        square(y=1.0)  # type: ignore[call-arg]  # the point
