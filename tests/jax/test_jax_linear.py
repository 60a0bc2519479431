"""`jaxinterop.vjp`, `jvp` and `linearize`: cotangents and tangents of DAGs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import number, tied_under

import pydag
from pydag import jaxinterop

tied = tied_under("a", "b", number, name="net")


def product(params: Any) -> Any:
    """The product of the two places, and its half, at three places."""
    assert params["a"] is params["b"]
    out = params["a"] * params["b"]
    return {"x": out, "y": [out], "z": out / 2, "name": params["name"]}


ONE, TWO = jnp.float32(1.0), jnp.float32(2.0)
COTANGENT = {"x": ONE, "y": [ONE], "z": TWO, "name": None}
TANGENT = {"a": ONE, "b": ONE, "name": None}


def test_vjp() -> None:
    """The cotangent of a shared array is one, and the sum over its uses."""
    value, pullback = jaxinterop.vjp(product, tied())
    assert value["x"] is value["y"][0]
    assert float(value["x"]) == 9.0
    (cotangent,) = pullback(COTANGENT)
    assert cotangent["a"] is cotangent["b"]
    assert (float(cotangent["a"]), cotangent["name"]) == (12.0, None)


def test_aux() -> None:
    """What is passed on comes last."""

    def f(params: Any) -> Any:
        return params["a"] * params["b"], [params["a"], params["b"]]

    value, pullback, aux = jaxinterop.vjp(f, tied(), has_aux=True)
    assert float(value) == 9.0
    assert aux[0] is aux[1]
    assert float(pullback(ONE)[0]["a"]) == 6.0
    value, tangent, aux = jaxinterop.jvp(f, (tied(),), (TANGENT,), has_aux=True)
    assert (float(value), float(tangent), float(aux[0])) == (9.0, 6.0, 3.0)
    value, pushforward, aux = jaxinterop.linearize(f, tied(), has_aux=True)
    assert (float(value), float(pushforward(TANGENT)), float(aux[1])) == (9.0, 6.0, 3.0)


def test_jvp() -> None:
    """The tangent of the result has its form; None stands for static leaves."""
    value, tangent = jaxinterop.jvp(product, (tied(),), (TANGENT,))
    assert value["x"] is value["y"][0]
    assert tangent["x"] is tangent["y"][0]
    assert (float(tangent["x"]), float(tangent["z"]), tangent["name"]) == (6.0, 3.0, None)


def test_linearize() -> None:
    """As `jvp`, for many tangents."""
    value, pushforward = jaxinterop.linearize(product, tied())
    assert float(value["z"]) == 4.5
    for by in (1.0, 2.0):
        scaled = {name: None if t is None else t * by for name, t in TANGENT.items()}
        scaled["b"] = scaled["a"]
        tangent = pushforward(scaled)
        assert tangent["x"] is tangent["y"][0]
        assert float(tangent["x"]) == 6.0 * by


def test_the_pullback_is_a_pytree() -> None:
    """A compiled function may return it; plain JAX may map over what it keeps."""
    for jit in (jaxinterop.jit, jax.jit):
        value, pullback = jit(lambda w: jaxinterop.vjp(lambda p: p["a"] * p["b"], w))(
            {"a": jnp.float32(3.0), "b": jnp.float32(5.0)}
        )
        assert float(value) == 15.0
        assert pullback(ONE) == ({"a": 5.0, "b": 3.0},)
    _, pushforward = jax.jit(lambda w: jaxinterop.linearize(lambda p: p[0] * p[1], [w, w]))(3.0)
    assert float(pushforward([ONE, ONE])) == 6.0
    assert len(jax.tree.leaves(pushforward)) > 0


def test_tangents_that_differ_where_one_object_stood() -> None:
    """`SharingError` with both paths, and a note that says which tree it is."""
    halves = {"a": jnp.float32(1.0), "b": jnp.float32(2.0), "name": None}
    _, pushforward = jaxinterop.linearize(product, tied())
    for call in (
        lambda: jaxinterop.jvp(product, (tied(),), (halves,)),
        lambda: pushforward(halves),
    ):
        with pytest.raises(
            pydag.SharingError, match=r"\['a'\] and tree\[0\]\['b'\] are one"
        ) as caught:
            call()
        assert any("tuple of the tangents" in note for note in caught.value.__notes__)
    _, pullback = jaxinterop.vjp(product, tied())
    with pytest.raises(
        pydag.SharingError, match=r"tree\['x'\] and tree\['y'\]\[0\] are one"
    ) as caught:
        pullback({**COTANGENT, "x": jnp.float32(0.0)})
    assert any("the cotangent" in note for note in caught.value.__notes__)
    with pytest.raises(ValueError, match="missing key"):
        pullback({"x": ONE})
    with pytest.raises(TypeError, match="takes one cotangent"):
        pullback(ONE, ONE)
    with pytest.raises(TypeError, match="primals of jvp must be a tuple or a list"):
        jaxinterop.jvp(product, TANGENT, (ONE,))  # type: ignore[call-overload]  # the point of the test


def test_tangents_may_share_more() -> None:
    """One tangent for two primals is fine; so are equal numbers for one."""
    _, tangent = jaxinterop.jvp(lambda p: p[0] * p[1], ([2.0, 3.0],), ([ONE, ONE],))
    assert float(tangent) == 5.0
    w = jnp.float32(3.0)
    _, tangent = jaxinterop.jvp(lambda p: p[0] * p[1], ([w, w],), ([1.0, 1.0],))
    assert float(tangent) == 6.0


def test_what_has_no_derivative() -> None:
    """Integers and keys may be arguments, as in JAX: None stands for them, or JAX's float0."""

    def f(x: Any, i: Any, key: Any) -> Any:
        return x * i * jax.random.bits(key).astype(float)

    key, nothing = jax.random.key(0), np.zeros((), jax.dtypes.float0)
    slope = 3 * float(jax.random.bits(key))
    assert jaxinterop.vjp(f, 2.0, 3, key)[1](1.0) == (slope, None, None)
    assert jaxinterop.jvp(f, (2.0, 3, key), (1.0, nothing, None))[1] == slope
    assert jaxinterop.linearize(f, 2.0, 3, key)[1](1.0, None, None) == slope
    assert jaxinterop.vjp(lambda i: 2 * i, 3)[1](nothing) == (None,)
    assert jaxinterop.jvp(lambda i: 2 * i, (3,), (None,)) == (6, None)
    assert jaxinterop.linearize(lambda i: 2.0 * i, 3)[1](None) == 0.0
