# SPDX-License-Identifier: Apache-2.0
"""A model of three layers that share a weight, for tests of optimizers."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

import pydag


@pydag.register_fields
class Layer:
    def __init__(self, w: Any, b: Any, name: str) -> None:
        self.w, self.b, self.name = w, b, name


def tied() -> dict[str, Any]:
    """Two layers that share a weight and not a bias; one of them is used twice."""
    w = jnp.array([[1.0, -2.0], [0.5, 3.0]])
    head = Layer(w, jnp.ones(2), "head")
    return {"body": Layer(w, jnp.zeros(2), "body"), "heads": [head, head]}


def assert_tied(model: Any, names: tuple[Any, Any] = ("body", "head")) -> None:
    """Asserts that a model shares as `tied()` does; None are the names in a gradient."""
    assert model["body"].w is model["heads"][0].w
    assert model["heads"][0] is model["heads"][1]
    assert (model["body"].name, model["heads"][0].name) == names


def loss(model: Any) -> Any:
    """Uses every weight, and the shared ones differently at each place."""
    body, (one, two) = model["body"], model["heads"]
    x = jnp.array([1.0, 2.0]) @ body.w + body.b
    return jnp.sum((x @ one.w.T + one.b) ** 2) + jnp.sum(x * two.b)


def parts(model: Any) -> dict[str, Any]:
    """The three distinct arrays, each once."""
    return {"body.b": model["body"].b, "head.b": model["heads"][0].b, "w": model["body"].w}


def by_hand(given: dict[str, Any]) -> Any:
    """`loss`, as a function of the three distinct arrays."""
    head = Layer(given["w"], given["head.b"], "head")
    return loss({"body": Layer(given["w"], given["body.b"], "body"), "heads": [head, head]})
