# SPDX-License-Identifier: Apache-2.0
"""A small model with a tied weight, and a step of its training: for many devices and processes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import pydag
from pydag import jaxinterop

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
    value, gradient = jaxinterop.value_and_grad(loss)(model, x)
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
