# SPDX-License-Identifier: Apache-2.0
"""`jax.Ref`: one object wherever it is; contents in `jit`; closed over everywhere else."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag.jaxinterop as pj

X = jnp.arange(1.0, 4.0)
Function = Callable[..., Any]


def count(tree: Any) -> None:
    """Counts a call in a ref."""
    tree["count"][...] = tree["count"][...] + 1


def refs() -> dict[str, Any]:
    """One ref at two places."""
    ref = jax.new_ref(jnp.int32(0))
    return {"count": ref, "same": ref}


WRAPPERS: dict[str, Callable[[Function, Any], Any]] = {
    "jit": lambda f, r: pj.jit(f)(r, X),
    "grad": lambda f, r: pj.grad(f, argnums=1)(r, X),
    "vjp": lambda f, r: pj.vjp(lambda x: f(r, x), X)[1](1.0),
    "jit of grad": lambda f, r: pj.jit(pj.grad(f, argnums=1))(r, X),
    "checkpoint": lambda f, r: pj.checkpoint(f)(r, X),
    "grad of checkpoint": lambda f, r: pj.grad(pj.checkpoint(f), argnums=1)(r, X),
    "jit of grad of checkpoint": lambda f, r: pj.jit(pj.grad(pj.checkpoint(f), argnums=1))(r, X),
    "cond": lambda f, r: pj.cond(True, f, lambda r, x: x.sum(), r, X),
    "switch": lambda f, r: pj.switch(0, [f, lambda r, x: x.sum()], r, X),
    "grad of cond": lambda f, r: pj.grad(
        lambda x: pj.cond(True, f, lambda r, x: x.sum(), r, x)
    )(X),
    "scan": lambda f, r: pj.scan(lambda c, x: (c, f(c, x)), r, X[:1]),
    "grad of scan": lambda f, r: pj.grad(
        lambda x: pj.scan(lambda c, x: (c, f(c, x)), r, x)[1].sum()
    )(X[:1]),
    "fori_loop": lambda f, r: pj.fori_loop(0, 1, lambda i, c: (c[0], f(*c) + c[1]), (r, X)),
    "while_loop": lambda f, r: pj.while_loop(
        lambda c: c[0]["count"][...] < 1, lambda c: (c[0], f(*c) + c[1]), (r, X)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_ref_is_one_object_and_written_once(name: str) -> None:
    """At however many places, in every wrapper, also where JAX runs the body twice."""
    tree, seen = refs(), []

    def fun(r: Any, x: Any) -> Any:
        seen.append(r["count"] is r["same"])
        count(r)
        return jnp.sin(x).sum()

    WRAPPERS[name](fun, tree)
    assert int(tree["count"][...]) == 1
    assert set(seen) == {True}


@pytest.mark.parametrize("name", ["jit", "checkpoint", "cond", "switch"])
def test_a_ref_comes_back_as_itself(name: str) -> None:
    """At each place of a result."""
    tree = refs()
    calls: dict[str, Function] = {
        "jit": lambda f: pj.jit(f)(tree),
        "checkpoint": lambda f: pj.checkpoint(f)(tree),
        "cond": lambda f: pj.cond(True, f, f, tree),
        "switch": lambda f: pj.switch(0, [f, f], tree),
    }
    out = calls[name](lambda t: {"a": t["same"], "b": [t["count"]]})
    assert out["a"] is tree["count"]
    assert out["b"][0] is tree["count"]


def test_a_ref_that_the_function_made_comes_out_of_jit_as_a_fresh_one() -> None:
    """One for the places that it has in the result."""

    @pj.jit
    def make(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[...] = ref[...] * 2
        return {"a": ref, "b": ref}

    one, two = make(X), make(X)
    assert one["a"] is one["b"]
    assert one["a"] is not two["a"]
    assert one["a"][...].tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("writes", [False, True])
def test_calls_of_jit_in_a_row(writes: bool) -> None:
    """Read or written, in turn with arrays at the same place, donated, with shardings."""
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])

    def step(tree: Any) -> Any:
        value = tree["x"][...] + 1
        if writes and not isinstance(tree["x"], jax.Array):
            tree["x"][...] = value
        return tree["x"], [value.sum()]

    for options in ({}, {"donate_argnums": 0}, {"out_shardings": (None, [device])}):
        made: dict[str, Any] = dict(options)
        function, ref = pj.jit(step, **made), jax.new_ref(jnp.zeros(2))
        for number in range(1, 4):
            same, (total,) = function({"x": ref})
            assert same is ref
            assert float(total) == (2.0 * number if writes else 2.0)
            assert float(function({"x": jnp.zeros(2)})[1][0]) == 2.0


def test_donation_says_nothing_about_refs() -> None:
    """A ref that is donated and kept is no conflict, since its content is donated anyway."""
    ref = jax.new_ref(jnp.zeros(2))

    def add(a: Any, b: Any) -> None:
        a["r"][...] = b["r"][...] + 1

    function = pj.jit(add, donate_argnums=0)
    for _ in range(2):
        function({"r": ref}, {"r": ref})
    assert ref[...].tolist() == [2.0, 2.0]


def test_jit_writes_nothing_if_the_function_raises() -> None:
    """The contents are as they were."""
    tree = refs()

    def fun(t: Any) -> None:
        count(t)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pj.jit(fun)(tree)
    assert int(tree["count"][...]) == 0


def stash(library: Any) -> Function:
    """A rule that writes its cotangent into a ref: JAX's own example."""
    fun: Any = library.custom_vjp(lambda ref, x: x)

    def backward(ref: Any, g: Any) -> Any:
        ref[...] = ref[...] + g
        return None, g

    fun.defvjp(lambda ref, x: (x, ref), backward)
    return lambda ref, x: fun(ref, x)


