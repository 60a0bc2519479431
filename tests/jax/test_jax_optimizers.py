# SPDX-License-Identifier: Apache-2.0
"""Optax sees a nested dict of the arrays that are trained; masks, states, errors."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax_models import Layer as SharedLayer
from jax_models import assert_layers_tied, by_hand, layers, loss_of_layers, parts
from optax import contrib

import pydag
import pydag.jaxinterop as pj
from pydag import SharingError
from pydag.jaxinterop import Dag


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
    """Such functions get the nested dict."""
    assert decayed(MASKS[name]) == [True, True, False]


def test_masks_like_the_model() -> None:
    """`pj.mask` takes a selection of a model, a tree like the model, or a prefix."""
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
    """Attributes, items and functions are optax's; a state is a pytree, pickled and copied."""
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
    """State, model, gradient and updates can each be donated, and a state written in place."""
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
    """A gradient may be of everything for an optimizer of a part, with and without the model."""
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
    """An error has the path and the cure."""
    model, opt = Net(), pj.optimizer(optax.sgd(1.0))
    gradient = pj.grad(loss, wrt="*.bias")(model)
    with pytest.raises(ValueError, match=r"None at updates\.head, (.*\n)*.*the same selection"):
        opt.update(gradient, opt.init(model), model)


def test_refs_are_trained_if_selected() -> None:
    """Refs are trained by their contents; `apply_updates` writes into them."""
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


def test_further_arguments_of_an_update() -> None:
    """Trees like the model become dicts, in tuples, too; functions of it get it, or any value."""
    got: list[Any] = []

    def update(updates: Any, state: Any, params: Any = None, *, more: Any, f: Any) -> Any:
        got.extend([more, f(params), f(3)])
        return updates, state

    def f(x: Any) -> Any:
        return x if x == 3 else x["a"] is x["b"][0]

    w = jnp.ones(2)
    model = {"a": w, "b": [w]}
    tx = pj.optimizer(optax.GradientTransformationExtraArgs(lambda _: (), update))
    tx.update(model, tx.init(model), model, more=("text", model), f=f)
    assert (got[0][0], list(got[0][1]), *got[1:]) == ("text", ["a"], True, 3)


def with_more() -> dict[str, Any]:
    """The layers, with a counter, a key, a flag and a function."""
    rest = {"steps": jnp.int32(7), "key": jax.random.key(0), "flag": True, "f": jnp.tanh}
    return {**layers(), **rest}


def test_a_train_state() -> None:
    """flax's `TrainState` takes a Dag of what is trained and such an optimizer."""
    train_state = pytest.importorskip("flax.training.train_state")
    assert "body" in Dag(with_more())
    assert "other" not in Dag(with_more())
    assert "body" not in Dag(SharedLayer(1.0, 2.0, "x"))
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
    """An error has the paths, as for a gradient of another structure; nothing is changed."""
    ours = pj.optimizer(optax.adam(0.1))
    w = jnp.ones(2)
    model = {"a": w, "b": w}
    untied = {"a": w, "b": w + 0}
    for state_of, given in ((model, untied), (untied, model)):
        state = ours.init(state_of)
        before = jax.tree.leaves(state)
        with pytest.raises(SharingError, match="shared in another way") as caught:
            ours.update(given, state, given)
        made = "was assigned or tied since, make a new state: state = opt.init(model)"
        for text in ("params['a']", "params['b']", "one object", "two objects", "retie", made):
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


def flat_loss(p: Any) -> Any:
    return (p["a"] ** 2 * p["b"]).sum()


def flat_model() -> dict[str, Any]:
    w = jnp.arange(1.0, 4.0)
    return {"a": w, "b": w}


def test_outside_of_traces() -> None:
    """A gradient and updates that plain functions untied are errors that name what keeps ties."""
    opt = pj.optimizer(optax.sgd(0.1))
    model = flat_model()
    state = opt.init(model)
    with pytest.raises(SharingError, match=r"Take pydag\.jaxinterop's grad"):
        opt.update(jax.grad(flat_loss)(model), state, model)
    untied = jax.tree.map(lambda x: x + 0, model)
    with pytest.raises(SharingError, match=r"pydag\.retie"):
        opt.update(pj.grad(flat_loss)(model), state, untied)
    with pytest.raises(SharingError, match=r"pydag\.jaxinterop\.optimizer\(tx\)"):
        pj.apply_updates(model, untied)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_copies_and_files_keep_the_structure(name: str, tmp_path: Path) -> None:
    """A state that was copied, pickled, saved or mapped over is still for the model's sharing."""
    opt = pj.optimizer(TRANSFORMATIONS[name]())
    model = flat_model()
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
        u, _ = opt.update(pj.grad(flat_loss)(model), other, model)
        assert u["a"] is u["b"]
        with pytest.raises(SharingError, match="shared in another way"):
            opt.update(pj.grad(flat_loss)(untied), other, untied)


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


