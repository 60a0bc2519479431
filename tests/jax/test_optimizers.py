# SPDX-License-Identifier: Apache-2.0
"""Optax sees a nested dict of the arrays that are trained; masks, states, errors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest

import pydag
import pydag.jaxinterop as pj


class Layer(pj.Module):
    """A weight, a bias, and configuration."""

    def __init__(self) -> None:
        self.weight, self.bias = jnp.ones((2, 2)), jnp.ones(2)
        self.act, self.size = jnp.tanh, 2


class Net(pj.Module):
    """Two layers and a tied head."""

    def __init__(self) -> None:
        self.layers = [Layer(), Layer()]
        self.head = self.layers[0].weight
        self.steps = jnp.int32(0)


def loss(net: Any) -> Any:
    """Of a net."""
    x = jnp.ones(2)
    for layer in net.layers:
        x = layer.act(x @ layer.weight + layer.bias)
    return jnp.sum((x @ net.head) ** 2)


def assert_alike(one: Any, other: Any) -> None:
    """Two pytrees of JAX's have one structure."""
    structures: Any = jax.tree.structure(one), jax.tree.structure(other)
    assert structures[0] == structures[1]


def shown(model: Any, **options: Any) -> Any:
    """What optax sees of a model."""
    seen: list[Any] = []

    def init(params: Any) -> Any:
        seen.append(params)
        return optax.EmptyState()

    pj.optimizer(optax.GradientTransformation(init, optax.identity().update), **options).init(model)
    return seen[0]


def shapes(tree: Any) -> Any:
    """A nested dict with shapes for arrays."""
    return jax.tree.map(lambda x: jnp.shape(x), tree)


def test_optax_sees_a_nested_dict_of_what_is_trained() -> None:
    """Attribute names, keys, indices; each array once; nothing else."""
    assert shapes(shown(Net())) == {
        "head": (2, 2),
        "layers": {0: {"bias": (2,)}, 1: {"bias": (2,), "weight": (2, 2)}},
    }
    assert type(shown(Net())["layers"]) is dict
    assert shapes(shown(Net(), wrt="*.bias")) == {"layers": {0: {"bias": (2,)}, 1: {"bias": (2,)}}}
    w = jnp.ones(3)
    assert shown(w) is w
    assert shown({"name": "x", "n": 3}) == {}
    assert shapes(shown([{"a": w}, (w, 2.0)])) == {0: {"a": (3,)}, 1: {1: ()}}


def test_keys_that_cannot_be_sorted_become_text() -> None:
    """JAX sorts the keys of dicts; other keys stay as they are."""
    w = jnp.ones(1)
    assert shapes(shown({1: w, "a": {2: w + 1, 10: w + 2}})) == {
        "1": (1,),
        "a": {2: (1,), 10: (1,)},
    }
    assert shapes(shown({1: w, "1": w + 1})) == {"1": (1,), "'1'": (1,)}


def test_a_variable_of_nnx_is_its_array() -> None:
    """Parameters alone are trained, unless `wrt=` says otherwise."""
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
    assert shapes(shown(model)) == {"bias": (3,), "scale": (3,)}
    both = (nnx.Param, nnx.BatchStat)
    assert shapes(shown(model, wrt=both)) == {
        "bias": (3,),
        "mean": (3,),
        "scale": (3,),
        "var": (3,),
    }
    opt = pj.optimizer(optax.sgd(1.0))
    ones = pj.tree.map(jnp.ones_like, model)
    updates, _ = opt.update(ones, opt.init(model), model)
    new = pj.apply_updates(model, updates)
    assert (new.bias[...].tolist(), new.mean[...].tolist()) == ([-1.0] * 3, [0.0] * 3)
    mask = pj.mask(model, "*bias*")
    assert mask(shown(model)) == {"bias": True, "scale": False}


def decayed(mask: Any) -> list[bool]:
    """Whether the head, a weight and a bias of a net decay."""
    model, opt = Net(), pj.optimizer(optax.add_decayed_weights(1.0, mask=mask))
    zeros = pj.tree.map(jnp.zeros_like, model)
    updates = opt.update(zeros, opt.init(model), model)[0]
    assert updates.head is updates.layers[0].weight
    found = updates.head, updates.layers[1].weight, updates.layers[1].bias
    return [bool(jnp.all(x == 1)) for x in found]


MASKS: dict[str, Callable[[Any], Any]] = {
    "by JAX's path": lambda p: jax.tree_util.tree_map_with_path(
        lambda k, _: k[-1].key != "bias", p
    ),
    "by pydag's path": lambda p: pydag.dag_map_with_path(lambda k, _: k[-1] != "bias", p),
    "by pj.tree": lambda p: pj.tree.map_with_path(lambda k, _: k[-1].key != "bias", p),
    "by shape": lambda p: jax.tree.map(lambda x: x.ndim > 1, p),
}


@pytest.mark.parametrize("name", MASKS)
def test_functions_of_tutorials_make_masks(name: str) -> None:
    """They get the nested dict."""
    assert decayed(MASKS[name]) == [True, True, False]