STAGED: dict[str, Function] = {
    "scan": lambda body, x: pj.scan(lambda c, t: (body(c) * t, None), x.sum(), x)[0],
    "cond": lambda body, x: pj.cond(x.sum() > 0, lambda x: body(x.sum()), lambda x: x.sum(), x),
    "fori_loop": lambda body, x: pj.fori_loop(0, 3, lambda i, c: body(c), x.sum()),
}


@pytest.mark.parametrize("library", [jax, pj], ids=["JAX's rule", "pydag's rule"])
@pytest.mark.parametrize("outer", ["grad", "jit of grad"])
@pytest.mark.parametrize("name", STAGED)
def test_a_rule_may_write_backward_beside_a_write_forward(
    name: str, outer: str, library: Any
) -> None:
    """In staged functions JAX writes each once: as often as they run."""
    if name == "cond" and jax.__version_info__ < (0, 12):
        pytest.skip("this JAX differentiates no branches with refs")
    counter, grads, rule = jax.new_ref(jnp.int32(0)), jax.new_ref(0.0), stash(library)

    def body(c: Any) -> Any:
        counter[...] = counter[...] + 1
        return rule(grads, jnp.sin(c))

    gradient = pj.grad(lambda x: STAGED[name](body, x))
    (pj.jit(gradient) if outer == "jit of grad" else gradient)(X)
    assert int(counter[...]) == (1 if name == "cond" else 3)
    assert float(grads[...]) != 0.0


@pytest.mark.parametrize("name", ["jit", "checkpoint", "cond", "scan"])
def test_a_ref_passed_and_closed_over(name: str) -> None:
    """Where it is passed as its content, the two would be two: JAX's error; else they are one."""
    tree = refs()

    def fun(r: Any, x: Any) -> Any:
        tree["count"][...] = r["same"][...] + 1
        return x.sum()

    if name == "jit":
        with pytest.raises(ValueError, match=r"args\[0\]\['count'\]"):
            WRAPPERS[name](fun, tree)
    elif name != "checkpoint":
        WRAPPERS[name](fun, tree)
        assert int(tree["same"][...]) == 1
