# SPDX-License-Identifier: Apache-2.0
"""`jaxinterop.keep_sharing`: what has no wrapper is wrapped by its user."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from small_models import tied_under

import pydag
from pydag import jaxinterop

tied = tied_under("a", "b", lambda: jnp.arange(3.0), name="net")


def double(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    assert tree["a"] is tree["b"]
    return pydag.dag_map(lambda x: x if isinstance(x, str) else 2 * x, tree)


def assert_doubled(tree: Any) -> None:
    """Asserts that the tree is what `double` makes."""
    assert tree["a"] is tree["b"]
    assert (tree["a"].tolist(), tree["name"]) == ([0.0, 2.0, 4.0], "net")


@pytest.mark.parametrize("name", ["jit", "vmap", "checkpoint", "named_call"])
def test_a_transformation(name: str) -> None:
    """A function that takes a function and gives one."""
    transformation = getattr(jax, name)
    assert_doubled(jaxinterop.keep_sharing(transformation)(double)(tied()))


def test_options() -> None:
    """They are handed on; where they speak of arguments, they mean all of them at once."""
    vmap = jaxinterop.keep_sharing(jax.vmap)
    w = jnp.ones((2, 3))
    out = vmap(lambda x, *, y: x + y[0], in_axes=1, out_axes=1)(w, y=[w])
    assert out.shape == (2, 3)


def test_a_function_of_a_function_and_trees() -> None:
    """One that isn't a transformation is made one by `functools.partial`."""
    mapped = jaxinterop.keep_sharing(lambda f: functools.partial(jax.lax.map, f))
    assert_doubled(mapped(double)(tied()))


def test_what_has_the_form_of_the_arguments() -> None:
    """It comes as a pair of positional and keyword arguments."""
    args, kwargs = jaxinterop.keep_sharing(jax.grad)(lambda p, q: p["a"] * p["b"] * q)(
        {"a": jnp.float32(2.0), "b": jnp.float32(3.0)}, q=5.0
    )
    assert args == ({"a": 15.0, "b": 10.0},)
    assert kwargs == {"q": 6.0}


def test_identity_and_namespace() -> None:
    """They are said where the transformation is wrapped."""
    jit = jaxinterop.keep_sharing(jax.jit, identity="nodes")
    w = jnp.ones(2)

    def apart(x: Any, y: Any) -> Any:
        assert x is not y
        return x + y

    assert jit(apart)(w, w).tolist() == [2.0, 2.0]
