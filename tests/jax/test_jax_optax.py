# SPDX-License-Identifier: Apache-2.0
"""Optax on models with shared weights, through `Dag`: every weight is one weight to it."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.tree_util import keystr
from tied_layers import assert_tied, by_hand, loss, parts, tied

import pydag
from pydag.jaxinterop import Dag

OPTIMIZERS: dict[str, Any] = {
    "sgd": optax.sgd(0.01, momentum=0.9),
    "adam": optax.adam(0.1),
    "decay": optax.adamw(0.1, weight_decay=0.3),
    "clipped": optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1)),
    "factored": optax.adafactor(0.1),
    "trust ratio": optax.lamb(0.1),
    "steps": optax.MultiSteps(optax.adam(0.1), every_k_schedule=2),
    "averaged": optax.chain(optax.adam(0.1), optax.ema(0.9)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_weight_is_one_weight(name: str) -> None:
    """Steps are those of a model that has each weight once: one moment, one decay, one norm."""
    tx = OPTIMIZERS[name]

    def trained(start: Any, function: Any) -> tuple[Any, Any]:
        @jax.jit
        def step(params: Any, state: Any) -> Any:
            updates, state = tx.update(jax.grad(function)(params), state, params)
            return optax.apply_updates(params, updates), state

        params, state = start, tx.init(start)
        for _ in range(3):
            params, state = step(params, state)
        return params, state

    ours, state = trained(Dag(tied()), lambda dag: loss(dag.tree))
    theirs, expected = trained(parts(tied()), by_hand)
    assert_tied(ours.tree)
    assert len(jax.tree.leaves(state)) == len(jax.tree.leaves(expected))
    for path, leaf in parts(ours.tree).items():
        assert jnp.allclose(leaf, theirs[path], rtol=1e-4, atol=1e-6), path


def test_paths_read_well() -> None:
    """JAX's own paths name each weight once, at its anchor, as one would write it in Python."""
    paths = [path for path, _ in jax.tree.leaves_with_path(Dag(tied()))]
    assert list(map(keystr, paths)) == [
        ".tree['body'].b",
        ".tree['body'].w",
        ".tree['heads'][0].b",
    ]


def test_sizes_and_norms() -> None:
    """Counts and norms over a Dag count a shared weight once."""
    model = tied()
    assert optax.tree.size(Dag(model)) == 8
    assert optax.tree.norm(Dag({"a": model["body"].w, "b": model["body"].w})) == pytest.approx(
        float(jnp.linalg.norm(model["body"].w))
    )


def test_a_derefed_model() -> None:
    """`deref` does as well, and keeps the nesting in the paths."""
    tx = optax.adam(0.1)
    model = {"a": (w := jnp.ones(2)), "b": w}
    plain = pydag.deref(model)
    state = tx.init(plain)
    assert len(jax.tree.leaves(state[0].mu)) == 1
    gradient = jax.grad(lambda p: jnp.sum(pydag.reref(p)["a"] * pydag.reref(p)["b"]))(plain)
    updates, state = tx.update(gradient, state, plain)
    new = pydag.reref(optax.apply_updates(plain, updates))
    assert new["a"] is new["b"]
    assert jnp.allclose(new["a"], 0.9)
