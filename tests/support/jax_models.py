# SPDX-License-Identifier: Apache-2.0
"""Small models with ties, for tests with JAX (those of PyTorch are in torch_models.py).

Nothing is computed while this is imported: a program of many processes sets JAX up afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import pydag
from pydag import jaxinterop as pj

Make = Callable[..., dict[str, Any]]


def number(value: float = 3.0) -> Any:
    """An array that is a number."""
    return jnp.float32(value)


def tied_under(first: str, second: str, make: Callable[..., Any], **others: Any) -> Make:
    """A function that makes a dict with one array under two names.

    Args:
        make: Makes the array of the arguments that the function is called with.
        others: What else the dict has, such as leaves that JAX can't trace.
    """

    def tied(*args: Any) -> dict[str, Any]:
        w = make(*args)
        return {first: w, second: w, **others}

    return tied


class Net(pj.Module):
    """One array under two names, a number that is configuration, and a function."""

    def __init__(self, w: Any) -> None:
        self.w = self.tied = w
        self.depth, self.act = 3, jnp.tanh


# A model that restores its data, and a step of its training: for many devices and processes.
DATA = np.linspace(-1, 1, 16 * 8, dtype=np.float32).reshape(16, 8)


def model() -> dict[str, Any]:
    """One weight for two layers, a bias, and a leaf that JAX can't trace."""
    w = jnp.asarray(np.linspace(0, 1, 8 * 8, dtype=np.float32).reshape(8, 8))
    return {"encoder": {"w": w}, "decoder": {"w": w, "b": jnp.zeros(8)}, "name": "tied"}


def assert_tied(tree: Any) -> None:
    """Asserts that a model, or a gradient for one, shares as the model does."""
    assert tree["encoder"]["w"] is tree["decoder"]["w"]
    assert tree["name"] in ("tied", None)


def loss(model: Any, x: Any) -> Any:
    """How well the data is restored."""
    assert_tied(model)
    hidden = jnp.tanh(x @ model["encoder"]["w"])
    restored = hidden @ model["decoder"]["w"].T + model["decoder"]["b"]
    return jnp.mean((restored - x) ** 2)


def step(model: Any, x: Any, loss: Any = loss) -> tuple[Any, Any]:
    """A step of gradient descent, and the loss before it."""
    value, gradient = pj.value_and_grad(loss)(model, x)
    assert_tied(gradient)

    def update(p: Any, g: Any) -> Any:
        return p if isinstance(p, str) else p - 0.1 * g

    return pydag.dag_map(update, model, gradient), value


def train(step: Any, model: Any, x: Any) -> tuple[Any, Any]:
    """Three steps."""
    value = None
    for _ in range(3):
        model, value = step(model, x)
        assert_tied(model)
    return model, value


def assert_same(one: Any, other: Any) -> None:
    """Asserts that two trees have the same numbers, but for rounding."""
    for ours, theirs in zip(pydag.dag_leaves(one), pydag.dag_leaves(other), strict=True):
        if not isinstance(ours, str):
            np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-5, atol=1e-6)


# Layers that share a weight, for tests of optimizers.
@pydag.register_fields
class Layer:
    def __init__(self, w: Any, b: Any, name: str) -> None:
        self.w, self.b, self.name = w, b, name


def layers() -> dict[str, Any]:
    """Two layers that share a weight and not a bias; one of them is used twice."""
    w = jnp.array([[1.0, -2.0], [0.5, 3.0]])
    head = Layer(w, jnp.ones(2), "head")
    return {"body": Layer(w, jnp.zeros(2), "body"), "heads": [head, head]}


def assert_layers_tied(model: Any, names: tuple[Any, Any] = ("body", "head")) -> None:
    """Asserts that a model shares as `layers()` does; None are the names in a gradient."""
    assert model["body"].w is model["heads"][0].w
    assert model["heads"][0] is model["heads"][1]
    assert (model["body"].name, model["heads"][0].name) == names


def loss_of_layers(model: Any) -> Any:
    """Uses every weight, and the shared ones differently at each place."""
    body, (one, two) = model["body"], model["heads"]
    x = jnp.array([1.0, 2.0]) @ body.w + body.b
    return jnp.sum((x @ one.w.T + one.b) ** 2) + jnp.sum(x * two.b)


def parts(model: Any) -> dict[str, Any]:
    """The three distinct arrays, each once."""
    return {"body.b": model["body"].b, "head.b": model["heads"][0].b, "w": model["body"].w}


def by_hand(given: dict[str, Any]) -> Any:
    """`loss_of_layers`, as a function of the three distinct arrays."""
    head = Layer(given["w"], given["head.b"], "head")
    return loss_of_layers(
        {"body": Layer(given["w"], given["body.b"], "body"), "heads": [head, head]}
    )


class Model(pj.Module):
    """A model with a method."""

    def __init__(self) -> None:
        self.w = jnp.array([1.0, 2.0])

    def step(self, x: Any) -> Any:
        """Scaled."""
        return self.w * x

    def __call__(self, x: Any) -> Any:
        return self.w * x

    @pj.jit
    def compiled(self, x: Any) -> Any:
        """A compiled method."""
        return self.w * x
