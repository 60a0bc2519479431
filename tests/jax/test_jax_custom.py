# SPDX-License-Identifier: Apache-2.0
"""`custom_jvp` and `custom_vjp`: identity spans each argument; JAX adds up. `checkpoint`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax_models import number, tied_under

import pydag
from pydag import jaxinterop


def product_jvp() -> Any:
    """The product of the two places, with its own derivative, ten times too large."""

    @jaxinterop.custom_jvp
    def f(p: Any) -> Any:
        assert p["a"] is p["b"]
        return {"out": p["a"] * p["b"], "name": p["name"]}

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (p,), (t,) = primals, tangents
        assert p["a"] is p["b"]
        assert t["a"] is t["b"]
        assert t["name"] is None
        slope = 10 * (t["a"] * p["b"] + p["a"] * t["b"])
        return f(p), {"out": slope, "name": None}

    return f


def product_vjp() -> Any:
    """The same, backward."""

    @jaxinterop.custom_vjp
    def f(p: Any) -> Any:
        assert p["a"] is p["b"]
        return {"out": p["a"] * p["b"], "name": p["name"]}

    def forward(p: Any) -> Any:
        assert p["a"] is p["b"]
        return f(p), {"saved": p, "why": "because"}

    def backward(saved: Any, cotangent: Any) -> Any:
        p = saved["saved"]
        assert p["a"] is p["b"]
        assert saved["why"] == "because"
        assert cotangent["name"] is None
        both = 10 * cotangent["out"] * (p["a"] + p["b"])
        return ({"a": both, "b": both, "name": None},)

    f.defvjp(forward, backward)
    return f


tied = tied_under("a", "b", number, name="net")


@pytest.mark.parametrize("make", [product_jvp, product_vjp])
def test_inside_one_argument(make: Any) -> None:
    """What is one object is one in the rules too, and has one derivative."""
    f = make()
    assert f(tied()) == {"out": 9.0, "name": "net"}
    gradient = jaxinterop.grad(lambda p: f(p)["out"])(tied())
    assert gradient["a"] is gradient["b"]
    assert (float(gradient["a"]), gradient["name"]) == (60.0, None)
    assert float(jax.grad(lambda w: f({"a": w, "b": w, "name": "net"})["out"])(3.0)) == 60.0


def test_between_arguments() -> None:
    """`f(w, w)` is two inputs to its rule, and the gradient by w is the sum: nothing is lost."""

    def check(f: Any) -> None:
        w = jnp.float32(3.0)
        assert float(jaxinterop.grad(lambda w: f(w, w))(w)) == 3.0 + 5.0 * 3.0
        gradient = jaxinterop.grad(lambda p: f(p["a"], p["b"]))({"a": w, "b": w})
        assert gradient["a"] is gradient["b"]
        assert float(gradient["a"]) == 18.0
        x, y = jaxinterop.grad(f, argnums=(0, 1))(w, w)
        assert (float(x), float(y)) == (3.0, 15.0)

    @jaxinterop.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defjvp(
        lambda primals, tangents: (
            f(*primals),
            tangents[0] * primals[1] + 5 * tangents[1] * primals[0],
        )
    )
    check(f)

    @jaxinterop.custom_jvp
    def g(x: Any, y: Any) -> Any:
        return x * y

    g.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: 5 * t * x)
    check(g)

    @jaxinterop.custom_vjp
    def h(x: Any, y: Any) -> Any:
        return x * y

    h.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, ct: (ct * saved[1], 5 * ct * saved[0]))
    check(h)


def test_two_halves_of_one_cotangent() -> None:
    """A rule that gives one object two cotangents is an error with both paths, never a guess."""

    @jaxinterop.custom_vjp
    def f(p: Any) -> Any:
        return p["a"] * p["b"]

    def backward(p: Any, cotangent: Any) -> Any:
        return ({"a": cotangent * p["b"], "b": cotangent * p["a"]},)

    f.defvjp(lambda p: (f(p), p), backward)
    assert jaxinterop.grad(f)({"a": 2.0, "b": 3.0}) == {"a": 3.0, "b": 2.0}
    w = jnp.float32(3.0)
    with pytest.raises(pydag.SharingError, match=r"\['a'\] and tree\['b'\] are one obj") as caught:
        jaxinterop.grad(f)({"a": w, "b": w})
    assert any("the cotangent of argument 0 of f" in n for n in caught.value.__notes__)


def test_arguments_that_are_not_differentiated() -> None:
    """By number and by name; they reach the rules as they are, and may be anything."""

    def check(f: Any) -> None:
        p = {"a": jnp.float32(3.0)}
        assert float(f(jnp.sin, p, [2.0])) == pytest.approx(2 * float(jnp.sin(3.0)))
        assert float(f(jnp.sin, p=p, scale=[2.0])) == float(f(jnp.sin, p, [2.0]))
        assert jaxinterop.grad(lambda p: f(jnp.sin, p, [2.0]))(p) == {"a": 20.0}

    @jaxinterop.custom_vjp
    def plain(function: Any, p: Any, scale: Any) -> Any:
        return function(p["a"]) * scale[0]

    for options in (
        {"nondiff_argnums": (0, 2)},
        {"nondiff_argnums": (0,), "nondiff_argnames": ("scale",)},
    ):
        f = jaxinterop.custom_vjp(plain.fun, **options)
        f.defvjp(
            lambda function, p, scale: (function(p["a"]) * scale[0], p),
            lambda function, scale, p, ct: ({"a": 10 * ct * scale[0]},),
        )
        check(f)
        g = jaxinterop.custom_jvp(plain.fun, **options)

        def rule(function: Any, scale: Any, primals: Any, tangents: Any, g: Any = g) -> Any:
            return g(function, *primals, scale), 10 * scale[0] * tangents[0]["a"]

        g.defjvp(rule)
        check(g)


unnamed = tied_under("a", "b", number)


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
        )(unnamed())
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
            assert again((2,), unnamed(), n=3).tolist() == [27.0, 27.0]
    wrong: Any = 1
    with pytest.raises(TypeError):
        jaxinterop.checkpoint(product, prevent_cse=wrong)(unnamed())


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="JAX takes no tree of them")
def test_prevent_cse_as_a_prefix() -> None:
    """One answer for one object."""
    p = unnamed()
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
