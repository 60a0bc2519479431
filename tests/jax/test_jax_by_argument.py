# SPDX-License-Identifier: Apache-2.0
"""What a callable holds; an object of another argument is another one; bare arrays, too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
import pydag.jaxinterop as pj


class Layer(pj.Module):
    """A module that checks what it is built of."""

    def __init__(self, w: Any) -> None:
        self.w, self.name = jnp.asarray(w), "layer"

    def __call__(self, x: Any) -> Any:
        return self.w * x


class Net(pj.Module):
    """A network in which one layer is used twice."""

    def __init__(self, w: float = 3.0) -> None:
        self.one = self.two = Layer(w)
        self.steps = jnp.int32(4)


def value(net: Any) -> Any:
    """Three times a square of the tied weight."""
    assert net.one is net.two
    return net.one(1.0) * net.two(3.0)


def loss(net: Any, target: Any) -> Any:
    """A distance, which has a derivative only if the target is constant."""
    assert net is not target
    assert net.one is not target.one
    assert net.one.w is not target.one.w
    return (value(net) - value(target) + 1) ** 2


NET = Net()
WANTED = 2 * 6 * 3.0


@pytest.mark.parametrize("is_jitted", [False, True])
@pytest.mark.parametrize("how", ["args", "kwargs", "inside", "other way"])
def test_a_derivative_is_by_its_argument(how: str, is_jitted: bool) -> None:
    """After `target = params` the target is constant, and ties inside of each argument hold."""
    calls: dict[str, Any] = {
        "args": lambda net: pj.grad(loss)(net, net),
        "kwargs": lambda net: pj.grad(loss)(net, target=net),
        "inside": lambda net: pj.grad(lambda n, others: loss(n, others[0]["x"]))(net, [{"x": net}]),
        "other way": lambda net: pj.grad(lambda t, n: loss(n, t), argnums=1)(net, net),
    }
    call = pj.jit(calls[how]) if is_jitted else calls[how]
    gradient = call(NET)
    assert float(gradient.one.w) == WANTED
    assert gradient.one is gradient.two
    assert gradient.steps is None


def test_vmap_has_axes_by_argument() -> None:
    """An object is mapped in one argument and not in another; where axes agree it is one."""
    p = {"w": jnp.arange(3.0)}

    def f(one: Any, other: Any, third: Any) -> Any:
        assert one is third
        assert one is not other
        return jnp.sum(other["w"]) * one["w"]

    for mapped in (pj.vmap(f, in_axes=(0, None, 0)), pj.jit(pj.vmap(f, in_axes=(0, None, 0)))):
        assert mapped(p, p, p).tolist() == [0, 3, 6]
        assert mapped(p, p, p).tolist() == [0, 3, 6]
    same = Layer(jnp.arange(3.0))
    assert pj.vmap(lambda a, b: a.w * jnp.sum(b.w), (0, None))(same, same).tolist() == [0, 3, 6]
    with pytest.raises(
        pydag.SharingError, match=r"args\[1\]\['b'\], the same object, is not mapped"
    ):
        pj.vmap(lambda x, y: x, in_axes=(0, {"a": 0, "b": None}))(p, {"a": p["w"], "b": p["w"]})


def test_jvp_has_tangents_by_argument() -> None:
    """What two arguments hold is one, and has one tangent; of arrays alone each has its own."""
    w = {"w": jnp.float32(3.0)}
    one, zero = {"w": jnp.float32(1.0)}, {"w": jnp.float32(0.0)}
    _, tangent = pj.jvp(lambda p, q: p["w"] * q["w"], (w, w), (one, one))
    assert float(tangent) == 6
    _, tangent = pj.jvp(jnp.multiply, (w["w"], w["w"]), (one["w"], zero["w"]))
    assert float(tangent) == 3
    with pytest.raises(pydag.SharingError, match="the tuple of the tangents"):
        pj.jvp(lambda p, q: p["w"] * q["w"], (w, w), (one, zero))


def test_linearize_has_tangents_by_argument() -> None:
    """So does the linear map."""
    w = {"w": jnp.float32(3.0)}
    one, zero = {"w": jnp.float32(1.0)}, {"w": jnp.float32(0.0)}
    _, pushforward = pj.linearize(lambda p, q: p["w"] * q["w"] ** 2, w, pj.tree.copy(w))
    for tangents, expected in (((one, one), 27), ((one, zero), 9), ((zero, one), 18)):
        assert float(pushforward(*tangents)) == expected


X = jnp.float32(3.0)


def f(x: Any, y: Any) -> Any:
    return x**2 * y


def test_linear_maps() -> None:
    """`vjp`, `jvp` and `linearize` as `grad`."""
    one, zero = jnp.float32(1.0), jnp.float32(0.0)
    assert pj.vjp(f, X, X)[1](one) == (18.0, 9.0)
    assert pj.jvp(f, (X, X), (one, zero))[1] == 18.0
    assert pj.linearize(f, X, X)[1](zero, one) == 9.0


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


ONES = jnp.ones(3)


class Counting(pj.Module):
    """A model with methods for every wrapper."""

    def __init__(self) -> None:
        self.w, self.depth = jnp.zeros(3), 2

    def __call__(self, x: Any) -> Any:
        return self.w @ x

    def loss(self, x: Any, target: Any = 3.0) -> Any:
        return (self(x) - target) ** 2

    def step(self, carry: Any, x: Any) -> Any:
        carry = carry + self(x)
        return carry, carry

    def once(self, _: Any, carry: Any) -> Any:
        return carry + self(ONES)

    def more(self, carry: Any) -> Any:
        return carry + self(ONES) + 1

    def goes_on(self, carry: Any) -> Any:
        return carry < 2 + self(ONES)

    def added(self, one: Any, other: Any) -> Any:
        return one + other + self(ONES)


def function(model: Any, x: Any, power: int = 1) -> Any:
    """A function for partials."""
    return model(x) ** power


XS = jnp.stack([ONES, ONES])

# Makes of a model a function of an array, and what that gives for weights of 0 and of 1.
CALLS: dict[str, tuple[Callable[[Any], Callable[..., Any]], Any, Any]] = {
    "value_and_grad": (lambda net: lambda x: pj.value_and_grad(net.loss)(x)[0], 9.0, 0.0),
    "grad": (lambda net: lambda x: jnp.sum(pj.grad(net)(x)), 0.0, 3.0),
    "jacfwd": (lambda net: lambda x: jnp.sum(pj.jacfwd(net)(x)), 0.0, 3.0),
    "vmap": (lambda net: lambda x: pj.vmap(net)(x[None])[0], 0.0, 3.0),
    "checkpoint": (lambda net: pj.checkpoint(net.loss), 9.0, 0.0),
    "scan": (lambda net: lambda x: pj.scan(net.step, 0.0, XS)[0], 0.0, 6.0),
    "associative_scan": (lambda net: lambda x: pj.associative_scan(net.added, XS)[1, 0], 2.0, 5.0),
    "map": (lambda net: lambda x: pj.map(net, XS)[0], 0.0, 3.0),
    "fori_loop": (lambda net: lambda x: pj.fori_loop(0, 2, net.once, 0.0), 0.0, 6.0),
    "while_loop": (lambda net: lambda x: pj.while_loop(net.goes_on, net.more, 0.0), 2.0, 8.0),
    "cond": (lambda net: lambda x: pj.cond(True, net, jnp.sum, x), 0.0, 3.0),
    "switch": (lambda net: lambda x: pj.switch(1, [jnp.sum, net.loss], x), 9.0, 0.0),
    "vjp": (lambda net: lambda x: pj.vjp(net.loss, x)[0], 9.0, 0.0),
    "jvp": (lambda net: lambda x: pj.jvp(net, (x,), (x,))[1], 0.0, 3.0),
    "linearize": (lambda net: lambda x: pj.linearize(net, x)[1](x), 0.0, 3.0),
    "make_jaxpr": (
        lambda net: (
            lambda x: jax.core.eval_jaxpr(
                (closed := pj.make_jaxpr(net)(x)).jaxpr, closed.consts, x
            )[0]
        ),
        0.0,
        3.0,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_training_in_place_changes_the_answer(name: str) -> None:
    """The answer is that of the model as it is at the call, and nothing is warned about."""
    make, before, after = CALLS[name]
    net = Counting()
    wrapped = make(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(jnp.sum(wrapped(ONES))) == before
        net.w = jnp.ones(3)
        assert float(jnp.sum(wrapped(ONES))) == after