# Those that can't be called with a learning rate alone, or without arguments.
ARGUMENTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "adaptive_grad_clip": lambda masks: optax.adaptive_grad_clip(0.1),
    "add_decayed_weights": lambda masks: optax.add_decayed_weights(0.1, masks["flags"]),
    "add_noise": lambda masks: optax.add_noise(0.1, 0.5, 0),
    "apply_if_finite": lambda masks: optax.apply_if_finite(optax.adam(0.1), 3),
    "apply_every": lambda masks: optax.apply_every(2),
    "chain": lambda masks: optax.chain(optax.clip(1.0), optax.adam(0.1)),
    "clip": lambda masks: optax.clip(0.5),
    "clip_by_block_rms": lambda masks: optax.clip_by_block_rms(0.5),
    "clip_by_global_norm": lambda masks: optax.clip_by_global_norm(0.5),
    "conditionally_mask": lambda masks: optax.conditionally_mask(optax.adam(0.1), lambda n: n > 0),
    "conditionally_transform": lambda masks: optax.conditionally_transform(optax.adam(0.1),
        lambda n: n > 0),
    "maybe_update": lambda masks: optax.maybe_update(optax.adam(0.1), lambda n: n > 0),
    "ema": lambda masks: optax.ema(0.9),
    "flatten": lambda masks: optax.flatten(optax.adam(0.1)),
    "freeze": lambda masks: optax.freeze(masks["others"]),
    "masked": lambda masks: optax.masked(optax.adam(0.1), masks["flags"]),
    "MultiSteps": lambda masks: optax.MultiSteps(optax.adam(0.1), 2),
    "multi_transform": lambda masks: optax.multi_transform({"a": optax.sgd(0.1),
        "z": optax.adam(0.1)}, masks["labels"]),
    "named_chain": lambda masks: optax.named_chain(("one", optax.clip(1.0)),
        ("two", optax.sgd(0.1))),
    "noisy_sgd": lambda masks: optax.noisy_sgd(0.1, key=0),
    "stateless": lambda masks: optax.stateless(lambda u,
        p: jax.tree.map(lambda g, x: g + 0.1 * x, u, p)),
    "stateless_with_tree_map": lambda masks: optax.stateless_with_tree_map(lambda g,
        x: g + 0.1 * x),
    "partition": lambda masks: optax.partition({"a": optax.sgd(0.1), "z": optax.set_to_zero()},
        masks["labels"]),
    "scale": lambda masks: optax.scale(0.5),
    "scale_by_learning_rate": lambda masks: optax.scale_by_learning_rate(0.1),
    "scale_by_schedule": lambda masks: optax.scale_by_schedule(optax.linear_schedule(1.0, 0.1, 3)),
    "trace": lambda masks: optax.trace(0.9),
    "contrib.mechanize": lambda masks: contrib.mechanize(optax.adam(0.1)),
    "contrib.muon": lambda masks: contrib.muon(0.1),
    "contrib.sam": lambda masks: contrib.sam(optax.sgd(0.1), optax.sgd(0.05), sync_period=2),
    "contrib.schedule_free": lambda masks: contrib.schedule_free(optax.sgd(0.1), 0.1),
    "inject_hyperparams": lambda masks: optax.inject_hyperparams(optax.adamw,
        static_args="mask")(0.1, mask=masks["flags"]),
}  # fmt: skip


