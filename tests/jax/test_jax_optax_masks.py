# SPDX-License-Identifier: Apache-2.0
"""Masks and labels of optax's for tied models: trees, prefixes, functions of paths."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.tree_util import keystr, tree_map_with_path

import pydag
from pydag import SharingError
from pydag import jaxinterop as pj


@pydag.register_module
class Model:
    def __init__(self) -> None:
        self.w = jnp.ones((2, 2))
        self.b = jnp.zeros(2)
        self.t = self.w
        self.n = 3


@pydag.register_fields
class Unknown:
    """A node that JAX doesn't know."""

    def __init__(self, w: Any) -> None:
        self.w = w


def tied() -> dict[str, Any]:
    w = jnp.ones(2)
    return {"t": w, "w": w, "b": jnp.ones(2), "n": 3}


def decayed(model: Any, mask: Any) -> Any:
    """The updates of weight decay alone: 0.5 where the mask is True, for parameters of one."""
    tx = pj.optimizer(optax.add_decayed_weights(0.5, mask=mask))
    zero = pj.grad(lambda m: 0.0 * sum(jnp.sum(x) for x in pj.tree.leaves(m)))(model)
    return tx.update(zero, tx.init(model), model)[0]


FLAGS = {"t": True, "w": True, "b": False, "n": False}


@pytest.mark.parametrize(
    "mask",
    [
        FLAGS,
        lambda p: FLAGS,
        lambda p: {name: name != "b" for name in p},
        lambda p: pydag.dag_mask(p, "['w']"),
        pydag.dag_mask(tied(), "['w']"),
        pj.Dag(pydag.dag_mask(tied(), "['w']")),
    ],
)
def test_masks_of_a_dict(mask: Any) -> None:
    """A tree, a function that makes one, and one of pydag's say the same."""
    updates = decayed(tied(), mask)
    assert updates["w"] is updates["t"]
    assert (updates["w"].tolist(), updates["b"].tolist()) == ([0.5, 0.5], [0.0, 0.0])
    assert updates["n"] is None


def test_a_mask_of_a_module() -> None:
    """A module of booleans is a mask, also where JAX sees a tied leaf of it once."""
    updates = decayed(Model(), pydag.dag_mask(Model(), "w"))
    assert updates.w is updates.t
    assert (updates.w[0, 0], updates.b[0], updates.n) == (0.5, 0.0, None)


@pytest.mark.parametrize("prefix", [True, {"body": True, "head": True}])
def test_a_prefix(prefix: Any) -> None:
    """One flag stands for all below it."""
    w = jnp.ones(2)
    updates = decayed({"body": [w, jnp.ones(2)], "head": {"w": w}}, prefix)
    assert updates["body"][0] is updates["head"]["w"]
    assert [x.tolist() for x in updates["body"]] == [[0.5, 0.5]] * 2


@pytest.mark.parametrize("model", [tied(), {"t": Unknown(w := jnp.ones(2)), "w": w}])
def test_a_mask_by_path_sees_every_path(model: Any) -> None:
    """JAX's functions go to a tied leaf on each path; one True selects it, with a warning."""

    def mask(params: Any) -> Any:
        return tree_map_with_path(lambda path, _: keystr(path).endswith("['w']"), params)

    with pytest.warns(UserWarning, match=r"params\['t'\](.w)? is False(.|\n)*params\['w'\]"):
        updates = decayed(model, mask)
    assert updates["w"].tolist() == [0.5, 0.5]


def test_a_tree_that_says_both() -> None:
    """A plain tree with two answers for one leaf is an error that names both paths."""
    with pytest.raises(SharingError, match=r"params\['t'\](.|\n)*params\['w'\](.|\n)*dag_mask"):
        decayed(tied(), FLAGS | {"t": False})


@pytest.mark.parametrize("is_function", [True, False])
def test_two_labels_for_one_leaf(is_function: bool) -> None:
    """They are an error that names both paths, whoever gives them."""
    labels = {"t": "a", "w": "z", "b": "z", "n": "z"}
    groups = {"a": optax.sgd(1.0), "z": optax.set_to_zero()}
    tx = pj.optimizer(optax.partition(groups, (lambda p: labels) if is_function else labels))
    with pytest.raises(SharingError, match=r"params\['t'\](.|\n)*params\['w'\](.|\n)*dag_mask"):
        tx.init(tied())


