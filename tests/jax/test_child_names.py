# SPDX-License-Identifier: Apache-2.0
"""Dags and optimizers' states name their children as JAX's keys do, without making any."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest

import pydag
import pydag.jaxinterop as pj
from pydag.jaxinterop.foreign import jax_private


class Net(pj.Module):
    def __init__(self) -> None:
        self.w, self.layers, self.n = jnp.ones(2), [jnp.ones(3), jnp.ones(4)], 3
        self.tied = self.w


STATES: dict[str, Callable[[], Any]] = {
    "sgd": lambda: optax.sgd(0.1),
    "adam": lambda: optax.adam(0.1),
    "adamw, chain": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.1)),
    "MultiSteps": lambda: optax.MultiSteps(optax.adam(0.1), every_k_schedule=2),
    "masked": lambda: optax.masked(optax.adam(0.1), mask=True),
    "inject_hyperparams": lambda: optax.inject_hyperparams(optax.adam)(learning_rate=0.1),
    "partition": lambda: optax.partition({"a": optax.sgd(0.1, momentum=0.9)}, lambda _: "a"),
    "apply_if_finite": lambda: optax.apply_if_finite(optax.adam(0.1), 3),
}


@pytest.mark.parametrize("name", STATES)
def test_paths_are_those_of_jax(name: str) -> None:
    """The path to each leaf of a state is JAX's, with `.inner`, which optax's state is, in it."""
    state = pj.optimizer(STATES[name]()).init(Net())
    for tree in (state, {"state": state}, jax.tree.map(lambda x: x, state)):
        keys = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(tree)]
        texts = [accessor.codify("") for accessor in pydag.dag_accessors(tree)]
        assert [text.replace(".inner", "", 1) for text in texts] == keys


@pytest.mark.parametrize("tree", [Net(), {"a": jnp.ones(2), "b.c": [jnp.ones(2)]}, jnp.ones(2)])
def test_paths_of_a_dag(tree: Any) -> None:
    """So are the paths of a `Dag`, built by JAX or not, before and after its tree was changed."""
    dag = pj.Dag(tree)
    for one in (dag, jax.tree.map(lambda x: x + 1, dag)):
        keys = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(one)]
        assert [accessor.codify("") for accessor in pydag.dag_accessors(one)] == keys
    if isinstance(tree, dict):
        tree["z"] = jnp.ones(3)
        texts = [accessor.codify("") for accessor in pydag.dag_accessors(dag)]
        assert texts == [".tree['a']", ".tree['b.c'][0]", ".tree['z']"]


def test_no_keys_are_made_at_a_cached_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that was compiled asks JAX for no keys of a state or a Dag."""
    net = Net()
    state = pj.optimizer(STATES["adamw, chain"]()).init(net)
    f = pj.jit(lambda run: jax.tree.map(lambda x: x + 1, run))
    run = (state, pj.Dag(net))
    for _ in range(3):
        run = f(run)

    def asked(_: Any) -> Any:
        raise AssertionError("a key was asked for")

    monkeypatch.setattr(jax_private, "flatten_one_level_with_keys", asked)
    run = f(run)
    assert int(run[0][1][0].count) == 4
