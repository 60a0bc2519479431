# SPDX-License-Identifier: Apache-2.0
"""One training step of an NNX user by several wrappers: the table of docs/flax.md.

    python benchmarks/nnx_step.py

The model hardly computes, so that what is measured is what the wrappers add. The step is the same
text for all but the one that splits and merges by hand.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx

import pydag.jaxinterop as pj

BLOCKS, WIDTH, ROUNDS, CALLS = 50, 4, 15, 5


class Block(nnx.Module):
    """Six arrays that are trained, and two that aren't."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm = nnx.BatchNorm(WIDTH, rngs=rngs)
        self.inner = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
        self.outer = nnx.Linear(WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        """One of many."""
        return x + self.outer(nnx.relu(self.inner(self.norm(x))))


class Model(nnx.Module):
    """Some blocks."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.blocks = nnx.List([Block(rngs) for _ in range(BLOCKS)])

    def __call__(self, x: Any) -> Any:
        """All of them, one after another."""
        for block in self.blocks:
            x = block(x)
        return x


def made() -> tuple[Model, Any]:
    """A model and its optimizer."""
    model = Model(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.sgd(1e-3), wrt=nnx.Param)


def step_with(value_and_grad: Callable[..., Any]) -> Callable[..., Any]:
    """The step, by one library's gradient."""

    def step(model: Any, optimizer: Any, x: Any) -> Any:
        def loss_fn(model: Any) -> Any:
            return jnp.mean(model(x) ** 2)

        loss, gradient = value_and_grad(loss_fn)(model)
        optimizer.update(model, gradient)
        return loss

    return step


def by_hand(updates_each: bool) -> Callable[[Any], Any]:
    """Split once, and merge inside.

    Args:
        updates_each: Whether the model has the new state after each step, not only after the last.
    """
    model, optimizer = made()
    graph, state = nnx.split((model, optimizer))
    step = step_with(nnx.value_and_grad)

    @jax.jit
    def compiled(state: Any, x: Any) -> Any:
        model, optimizer = nnx.merge(graph, state)
        loss = step(model, optimizer, x)
        return nnx.state((model, optimizer)), loss

    def call(x: Any) -> Any:
        nonlocal state
        state, loss = compiled(state, x)
        if updates_each:
            nnx.update((model, optimizer), state)
        return loss

    return call


def contenders() -> dict[str, Callable[[Any], Any]]:
    """Each a function of the batch."""
    theirs = nnx.jit(step_with(nnx.value_and_grad))
    tree = nnx.jit(step_with(partial(nnx.value_and_grad, graph=False)), graph=False)
    ours = pj.jit(step_with(partial(pj.value_and_grad, update_argnums=0)), update_argnums=(0, 1))
    return {
        "pj.jit, update_argnums": partial(ours, *made()),
        "nnx.jit": partial(theirs, *made()),
        "nnx.cached_partial": nnx.cached_partial(theirs, *made()),
        "nnx.jit, graph=False": partial(tree, *made()),
        "split and merge by hand": by_hand(updates_each=True),
        "state carried by hand, nnx.update after the loop": by_hand(updates_each=False),
    }


def main() -> None:
    """Measure, in turns, and print a table."""
    x = jnp.ones((2, WIDTH))
    found = contenders()
    times: dict[str, list[float]] = {name: [] for name in found}
    for call in found.values():
        call(x), call(x)
    for _ in range(ROUNDS):
        for name, call in found.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                call(x).block_until_ready()
            times[name].append((time.perf_counter() - start) / CALLS)
    print("| one step | time |\n|---|---|")
    for name, taken in times.items():
        print(f"| {name} | {1e3 * statistics.median(taken):.2f} ms |")


if __name__ == "__main__":
    main()
