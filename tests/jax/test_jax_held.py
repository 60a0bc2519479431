# SPDX-License-Identifier: Apache-2.0
"""What a callable holds, such as a method: `jit` refuses it, the other wrappers close over it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import pytest

import pydag.jaxinterop as pj

ONES = jnp.ones(3)


class Net(pj.Module):
    """A model that counts the times that it is traced."""

    traced: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.w, self.depth = jnp.zeros(3), 2

    def __call__(self, x: Any) -> Any:
        Net.traced.append(1)
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
    net = Net()
    wrapped = make(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(jnp.sum(wrapped(ONES))) == before
        net.w = jnp.ones(3)
        assert float(jnp.sum(wrapped(ONES))) == after


class Ruled(pj.Module):
    """A module whose methods are a function and the rules of its derivative."""

    def __init__(self) -> None:
        self.w, self.scale = jnp.ones(2), jnp.float32(1.0)

    def value(self, x: Any) -> Any:
        return jnp.sum(self.w * x)

    def forward(self, x: Any) -> Any:
        return self.value(x), None

    def backward(self, _: Any, cotangent: Any) -> Any:
        return (cotangent * self.scale * self.w,)

    def tangent(self, primals: Any, tangents: Any) -> Any:
        return self.value(*primals), self.scale * jnp.sum(self.w * tangents[0])


@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp", "defjvps"])
def test_functions_with_rules(kind: str) -> None:
    """Methods with rules that are methods: after training, all of it is the new model's."""
    ruled = Ruled()
    if kind == "custom_vjp":
        f: Any = pj.custom_vjp(ruled.value)
        f.defvjp(ruled.forward, ruled.backward)
    else:
        f = pj.custom_jvp(ruled.value)
        if kind == "custom_jvp":
            f.defjvp(ruled.tangent)
        else:
            f.defjvps(lambda tangent, _, x: 2 * jnp.sum(tangent))
    gradient = pj.grad(f)
    x = jnp.full(2, 3.0)
    for w, scale in ((1.0, 1.0), (2.0, 1.0), (2.0, 5.0)):
        ruled.w, ruled.scale = jnp.full(2, w), jnp.float32(scale)
        assert float(f(x)) == 6 * w
        expected = 2.0 if kind == "defjvps" else w * scale
        assert gradient(x).tolist() == [expected] * 2
