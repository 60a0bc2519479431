# SPDX-License-Identifier: Apache-2.0
"""Optax on models as they are, and through `Dag`; states, structures, plain functions."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.tree_util import tree_structure
from jax_models import Layer, assert_layers_tied, by_hand, layers, loss_of_layers, parts

import pydag
from pydag import SharingError
from pydag import jaxinterop as pj
from pydag.jaxinterop import Dag


def with_more() -> dict[str, Any]:
    """The layers, with a counter, a key, a flag and a function."""
    rest = {"steps": jnp.int32(7), "key": jax.random.key(0), "flag": True, "f": jnp.tanh}
    return {**layers(), **rest}


def assert_alike(one: Any, other: Any) -> None:
    """Two pytrees of JAX's have one structure."""
    structures: Any = tree_structure(one), tree_structure(other)
    assert structures[0] == structures[1]


def test_a_train_state() -> None:
    """flax's `TrainState` takes a Dag of what is trained and such an optimizer."""
    train_state = pytest.importorskip("flax.training.train_state")
    assert "body" in Dag(with_more())
    assert "other" not in Dag(with_more())
    assert "body" not in Dag(Layer(1.0, 2.0, "x"))
    state = train_state.TrainState.create(
        apply_fn=None, params=Dag(layers()), tx=pj.optimizer(optax.adamw(0.1))
    )

    @jax.jit
    def step(state: Any) -> Any:
        gradient = pj.grad(lambda dag: loss_of_layers(dag.tree))(state.params)
        return state.apply_gradients(grads=gradient)

    first = float(loss_of_layers(state.params.tree))
    for _ in range(3):
        state = step(state)
    assert_layers_tied(state.params.tree)
    assert float(loss_of_layers(state.params.tree)) < first
    assert int(state.step) == 3


def test_an_order_of_keys() -> None:
    """Dicts are matched by key; results have the order of the model, states that of the state."""
    one = {"a": jnp.float32(1.0), "b": jnp.float32(2.0)}
    other = {"b": jnp.float32(20.0), "a": jnp.float32(10.0)}
    ours = pj.optimizer(optax.sgd(1.0, momentum=0.9))
    state = ours.init(one)
    updates, after = ours.update(other, state, {"b": one["b"], "a": one["a"]})
    assert list(updates) == ["b", "a"]
    assert_alike(after, state)
    new = pj.apply_updates(one, updates)
    assert new == {"a": -9.0, "b": -18.0}
    assert list(new) == ["a", "b"]
    assert pj.apply_updates(Dag(one), Dag(updates)).tree == new


def test_a_state_for_another_structure() -> None:
    """Is told with paths, as is a gradient of another structure; nothing is changed."""
    ours = pj.optimizer(optax.adam(0.1))
    w = jnp.ones(2)
    model = {"a": w, "b": w}
    untied = {"a": w, "b": w + 0}
    for state_of, given in ((model, untied), (untied, model)):
        state = ours.init(state_of)
        before = jax.tree.leaves(state)
        with pytest.raises(SharingError, match="shared in another way") as caught:
            ours.update(given, state, given)
        for text in ("params['a']", "params['b']", "one object", "two objects", "pydag.retie"):
            assert text in str(caught.value)
        assert jax.tree.leaves(state) == before
    with pytest.raises(SharingError, match=r"tree\['a'\] and tree\['b'\] are one object"):
        ours.update(untied, ours.init(model))
    other = {"a": w, "c": w}
    for more in ((other,), ()):
        with pytest.raises(ValueError, match="'c'"):
            ours.update(other, ours.init(model), *more)
    with pytest.raises(ValueError, match="'c'"):
        ours.update(other, ours.init(model), model)


def test_a_selection_that_fits_nothing() -> None:
    """A pattern that no path matches names the nearest; nothing to train is an error."""
    with pytest.raises(ValueError, match=r"nearest that exist: \['body'\].w"):
        pj.optimizer(optax.adam(0.1), wrt="['bodi'].w").init(with_more())
    with pytest.raises(TypeError, match=r"nothing to train.*\n.*have one: .*params\['body'\].w"):
        pj.optimizer(optax.adam(0.1), wrt="*steps*").init(with_more())
    w = jnp.ones(2)
    with pytest.raises(SharingError, match="two answers"):
        pj.optimizer(optax.adam(0.1), wrt={"a": True, "b": False}).init({"a": w, "b": w})
    assert pj.optimizer(optax.adam(0.1), wrt="a").init({})[0].mu == {}