def test_masks_like_the_model() -> None:
    """`pj.mask` of a selection, of a tree like the model, of a prefix."""
    model = Net()
    assert decayed(pj.mask(model, "*.weight")) == [True, True, False]
    assert decayed(pj.mask(model, "head")) == [True, False, False]
    assert decayed(pj.mask(pj.tree.map(lambda x: jnp.ndim(x) > 1, model))) == [True, True, False]
    assert decayed(pj.mask({"head": True, "layers": [False, {"weight": False, "bias": True}]})) == [
        True,
        False,
        True,
    ]
    with pytest.raises(ValueError, match=r"mask\['layers'\]\[1\] .* not 'weight'"):
        decayed(pj.mask({"head": True, "layers": [False, {"bias": True}]}))


def test_labels_like_the_model() -> None:
    """Labels of `optax.partition`; and answers that are tuples."""
    model = Net()
    labels = pydag.dag_map(lambda flag: "w" if flag else "rest", pydag.dag_mask(model, "*.weight"))
    opt = pj.optimizer(
        optax.partition({"w": optax.sgd(1.0), "rest": optax.set_to_zero()}, pj.mask(labels))
    )
    ones = pj.tree.map(jnp.ones_like, model)
    updates, _ = opt.update(ones, opt.init(model), model)
    assert (float(updates.head[0, 0]), float(updates.layers[1].bias[0])) == (-1.0, 0.0)
    pair = optax.contrib.MuonDimensionNumbers()
    assert pj.mask({"a": pair, "b": None})({"a": 1, "b": 2}) == {"a": pair, "b": None}


def test_a_tree_without_mask_is_an_error_that_names_the_cure() -> None:
    """Optax would match it with the dict; what wants a model is a `TypeError`."""
    model = Net()
    with pytest.raises(ValueError, match="pytree structure") as caught:
        decayed(pydag.dag_mask(model, "*.weight"))
    assert "pydag.jaxinterop.mask(tree)" in caught.value.__notes__[-1]
    with pytest.raises(TypeError, match="nested dict"):
        decayed(lambda p: p.layers)
    labels = optax.selective_transform(optax.sgd(1.0), freeze_mask=pj.mask(model, "head"))
    with pytest.raises(TypeError, match=r"takes trees alone(.|\n)*optax\.partition"):
        pj.optimizer(labels).init(model)


def test_a_state_is_optaxs() -> None:
    """Its attributes, items and functions; it is a pytree that can be pickled and copied."""
    model = Net()
    state = pj.optimizer(optax.inject_hyperparams(optax.adam)(learning_rate=0.5)).init(model)
    assert float(state.hyperparams["learning_rate"]) == 0.5
    assert int(state.inner_state[0].count) == 0
    assert set(state.inner_state[0].mu) == {"head", "layers"}
    assert float(optax.tree.get(state, "learning_rate")) == 0.5
    changed = optax.tree.set(state, learning_rate=2.0)
    assert changed.hyperparams["learning_rate"] == 2.0
    for other in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state), copy.copy(state)):
        assert_alike(other, state)
        pj.optimizer(optax.inject_hyperparams(optax.adam)(learning_rate=0.5)).update(
            model, other, model
        )
    single = pj.optimizer(optax.scale_by_adam()).init({"a": jnp.ones(2)})
    assert int(single._replace(count=3).count) == 3
    assert [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(single)] == [
        ".count",
        ".mu['a']",
        ".nu['a']",
    ]
    mapped = optax.tree_map_params(optax.scale_by_adam(), lambda x: x + 1, single.inner)
    assert mapped.mu["a"].tolist() == [1.0, 1.0]
    with pytest.raises(AttributeError, match="nothing"):
        _ = single.nothing


@pytest.mark.parametrize(
    "tx",
    [optax.sgd(0.1, 0.9), optax.adam(0.1), optax.ema(0.5), optax.lbfgs()],
    ids=["sgd", "adam", "ema", "lbfgs"],
)
def test_a_state_holds_no_array_of_the_callers(tx: Any) -> None:
    """So state, model, gradient and updates can each be donated, and a state written in place."""
    model, opt = Net(), pj.optimizer(tx)
    state = opt.init(model)
    gradient = pj.grad(loss)(model)

    def update(gradient: Any, state: Any, model: Any) -> Any:
        more = {"value": loss(model), "grad": gradient, "value_fn": loss}
        return opt.update(gradient, state, model, **more)

    updates, new = update(gradient, state, model)
    others = {id(x) for tree in (model, gradient, updates) for x in jax.tree.leaves(tree)}
    arrays = list(map(id, jax.tree.leaves(new)))
    assert others.isdisjoint(arrays)
    assert len(set(arrays)) == len(arrays)

    def step(model: Any, state: Any) -> None:
        updates, new = update(pj.grad(loss)(model), state, model)
        pydag.dag_update(model, pj.apply_updates(model, updates))
        pydag.dag_update(state, new)

    pj.jit(step, update_argnums=(0, 1))(model, state)
    for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(new), strict=True):
        assert jnp.allclose(one, other)