# Not transformations to be tried, or tried elsewhere.
LEFT_OUT = {
    "optimistic_adam": "deprecated for optimistic_adam_v2, and warns",
    "lookahead": "trains a pair of models; a TypeError",
    "measure_with_ema": "takes measures, which are no part of training",
    "contrib.scale_by_muon": "takes matrices alone; it is a part of contrib.muon",
    "GradientTransformationExtraArgs": "a class of transformations",
    "GradientTransformation": "a class of transformations",
    "inject_stateful_hyperparams": "another, deprecated name of inject_hyperparams",
    "selective_transform": "takes no function as a mask",
    "skip_not_finite": "a condition for MultiSteps, not a transformation",
    "skip_large_updates": "a condition for MultiSteps, not a transformation",
    "monitor": "takes measures, which are no part of training",
    "snapshot": "takes measures, which are no part of training",
    "with_extra_args_support": "gives the transformation that it is given",
    "contrib.split_real_and_imaginary": "for complex parameters",
    "contrib.dpsgd": "needs gradients per example",
    "contrib.differentially_private_aggregate": "needs gradients per example",
    "differentially_private_aggregate": "needs gradients per example",
    "dpsgd": "needs gradients per example",
    "contrib.hutchinson_estimator_diag_hessian": "needs the loss as an object of its own",
    "contrib.sophia": "needs the loss as an object of its own",
    "contrib.scale_by_sophia": "needs the loss as an object of its own",
}

DISTINCT_MASKS: dict[str, Any] = {
    "flags": {"w": True, "copy": True, "b": False, "width": False},
    "others": {"w": False, "copy": False, "b": True, "width": False},
    "labels": {"w": "a", "copy": "a", "b": "z", "width": "z"},
}


def made(name: str, *, is_ours: bool = False) -> Any:
    """A transformation of this name; None for another function.

    Args:
        is_ours: Whether masks and labels are for `pj.optimizer`; else for a dict with "w" and "b".
    """
    if name in ARGUMENTS:
        return ARGUMENTS[name](
            {
                key: pj.mask(tree) if is_ours else {name: tree[name] for name in ("b", "w")}
                for key, tree in DISTINCT_MASKS.items()
            }
        )
    function = functools.reduce(getattr, name.split("."), optax)
    for arguments in ((), (0.1,)):
        try:
            found = function(*arguments)
        except Exception:
            continue
        if isinstance(found, optax.GradientTransformation | optax.GradientTransformationExtraArgs):
            return found
    return None


def names() -> list[str]:
    """The public functions of optax and of optax.contrib that say that they make one."""
    found = []
    for module, prefix in ((optax, ""), (contrib, "contrib.")):
        for name, function in vars(module).items():
            if name.startswith("_") or not callable(function) or prefix + name in LEFT_OUT:
                continue
            try:
                returns = str(inspect.signature(function).return_annotation)
            except (TypeError, ValueError):
                continue
            if "GradientTransformation" in returns or prefix + name in ARGUMENTS:
                found.append(prefix + name)
    return found


W, B = jnp.array([[1.0, -2.0], [0.5, 3.0]]), jnp.array([0.25, -1.0])


def distinct_loss(p: Any) -> Any:
    return jnp.sum((jnp.array([1.0, 2.0]) @ p["w"] + p["b"]) ** 2) + jnp.sum(p["w"] ** 2)


@pytest.mark.parametrize("name", names())
def test_like_bare_optax(name: str) -> None:
    """Three steps give the numbers that they give for each array once, and ties stay."""
    tx = made(name)
    if tx is None:
        pytest.fail(f"{name} needs arguments: name them in ARGUMENTS, or a reason in LEFT_OUT")
    model: Any = {"b": B, "copy": W, "w": W}
    ours = pj.optimizer(made(name, is_ours=True))
    theirs: Any = {"b": B, "w": W}
    state, expected = ours.init(model), tx.init(theirs)
    takes_extra = isinstance(tx, optax.GradientTransformationExtraArgs) or name == "MultiSteps"
    takes_extra = takes_extra and name != "contrib.sam"
    for _ in range(3):
        value, gradient = pj.value_and_grad(distinct_loss)(model)
        extra = {"value": value, "grad": gradient, "value_fn": distinct_loss} if takes_extra else {}
        updates, state = ours.update(gradient, state, model, **extra)
        kept = {id(x) for x in jax.tree.leaves(state)}
        assert kept.isdisjoint(map(id, pydag.dag_leaves((gradient, updates))))
        model = pj.apply_updates(model, updates)
        value, plain = jax.value_and_grad(distinct_loss)(theirs)
        if takes_extra:
            extra = {"value": value, "grad": plain, "value_fn": distinct_loss}
        changes, expected = tx.update(plain, expected, theirs, **extra)
        theirs = optax.apply_updates(theirs, changes)
    assert model["w"] is model["copy"]
    np.testing.assert_allclose(model["w"], theirs["w"], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(model["b"], theirs["b"], rtol=1e-6, atol=1e-7)
