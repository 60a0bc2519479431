# SPDX-License-Identifier: Apache-2.0
"""Errors name leaves in the words of the call, however many there are."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from pydag import jaxinterop as pj


def test_one_axis_for_everything() -> None:
    """`vmap` over one axis, by position and by keyword; an error names the leaf all the same."""
    w = jnp.ones((2, 3))

    def total(p: Any, q: Any = None) -> Any:
        return jnp.sum(p["a"] * p["b"]) + (0 if q is None else q.sum())

    assert pj.vmap(total, in_axes=1)({"a": w, "b": w}).tolist() == [2.0, 2.0, 2.0]
    assert pj.vmap(total)({"a": w, "b": w}, q=jnp.ones((2, 4))).tolist() == [7.0, 7.0]
    assert pj.vmap(total, in_axes=1)({"a": w, "b": w}, q=jnp.ones((3, 4))).tolist() == [6.0] * 3
    with pytest.raises(ValueError, match=r"args\[0\]\['a'\] over axis 2, .* shape is \(2, 3\)"):
        pj.vmap(total, in_axes=2)({"a": w, "b": w})


def test_names_in_a_jaxpr_are_those_of_the_call() -> None:
    """Also where the same structure came by another name before."""
    tree = {"a": jnp.ones(2)}
    pj.scan(lambda c, _: (c, None), tree, length=1)
    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        pj.jit(lambda t: 1 if t["a"][0] > 0 else 2)(tree)
    assert "args[0]['a']" in str(caught.value)


def test_a_function_goes_with_the_structure_that_it_was_called_with() -> None:
    """The structure is kept by the function, which may be a part of it: both are collected."""

    def make() -> Any:
        def call(model: Any) -> Any:
            return model[0]

        pj.vmap(call)((jnp.ones(2), call))
        return weakref.ref(call)

    gone = make()
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("count", [1, 8, 9, 40])
@pytest.mark.parametrize("donated", [(), (1,)])
def test_errors_name_a_leaf_however_many_there_are(count: int, donated: tuple[int, ...]) -> None:
    """Few leaves are passed to JAX one by one, many as one argument: errors say the same."""
    model = {i: jnp.float32(i) for i in range(count)}

    def f(model: Any, _other: Any) -> Any:
        return 1 if model[count - 1] > 0 else 2

    with pytest.raises(jax.errors.TracerBoolConversionError) as raised:
        pj.jit(f, donate_argnums=donated)(model, jnp.ones(2))
    assert f"args[0][{count - 1}]" in str(raised.value)


@pytest.mark.parametrize("count", [7, 8, 9, 40])
def test_a_call_gives_each_leaf_its_own_place_however_many_there_are(count: int) -> None:
    """Beside the number from which on the leaves are one argument; with a shared leaf, too."""
    model = {i: jnp.float32(i) for i in range(count)} | {"again": None}
    model["again"] = model[0]
    jitted = pj.jit(lambda model: [model, model["again"] is model[0]])
    for _ in range(3):
        same, is_shared = jitted(model)
        assert [float(same[i]) for i in range(count)] == [float(i) for i in range(count)]
        assert same["again"] is same[0]
        assert bool(is_shared)
