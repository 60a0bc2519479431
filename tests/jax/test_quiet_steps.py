# SPDX-License-Identifier: Apache-2.0
"""A training loop leaves the garbage collector alone."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import equinox
import jax.numpy as jnp
import pytest
from flax import nnx

import pydag
from pydag import jaxinterop

STEPS = 10_000


class Fields:
    """An object of attributes."""

    def __init__(self) -> None:
        self.w, self.b = jnp.ones(2), jnp.ones(2)


pydag.register_fields(Fields, ["w", "b"])


class Eqx(equinox.Module):
    """The same as a module of equinox's."""

    w: Any
    b: Any


class Nnx(nnx.Module):
    """The same as a module of NNX's."""

    def __init__(self) -> None:
        self.w, self.b = nnx.Param(jnp.ones(2)), nnx.Param(jnp.ones(2))


MODELS: dict[str, Callable[[], Any]] = {
    "dict": lambda: {"w": jnp.ones(2), "b": jnp.ones(2)},
    "register_fields": Fields,
    "equinox": lambda: Eqx(jnp.ones(2), jnp.ones(2)),
    "nnx": Nnx,
}


def loss(model: Any) -> Any:
    """The sum of the squares."""
    return sum((x**2).sum() for x in pydag.dag_leaves(model))


@contextmanager
def collections() -> Iterator[list[str]]:
    """A list that grows by one item for each collection of the garbage collector."""
    found: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(f"generation {info['generation']}")

    gc.collect()
    gc.callbacks.append(note)
    try:
        yield found
    finally:
        gc.callbacks.remove(note)


@pytest.mark.parametrize("name", MODELS)
def test_steps_set_off_no_collection(name: str) -> None:
    """Ten thousand training steps leave no tracked object behind that wakes the collector."""
    gradient = jaxinterop.grad(loss)
    step: Any = jaxinterop.jit(
        lambda model: pydag.dag_map(lambda w, d: w - 0.001 * d, model, gradient(model))
    )
    model = step(step(MODELS[name]()))
    with collections() as found:
        for _ in range(STEPS):
            model = step(model)
    assert found == []


def test_calls_with_static_values_set_off_no_collection() -> None:
    """The same of calls with keyword arguments and static values that are made anew each time."""
    step: Any = jaxinterop.jit(lambda x, size, scale: x, static_argnums=1)
    x, digits = jnp.ones(2), ["1", "2"]
    for _ in range(2):
        step(x, ("".join(digits), 3), scale=x)
    with collections() as found:
        for _ in range(STEPS):
            step(x, ("".join(digits), 3), scale=x)
    assert found == []