def test_applied_updates_keep_types() -> None:
    """Dtypes, weak types and sharing of the model; two updates for one leaf are refused."""
    w, half = jnp.ones(2), jnp.ones(2, jnp.bfloat16)
    weak = jnp.asarray(2.0)
    model: dict[str, Any] = {
        "a": w,
        "b": [w],
        "half": half,
        "weak": weak,
        "number": 1.5,
        "n": 3,
        "name": "x",
    }
    updates = pydag.dag_map(lambda x: None if isinstance(x, str | int) else jnp.float32(1.0), model)
    new = pj.apply_updates(model, updates)
    assert new["a"] is new["b"][0]
    assert (new["half"].dtype, new["n"], new["name"]) == (jnp.bfloat16, 3, "x")
    assert new["weak"].weak_type
    assert new["number"].weak_type
    assert float(new["number"]) == 2.5
    assert not new["a"].weak_type
    jitted = pj.jit(pj.apply_updates)(model, updates)
    assert jitted["weak"].weak_type
    with pytest.raises(SharingError, match="are one object"):
        pj.apply_updates({"a": w, "b": [w]}, {"a": w, "b": [w + 0]})
    with pytest.raises(ValueError, match="'c'"):
        pj.apply_updates({"a": w}, {"c": w})
    shared = pj.apply_updates({"a": w, "b": w + 1}, {"a": half, "b": half})
    assert shared["a"] is not shared["b"]


TRANSFORMATIONS = {
    "sgd": lambda: optax.sgd(0.1),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1)),
    "adam": lambda: optax.adam(0.1),
}


def _loss(p: Any) -> Any:
    return (p["a"] ** 2 * p["b"]).sum()


def _model() -> dict[str, Any]:
    w = jnp.arange(1.0, 4.0)
    return {"a": w, "b": w}


def test_outside_of_traces() -> None:
    """A gradient and updates that plain functions untied are errors that name what keeps ties."""
    opt = pj.optimizer(optax.sgd(0.1))
    model = _model()
    state = opt.init(model)
    with pytest.raises(SharingError, match=r"Take pydag\.jaxinterop's grad"):
        opt.update(jax.grad(_loss)(model), state, model)
    untied = jax.tree.map(lambda x: x + 0, model)
    with pytest.raises(SharingError, match=r"pydag\.retie"):
        opt.update(pj.grad(_loss)(model), state, untied)
    with pytest.raises(SharingError, match=r"pydag\.jaxinterop\.optimizer\(tx\)"):
        pj.apply_updates(model, untied)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_copies_and_files_keep_the_structure(name: str, tmp_path: Path) -> None:
    """A state that was copied, pickled, saved or mapped over is still for the model's sharing."""
    opt = pj.optimizer(TRANSFORMATIONS[name]())
    model = _model()
    state = opt.init(model)
    untied = {"a": model["a"], "b": model["b"] + 0}
    pj.save(tmp_path / "run.dag", {"model": model, "state": state})
    saved = pj.load(tmp_path / "run.dag", {"model": model, "state": state})["state"]
    others = [
        copy.deepcopy(state),
        pickle.loads(pickle.dumps(state)),
        jax.tree.map(jnp.copy, state),
        pydag.dag_map(lambda x: x, state),
        saved,
    ]
    for other in others:
        u, _ = opt.update(pj.grad(_loss)(model), other, model)
        assert u["a"] is u["b"]
        with pytest.raises(SharingError, match="shared in another way"):
            opt.update(pj.grad(_loss)(untied), other, untied)


OPTIMIZERS: dict[str, Any] = {
    "adam": optax.adam(0.1),
    "decay": optax.adamw(0.1, weight_decay=0.3),
    "factored": optax.adafactor(0.1),
    "trust ratio": optax.lamb(0.1),
    "steps": optax.MultiSteps(optax.adam(0.1), every_k_schedule=2),
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

    ours, state = trained(Dag(layers()), lambda dag: loss_of_layers(dag.tree))
    theirs, expected = trained(parts(layers()), by_hand)
    assert_layers_tied(ours.tree)
    assert len(jax.tree.leaves(state)) == len(jax.tree.leaves(expected))
    for path, leaf in parts(ours.tree).items():
        assert jnp.allclose(leaf, theirs[path], rtol=1e-4, atol=1e-6), path