def test_a_mask_inside_of_groups() -> None:
    """A mask for all of a model is one for a group, too; and the given transformation stays."""
    labels = {"t": "a", "w": "a", "b": "z", "n": "z"}
    bare = optax.partition(
        {"a": optax.adamw(1.0, mask=FLAGS), "z": optax.chain(optax.adam(0.1))}, labels
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tx = pj.optimizer(bare)
        model = tied()
        gradient = pj.grad(lambda m: jnp.sum(m["w"] * m["t"] * m["b"]))(model)
        updates, _ = tx.update(gradient, tx.init(model), model)
    assert updates["w"] is updates["t"]
    plain = {"t": jnp.ones(2), "w": jnp.ones(2), "b": jnp.ones(2), "n": 3}
    assert jax.tree.leaves(bare.init(plain))


class Own(pj.Module):
    def __init__(self) -> None:
        self.w = self.t = jnp.ones(2)
        self.n = 3


def weight(model: Any) -> Any:
    return model["w"] if isinstance(model, dict) else model.w


def schedule_free(make: Any, params: Any, gradient: Any, apply: Any) -> tuple[Any, Any]:
    """Parameters and state after three steps."""
    tx = make(optax.contrib.schedule_free_sgd(0.1))
    state = tx.init(params)
    for _ in range(3):
        updates, state = tx.update(gradient(params), state, params)
        params = apply(params, updates)
    return params, state


@pytest.mark.parametrize("make", [tied, Model, Own])
def test_averaged_parameters_of_schedule_free(make: Any) -> None:
    """`schedule_free_eval_params` takes a `Dag` of any model, and no model itself."""

    def loss(model: Any) -> Any:
        return jnp.sum(weight(model) ** 2)

    evaluated = optax.contrib.schedule_free_eval_params
    model, state = schedule_free(pj.optimizer, make(), pj.grad(loss), pj.apply_updates)
    found = evaluated(state, pj.Dag(model)).tree
    t = found["t"] if isinstance(found, dict) else found.t
    assert weight(found) is t
    plain = schedule_free(lambda tx: tx, {"w": jnp.ones(2)}, jax.grad(loss), optax.apply_updates)
    bare = evaluated(plain[1], plain[0])
    assert jnp.allclose(t, bare["w"], rtol=1e-6)
    if isinstance(found, dict):
        assert found["n"] == pytest.approx(3)
    jitted = pj.jit(lambda model, state: evaluated(state, pj.Dag(model)).tree)(model, state)
    assert jnp.allclose(weight(jitted), t)
    with pytest.raises(
        TypeError, match=r"params: (.|\n)*state.z: a Dag of (.|\n)*jaxinterop.Dag\(model\)"
    ):
        evaluated(state, model)


def test_an_optimizer_of_nnx() -> None:
    """`nnx.Optimizer` begins with variables and updates by values, as with bare optax."""
    nnx = pytest.importorskip("flax.nnx")

    def trained(tx: Any) -> Any:
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
        for _ in range(3):
            optimizer.update(model, nnx.grad(lambda m: jnp.sum(m(jnp.ones(2)) ** 2))(model))
        return model.kernel[...]

    assert jnp.array_equal(trained(pj.optimizer(optax.adam(0.1))), trained(optax.adam(0.1)))


@pytest.mark.parametrize("selects", ["Param", "*kernel*", "both"])
def test_an_optimizer_of_nnx_with_a_selection(selects: str) -> None:
    """`wrt=` selects by the class of a Variable, by its path; what it doesn't select stays."""
    nnx = pytest.importorskip("flax.nnx")
    model, x = nnx.Linear(2, 2, rngs=nnx.Rngs(0)), jnp.ones(2)
    model.scale = nnx.BatchStat(jnp.ones(2))
    before = {name: getattr(model, name)[...] for name in ("kernel", "bias", "scale")}
    wrt = {"Param": nnx.Param, "*kernel*": "*kernel*", "both": (nnx.Param, nnx.BatchStat)}[selects]
    tx, trained = pj.optimizer(optax.sgd(0.5), wrt=wrt), (nnx.Param, nnx.BatchStat)
    optimizer = nnx.Optimizer(model, tx, wrt=trained)

    def loss(model: Any) -> Any:
        return jnp.sum(model(x) * model.scale[...])

    gradient = nnx.grad(loss, argnums=nnx.DiffState(0, trained))(model)
    optimizer.update(model, gradient)
    changed = {name for name in before if (getattr(model, name)[...] != before[name]).any()}
    assert (
        changed
        == {
            "Param": {"kernel", "bias"},
            "*kernel*": {"kernel"},
            "both": {"kernel", "bias", "scale"},
        }[selects]
    )
    assert model.bias[...].tolist() == ([0.0, 0.0] if selects == "*kernel*" else [-0.5, -0.5])


def test_an_optimizer_of_nnx_with_nothing_to_train() -> None:
    """A selection by a class that no Variable has is an error, as for a model."""
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    with pytest.raises(TypeError, match="nothing to train"):
        nnx.Optimizer(model, pj.optimizer(optax.sgd(0.5), wrt=nnx.BatchStat), wrt=nnx.Param)
