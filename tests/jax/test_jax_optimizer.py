# SPDX-License-Identifier: Apache-2.0
"""`optimizer` and `apply_updates`: optax on models as they are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
import tied_layers
from jax.tree_util import tree_structure
from tied_layers import Layer, assert_tied, loss

import pydag
from pydag import SharingError
from pydag import jaxinterop as pj
from pydag.jaxinterop import Dag


def tied() -> dict[str, Any]:
    """The tied layers, with a counter, a key, a flag and a function."""
    rest = {"steps": jnp.int32(7), "key": jax.random.key(0), "flag": True, "f": jnp.tanh}
    return {**tied_layers.tied(), **rest}


def assert_alike(one: Any, other: Any) -> None:
    """Two pytrees of JAX's have one structure."""
    structures: Any = tree_structure(one), tree_structure(other)
    assert structures[0] == structures[1]


def test_a_train_state() -> None:
    """flax's `TrainState` takes a Dag of what is trained and such an optimizer."""
    train_state = pytest.importorskip("flax.training.train_state")
    assert "body" in Dag(tied())
    assert "other" not in Dag(tied())
    assert "body" not in Dag(Layer(1.0, 2.0, "x"))
    state = train_state.TrainState.create(
        apply_fn=None, params=Dag(tied_layers.tied()), tx=pj.optimizer(optax.adamw(0.1))
    )

    @jax.jit
    def step(state: Any) -> Any:
        gradient = pj.grad(lambda dag: loss(dag.tree))(state.params)
        return state.apply_gradients(grads=gradient)

    first = float(loss(state.params.tree))
    for _ in range(3):
        state = step(state)
    assert_tied(state.params.tree)
    assert float(loss(state.params.tree)) < first
    assert int(state.step) == 3


def test_compiled_donated_and_scanned() -> None:
    """The state is an ordinary pytree; a step with donation is compiled once."""
    ours, traces = pj.optimizer(optax.adam(0.1)), list[None]()

    def step(model: Any, state: Any) -> Any:
        traces.append(None)
        updates, state = ours.update(pj.grad(loss)(model), state, model)
        return pj.apply_updates(model, updates), state

    model = tied()
    state = ours.init(model)
    scanned = pj.scan(lambda carry, _: (step(*carry), None), (model, state), length=3)[0]
    traces.clear()
    fast = pj.jit(step, donate_argnums=(0, 1))
    for _ in range(3):
        before = model, state
        model, state = fast(model, state)
        assert_tied(model)
        assert before[0]["body"].w.is_deleted()
        assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before[1][0].mu))
    assert len(traces) == 1
    assert jnp.allclose(scanned[0]["body"].w, model["body"].w, atol=1e-6)
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    assert_alike(jax.device_put(state, place), state)


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
        pj.optimizer(optax.adam(0.1), wrt="['bodi'].w").init(tied())
    with pytest.raises(TypeError, match="nothing to train"):
        pj.optimizer(optax.adam(0.1), wrt="*steps*").init(tied())
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


def test_an_optimizer_of_nnx_with_a_selection() -> None:
    """The optimizer and `nnx.Optimizer` have one selection, such as by the class of a Variable."""
    nnx = pytest.importorskip("flax.nnx")
    model, x = nnx.Linear(2, 2, rngs=nnx.Rngs(0)), jnp.ones(2)
    model.scale = nnx.BatchStat(jnp.ones(2))
    before = {name: getattr(model, name)[...] for name in ("kernel", "bias", "scale")}
    both = (nnx.Param, nnx.BatchStat)
    optimizer = nnx.Optimizer(model, pj.optimizer(optax.sgd(0.5), wrt=both), wrt=both)

    def loss(model: Any) -> Any:
        return jnp.sum(model(x) * model.scale[...])

    optimizer.update(model, nnx.grad(loss, argnums=nnx.DiffState(0, both))(model))
    assert all((getattr(model, name)[...] != old).any() for name, old in before.items())
    assert model.bias[...].tolist() == [-0.5, -0.5]
