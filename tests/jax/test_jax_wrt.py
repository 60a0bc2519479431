# SPDX-License-Identifier: Apache-2.0
"""Gradients: `wrt=`, what is None in them, and what is constant in another argument."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from registering import Linear

import pydag
from pydag import SharingError
from pydag import jaxinterop as pj


def model() -> dict[str, Any]:
    """Two layers with one weight; a counter, a flag, a key, and what JAX can't trace."""
    w = jnp.float32(3.0)
    return {
        "body": Linear(w, jnp.float32(1.0)),
        "head": Linear(w, jnp.float32(2.0)),
        "steps": jnp.int32(4),
        "flag": True,
        "key": jax.random.key(0),
        "name": "net",
        "function": jnp.sin,
    }


def loss(model: Any) -> Any:
    """By the weight 11 + 6, the biases 5 and 1."""
    assert model["body"].weight is model["head"].weight
    body, head = model["body"], model["head"]
    return 5 * body.bias + 11 * body.weight + head.weight**2 + head.bias


def numbers(gradient: Any) -> list[Any]:
    """The weight at both places, and the biases."""
    body, head = gradient["body"], gradient["head"]
    assert body.weight is head.weight
    found = [body.weight, body.bias, head.bias]
    return [None if x is None else float(x) for x in found]


def test_what_has_no_derivative_is_passed_through() -> None:
    """Integers, flags and keys need no `wrt`: the gradient has None there, as for text."""
    gradient = pj.grad(loss)(model())
    assert numbers(gradient) == [17.0, 5.0, 1.0]
    others = ("steps", "flag", "key", "name", "function")
    assert [gradient[name] for name in others] == [None] * 5


@pytest.mark.parametrize(
    ("wrt", "expected"),
    [
        ("*.weight", [17.0, None, None]),
        ("['head'].weight", [17.0, None, None]),
        ("['head'].*", [17.0, None, 1.0]),
        ("*.bias", [None, 5.0, 1.0]),
        (["['body'].bias", "*head*weight"], [17.0, 5.0, None]),
        (Linear, [17.0, 5.0, 1.0]),
        ((Linear, str), [17.0, 5.0, 1.0]),
        (lambda leaf: leaf.shape == (), [17.0, 5.0, 1.0]),  # asked of no text, no function
        (True, [17.0, 5.0, 1.0]),
        (jax.Array, [17.0, 5.0, 1.0]),
    ],
)
def test_the_vocabulary(wrt: Any, expected: list[float | None]) -> None:
    """Patterns, of any path; classes; predicates; a boolean; a list of such."""
    for gradient in (
        pj.grad(loss, wrt=wrt)(model()),
        pj.value_and_grad(loss, wrt=wrt)(model())[1],
        pj.jacrev(loss, wrt=wrt)(model()),
        pj.jacfwd(loss, wrt=wrt)(model()),
        pj.jit(pj.grad(loss, wrt=wrt))(model()),
    ):
        assert numbers(gradient) == expected


def test_a_prefix_of_booleans() -> None:
    """It has the form of the argument; two answers for one object are an error that shows both."""
    given = dict.fromkeys(model(), False)
    gradient = pj.grad(loss, wrt={**given, "body": Linear(False, True)})
    with pytest.raises(ValueError, match="prefix of booleans doesn't fit"):
        pj.grad(loss, wrt={"body": True})(model())
    with pytest.raises(SharingError, match="two answers") as caught:
        pj.grad(loss, wrt={**given, "body": Linear(True, True)})(model())
    for path in ("tree['body'].weight: True", "tree['head']"):
        assert path in str(caught.value)
    assert numbers(gradient(model())) == [None, 5.0, None]


def two(one: Any, other: Any, *, scale: Any = 1.0) -> Any:
    return (2 * one["a"] + 3 * other["a"] + 5 * other["b"]) * scale


