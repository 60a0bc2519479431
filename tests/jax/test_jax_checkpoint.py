# SPDX-License-Identifier: Apache-2.0
"""`jaxinterop.checkpoint`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from small_models import number, tied_under

import pydag
from pydag import jaxinterop

tied = tied_under("a", "b", number)


def product(p: Any) -> Any:
    """The sine of the product of the two places."""
    assert p["a"] is p["b"]
    out = jnp.sin(p["a"] * p["b"])
    return {"x": out, "y": [out], "name": "out"}


def test_checkpoint_options() -> None:
    """`policy` and `prevent_cse` reach JAX; static arguments are not opened."""
    policies: Any = jax.checkpoint_policies
    text = str(
        jaxinterop.make_jaxpr(
            jaxinterop.checkpoint(product, policy=policies.everything_saveable, prevent_cse=False)
        )(tied())
    )
    assert "everything_saveable" in text
    assert "prevent_cse=False" in text

    def scaled(shape: Any, p: Any, *, n: int) -> Any:
        assert shape == (2,)
        assert type(n) is int
        return jnp.broadcast_to(p["a"] * p["b"] * n, shape)

    for options in ({"static_argnums": 0, "static_argnames": "n"}, {"static_argnums": (0,)}):
        again = jaxinterop.checkpoint(scaled, **options)
        if "static_argnames" in options:
            assert again((2,), tied(), n=3).tolist() == [27.0, 27.0]
    wrong: Any = 1
    with pytest.raises(TypeError):
        jaxinterop.checkpoint(product, prevent_cse=wrong)(tied())


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="JAX takes no tree of them")
def test_prevent_cse_as_a_prefix() -> None:
    """One answer for one object."""
    p = tied()
    again = jaxinterop.checkpoint(product, prevent_cse=({"a": True, "b": True},))
    assert again(p)["name"] == "out"
    with pytest.raises(pydag.SharingError, match=r"args\[0\]\['b'\], the same object, is given Fa"):
        jaxinterop.checkpoint(product, prevent_cse=({"a": True, "b": False},))(p)


def test_a_static_argument_that_cannot_be_hashed() -> None:
    """Such as a dict, which may be another one at each call; by position and by name."""

    def f(x: Any, config: Any, *, more: Any = None) -> Any:
        return x * config["scale"] + (more or [0.0])[0]

    config = {"scale": 2.0}
    again = jaxinterop.checkpoint(f, static_argnums=1, static_argnames="more")
    assert float(jaxinterop.grad(lambda x: again(x, config))(1.0)) == 2.0
    config["scale"] = 3.0
    assert float(jaxinterop.grad(lambda x: again(x, config, more=[1.0]))(1.0)) == 3.0
    assert float(jaxinterop.jit(lambda x: again(x, config, more=[1.0]))(1.0)) == 4.0
