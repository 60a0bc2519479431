# SPDX-License-Identifier: Apache-2.0
"""What NNX's graph mode costs in a call, beside tree mode and plain JAX.

    python upstream/nnx_graph.py

Writes the table of nnx_graph.md.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import page
from flax import nnx

BLOCKS = (5, 20, 50)


class Block(nnx.Module):
    """Four arrays."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.inner = nnx.Linear(4, 4, rngs=rngs)
        self.outer = nnx.Linear(4, 4, rngs=rngs)


class Model(nnx.Module):
    """Some blocks."""

    def __init__(self, blocks: int) -> None:
        rngs = nnx.Rngs(0)
        self.blocks = nnx.List([Block(rngs) for _ in range(blocks)])


def grow(model: Any) -> None:
    """Changes each array."""
    for variable in jax.tree.leaves(model, is_leaf=lambda x: isinstance(x, nnx.Variable)):
        variable[...] = variable[...] * 1.0001


def in_graph_mode(model: Any) -> Callable[[], Any]:
    """`nnx.jit` as it is."""
    step = nnx.jit(grow)
    return lambda: step(model)


def in_tree_mode(model: Any) -> Callable[[], Any]:
    """`nnx.jit` for models that share nothing."""
    step = nnx.jit(grow, graph=False)
    return lambda: step(model)


def by_hand(model: Any) -> Callable[[], Any]:
    """`nnx.split` once; a compiled function of the state; no `nnx.update`."""
    definition, state = nnx.split(model)

    @jax.jit
    def step(state: Any) -> Any:
        merged = nnx.merge(definition, state)
        grow(merged)
        return nnx.state(merged)

    held = [state]

    def call() -> None:
        held[0] = step(held[0])

    return call


def flat(model: Any) -> Callable[[], Any]:
    """Plain JAX on a tuple of the arrays: the floor."""
    held = [tuple(jax.tree.leaves(nnx.state(model)))]
    step = jax.jit(lambda xs: tuple(x * 1.0001 for x in xs))

    def call() -> None:
        held[0] = step(held[0])

    return call


def main() -> None:
    """Measure, and write the table."""
    rows = []
    for blocks in BLOCKS:
        makers = (flat, by_hand, in_tree_mode, in_graph_mode)
        times = [page.least(make(Model(blocks)), calls=5) for make in makers]
        split = page.least(functools.partial(nnx.split, Model(blocks)), calls=5)
        count = len(jax.tree.leaves(nnx.state(Model(blocks))))
        rows.append([str(count), *map(page.micro, times), page.micro(split)])
    head = ["arrays", "flat tuple", "state by hand", "tree mode", "graph mode", "nnx.split alone"]
    page.write(__file__, page.table(head, rows), ["flax", "jax"])


if __name__ == "__main__":
    jnp.zeros(())  # starts JAX
    main()