def test_several_arguments() -> None:
    """Each of them is a root of its own for patterns; a prefix is one of the tuple."""
    args = {"a": jnp.float32(1.0), "b": jnp.float32(2.0)}, {"a": 3.0, "b": 4.0}
    for wrt in ("['a']", ({"a": True, "b": False}, {"a": True, "b": False})):
        one, other = pj.grad(two, (0, 1), wrt=wrt)(*args)
        assert (one, other) == ({"a": 2.0, "b": None}, {"a": 3.0, "b": None})
    other, one = pj.grad(two, (1, 0), wrt=({"a": False, "b": True}, True))(*args)
    assert (one, other) == ({"a": 2.0, "b": 0.0}, {"a": None, "b": 5.0})
    shared = {"a": (w := jnp.float32(1.0)), "b": w}
    one, other = pj.grad(two, (0, 1), wrt="['b']")(shared, shared)
    assert one["a"] is one["b"] is other["a"] is other["b"]
    assert float(one["a"]) == 10.0
    object_at_both = Linear(w, 2.0)
    gradient = pj.grad(lambda one, other: one.weight * other.bias, (0, 1), wrt="bias")
    first, second = gradient(object_at_both, object_at_both)
    assert (first.weight, float(first.bias), first is second) == (None, 1.0, True)


def test_nothing_to_differentiate() -> None:
    """Without leaves that is all right; else it is an error that says what there is."""
    assert pj.grad(lambda p: 1.0, wrt="nothing")({}) == {}
    with pytest.raises(TypeError, match=r"nothing to differentiate by: args\[0\] holds no array"):
        pj.grad(lambda p: 1.0)({"a": "text"})
    with pytest.raises(
        TypeError, match=r"derivative \(but args\[0\]\['steps'\]\) in args\[0\]: .*bias: f32\[\]"
    ):
        pj.grad(loss, wrt="*steps*")(model())
    with pytest.raises(TypeError, match=r"derivative in args\[0\]"):
        pj.grad(loss, wrt=np.ndarray)(model())
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        pj.grad(loss)({"steps": jnp.int32(4), "flag": True})
    with pytest.raises(TypeError, match="which leaves: expected"):
        pj.grad(loss, wrt=1.5)(model())


def test_allow_int() -> None:
    """With `allow_int=True` integers count, and keys don't."""
    gradient = pj.grad(loss, allow_int=True)(model())
    assert gradient["steps"].dtype == gradient["flag"].dtype == jax.dtypes.float0
    assert gradient["key"] is None
    gradient = pj.grad(loss, allow_int=True, wrt=["*steps*", "*.bias"])(model())
    assert gradient["steps"].dtype == jax.dtypes.float0
    assert (gradient["flag"], gradient["body"].weight) == (None, None)


@pj.register
@pydag.register_module
class Net:
    """A tied weight, and what has no derivative."""

    def __init__(self) -> None:
        self.w = self.v = jnp.ones(2)
        self.heads, self.rate, self.name, self.act = 4, 0.5, "net", jnp.tanh
        self.scale = 1 / np.sqrt(4.0)


OTHERS = ("heads", "rate", "name", "act", "scale")


def net_loss(net: Any) -> Any:
    return jnp.sum(net.w * net.v) * net.heads


def others(tree: Any) -> list[Any]:
    return [getattr(tree, name) for name in OTHERS]


@pytest.mark.parametrize("make", [optax.sgd, optax.adam, optax.adamw])
def test_updates(make: Any) -> None:
    """An update has the configuration of the model; whoever adds updates doubles no number."""
    net = Net()
    ours = pj.optimizer(make(0.125))
    gradient = pj.grad(net_loss)(net)
    updates, _ = ours.update(gradient, ours.init(net), net)
    assert others(updates) == others(net)
    added = pj.tree.map(jnp.add, net, updates)
    assert others(added) == others(net)
    assert added.w.tolist() == pj.apply_updates(net, updates).w.tolist()
    assert optax.apply_updates(net, updates).w.tolist() == added.w.tolist()
    if make is not optax.adamw:  # which needs the model
        updates, _ = ours.update(gradient, ours.init(net))
        assert updates.w is updates.v
