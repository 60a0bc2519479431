# SPDX-License-Identifier: Apache-2.0
"""Derivatives of modules: None at arrays without one; the configuration, being structure, stays."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import pydag
import pydag.jaxinterop as pj

structure: Any = jax.tree.structure


@pj.register
@pydag.register_module
class Net:
    """A tied weight, and what has no derivative."""

    def __init__(self) -> None:
        self.w = self.v = jnp.ones(2)
        self.heads, self.rate, self.name, self.act = 4, 0.5, "net", jnp.tanh
        self.scale = 1 / np.sqrt(4.0)


@pj.register
@pydag.register_module
class Counting(Net):
    """The same with an array of integers."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = jnp.arange(3)


OTHERS = ("heads", "rate", "name", "act", "scale")


def loss(net: Any) -> Any:
    return jnp.sum(net.w * net.v) * net.heads


def others(tree: Any) -> list[Any]:
    return [getattr(tree, name) for name in OTHERS]


def test_to_jax_a_gradient_has_the_structure_of_the_model() -> None:
    """So `jax.tree.map` takes model and gradient, and plain optax makes a step."""
    net = Net()
    gradient = pj.grad(loss)(net)
    assert structure(gradient) == structure(net)
    new = jax.tree.map(lambda p, g: p - 0.125 * g, net, gradient)
    assert (new.w.tolist(), others(new)) == ([0.0, 0.0], others(net))
    tx = optax.sgd(0.125)
    updates, _ = tx.update(gradient, tx.init(net), net)
    assert optax.apply_updates(net, updates).w.tolist() == [0.0, 0.0]
    inside = {"nets": [net]}
    gradient = pj.grad(lambda t: loss(t["nets"][0]))(inside)
    assert jax.tree.map(lambda p, g: p - g, inside, gradient)["nets"][0].w.tolist() == [-7.0, -7.0]


@pytest.mark.parametrize("make", [optax.sgd, optax.adam, optax.adamw])
def test_updates(make: Any) -> None:
    """An update has the configuration of the model; whoever adds updates doubles no number."""
    net = Net()
    ours = pj.optimizer(make(0.125))
    gradient = pj.grad(loss)(net)
    updates, _ = ours.update(gradient, ours.init(net), net)
    assert others(updates) == others(net)
    added = pj.tree.map(jnp.add, net, updates)
    assert others(added) == others(net)
    assert added.w.tolist() == pj.apply_updates(net, updates).w.tolist()
    assert optax.apply_updates(net, updates).w.tolist() == added.w.tolist()
    if make is not optax.adamw:  # which needs the model
        updates, _ = ours.update(gradient, ours.init(net))
        assert updates.w is updates.v


def results(net: Any) -> dict[str, Any]:
    return {"y": loss(net), "steps": net.steps, "name": net.name, "n": net.heads}


def test_pullbacks() -> None:
    """A cotangent that comes back has None; in one that is given, None or anything may stand."""
    _, pullback = pj.vjp(results, Counting())
    for other in (None, "anything"):
        (cotangent,) = pullback({"y": 1.0, "steps": other, "name": other, "n": other})
        assert cotangent.w.tolist() == [8.0, 8.0]
        assert [cotangent.steps, *others(cotangent)] == [None, *others(Net())]
        assert structure(cotangent) != structure(Net())


def test_jacobians() -> None:
    """None stands on both sides: in the result's form and in that of the argument."""
    found = pj.jacrev(lambda net: {"y": net.w, "name": "text"})(Net())
    assert found["name"] is None
    assert found["y"].w.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert others(found["y"]) == others(Net())