def test_a_number_of_the_model_may_change() -> None:
    """The state knows the structure and what is trained, and no configuration."""
    model, opt = Net(), pj.optimizer(optax.sgd(0.1))
    state = opt.init(model)
    model.layers[0].size = 7
    updates, new = opt.update(pj.grad(loss)(model), state, model)
    assert updates.layers[0].size == 7
    assert_alike(new, state)


def test_what_is_not_trained_has_no_update() -> None:
    """A gradient of everything for an optimizer of a part, with and without the model."""
    model, opt = Net(), pj.optimizer(optax.sgd(1.0), wrt="*.bias")
    gradient = pj.grad(loss)(model)
    for more in ((), (model,)):
        updates, _ = opt.update(gradient, opt.init(model), *more)
        assert (updates.head, updates.steps, updates.layers[1].weight) == (None, None, None)
        assert (updates.layers[0].size, updates.layers[0].act) == (2, jnp.tanh)
        new = pj.apply_updates(model, updates)
        assert new.head is model.head
        assert new.layers[0].bias.tolist() != [1.0, 1.0]


def test_no_gradient_where_the_optimizer_trains() -> None:
    """An error with the path and the cure."""
    model, opt = Net(), pj.optimizer(optax.sgd(1.0))
    gradient = pj.grad(loss, wrt="*.bias")(model)
    with pytest.raises(ValueError, match=r"None at updates\.head, (.*\n)*.*the same selection"):
        opt.update(gradient, opt.init(model), model)


def test_refs_are_trained_if_selected() -> None:
    """By their contents; `apply_updates` writes into them."""
    ref = jax.new_ref(jnp.ones(2))
    model: dict[str, Any] = {"w": jnp.ones(2), "ref": ref}
    assert shapes(shown(model)) == {"w": (2,)}
    opt = pj.optimizer(optax.sgd(1.0, 0.9), wrt=["['w']", "['ref']"])
    gradient = {"w": jnp.ones(2), "ref": jnp.ones(2)}
    updates, _ = opt.update(gradient, opt.init(model), model)
    new = pj.apply_updates(model, updates)
    assert new["ref"] is ref
    assert (ref[...].tolist(), new["w"].tolist()) == ([0.0, 0.0], [0.0, 0.0])


def test_a_dag_stands_for_its_tree() -> None:
    """What is given as a `Dag` comes out as one, and plain optax adds it."""
    model: dict[str, Any] = {"net": (layer := Layer()), "tied": layer.weight}
    dag, opt = pj.Dag(model), pj.optimizer(optax.sgd(1.0))
    gradient = pj.Dag(pj.tree.map(jnp.ones_like, model))
    updates, state = opt.update(gradient, opt.init(dag), dag)
    assert set(shown(dag)) == {"net"}
    for new in (optax.apply_updates(dag, updates), pj.apply_updates(dag, updates)):
        assert new.tree["tied"] is new.tree["net"].weight
        assert new.tree["net"].bias.tolist() == [0.0, 0.0]
    opt.update(gradient, state, new)


@pytest.mark.parametrize("name", ["jit", "vmap", "grad", "scan", "cond"])
def test_a_plain_trace_is_named_and_its_wrapper(name: str) -> None:
    """What JAX's own function untied is an error that says which of pydag's keeps ties."""
    w = jnp.ones(2)
    model, opt = {"a": w, "b": w}, pj.optimizer(optax.sgd(0.1))
    state = opt.init(model)

    def step(model: Any) -> Any:
        opt.update(model, state, model)
        return jnp.sum(model["a"])

    calls: dict[str, Callable[[], Any]] = {
        "jit": lambda: jax.jit(step)(model),
        "vmap": lambda: jax.vmap(step)(jax.tree.map(lambda x: x[None], model)),
        "grad": lambda: jax.grad(step)(model),
        "scan": lambda: jax.lax.scan(lambda c, _: (c, step(c)), model, None, length=2),
        "cond": lambda: jax.lax.cond(jnp.array(True), step, step, model),
    }
    with pytest.raises(pydag.SharingError) as caught:
        calls[name]()
    assert f"pydag.jaxinterop.{name} keeps ties" in str(caught.value)
    assert "params['a'] and params['b']" in str(caught.value)


def test_what_wants_more_than_a_dict() -> None:
    """`lookahead` and `tree_map_params` of ours are a `TypeError`; and a state that isn't ours."""
    model = {"a": jnp.ones(2)}
    opt = pj.optimizer(optax.lookahead(optax.sgd(0.1), 2, 0.5))
    with pytest.raises(TypeError, match="lookahead"):
        opt.init(optax.LookaheadParams.init_synced(model))
    with pytest.raises(TypeError, match="nested dict"):
        opt.update(model, opt.init(model), model)
    adam = pj.optimizer(optax.adam(0.1))
    with pytest.raises(TypeError, match=r"state\.inner"):
        optax.tree_map_params(adam, lambda x: x, adam.init(model))
    with pytest.raises(TypeError, match=r"opt\.init"):
        adam.update(model, optax.adam(0.1).init(model), model)
    with pytest.raises(TypeError, match=r"optax\.adam"):
        pj.optimizer(0.1)
