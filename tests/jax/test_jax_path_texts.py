# SPDX-License-Identifier: Apache-2.0
"""Errors name leaves in the words of the call, however many there are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from pydag import jaxinterop as pj


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
