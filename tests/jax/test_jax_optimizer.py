# SPDX-License-Identifier: Apache-2.0
"""`optimizer` and `apply_updates`: optax on models as they are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
import tied_layers
from jax.tree_util import keystr, tree_map_with_path, tree_structure
from tied_layers import Layer, assert_tied, loss, parts

import pydag
from pydag import SharingError, dag_mask
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


def weights(dag: Any) -> Any:
    """A mask, by plain JAX."""
    return tree_map_with_path(lambda path, _: keystr(path)[-1] == "w" or "'w'" in keystr(path), dag)


def test_the_order_of_a_state_is_that_of_its_keys() -> None:
    """Whichever order `init` and `update` of a transformation fill their dicts in."""

    def init(params: Any) -> Any:
        return {"b": jnp.zeros(()), "a": jnp.ones(())}

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        return updates, {"b": state["b"], "a": state["a"]}

    ours, model = pj.optimizer(optax.GradientTransformation(init, update)), tied()
    state = ours.init(model)
    assert list(state) == ["a", "b"]
    assert list(ours.update(pj.grad(loss)(model), state, model)[1]) == ["a", "b"]


def test_value_and_gradient_of_a_line_search() -> None:
    """What a line search keeps in its state is the gradient at the model that it led to."""
    tx = optax.chain(optax.sgd(1.0), optax.scale_by_backtracking_linesearch(15, store_grad=True))
    ours, model = pj.optimizer(tx, wrt=["['body'].w", "*.b"]), tied()
    state = ours.init(model)
    for _ in range(3):
        value, gradient = pj.value_and_grad(loss)(model)
        updates, state = ours.update(
            gradient, state, model, value=value, grad=gradient, value_fn=loss
        )
        model = pj.apply_updates(model, updates)
        kept, expected = optax.tree.get(state, "grad"), parts(pj.grad(loss)(model))
        assert jnp.allclose(kept["body"]["w"], expected["w"], rtol=1e-4)
        assert jnp.allclose(kept["body"]["b"], expected["body.b"], rtol=1e-4)
        assert jnp.allclose(optax.tree.get(state, "value"), loss(model), rtol=1e-4)


def test_extra_arguments_of_one_array() -> None:
    """Where the model is an array, a value isn't taken for one."""
    ours = pj.optimizer(optax.lbfgs())
    x = jnp.array([3.0, -2.0])

    def square(x: Any) -> Any:
        return jnp.sum(x**2)

    state = ours.init(x)
    for _ in range(2):
        value, gradient = pj.value_and_grad(square)(x)
        updates, state = ours.update(
            gradient, state, x, value=value, grad=gradient, value_fn=square
        )
        x = pj.apply_updates(x, updates)
    assert jnp.allclose(x, 0.0, atol=1e-3)


def test_two_optimizers_of_one_model() -> None:
    """Each trains its part, from its own gradient; the trunk is in both."""
    trunk = Layer(jnp.eye(2), jnp.zeros(2), "trunk")
    model: dict[str, Any] = {"actor": [trunk, jnp.ones(2)], "critic": [trunk, jnp.ones(2)]}

    def output(branch: Any) -> Any:
        return jnp.sum((branch[0].w @ branch[1] + branch[0].b) ** 2)

    actor = pj.optimizer(optax.adam(0.1), wrt="['actor']*")
    critic = pj.optimizer(optax.sgd(0.1), wrt="['critic'][1]")
    updates, _ = actor.update(
        pj.grad(lambda m: output(m["actor"]), wrt="['actor']*")(model), actor.init(model), model
    )
    new = pj.apply_updates(model, updates)
    assert new["actor"][0] is new["critic"][0]
    assert not jnp.array_equal(new["critic"][0].w, trunk.w)
    assert new["critic"][1] is model["critic"][1]
    updates, _ = critic.update(pj.grad(lambda m: output(m["critic"]))(new), critic.init(new), new)
    newer = pj.apply_updates(new, updates)
    assert newer["actor"][0].w is new["actor"][0].w
    assert not jnp.array_equal(newer["critic"][1], new["critic"][1])


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


def test_hyperparameters_are_where_optax_has_them() -> None:
    """The state is that of the transformation: what it injects can be read and set."""
    ours, model = pj.optimizer(optax.inject_hyperparams(optax.sgd)(learning_rate=0.5)), tied()
    state = ours.init(model)
    state.hyperparams["learning_rate"] = jnp.float32(0.0)
    updates, _ = ours.update(pj.grad(loss)(model), state, model)
    assert not updates["body"].w.any()


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


def test_a_predicate_is_not_asked_of_what_is_missing() -> None:
    """Where a gradient has None, and there is no model, a predicate has nothing to look at."""
    ours, model = pj.optimizer(optax.sgd(0.1), wrt=[lambda x: jnp.ndim(x) == 2]), tied()
    updates, _ = ours.update(pj.grad(loss)(model), ours.init(model))
    assert (updates["body"].w.shape, updates["body"].b) == ((2, 2), None)


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


def test_chained_from_optimizers() -> None:
    """What is made can be chained, and takes part in optax's own combinations."""
    model = tied()
    ours = optax.chain(
        pj.optimizer(optax.clip_by_global_norm(0.5)), pj.optimizer(optax.sgd(0.1, momentum=0.9))
    )
    inside = pj.optimizer(optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1, 0.9)))
    gradient = pj.grad(loss)(model)
    found, _ = ours.update(gradient, ours.init(model), model)
    expected, _ = inside.update(gradient, inside.init(model), model)
    assert jnp.array_equal(found["body"].w, expected["body"].w)
    assert_tied(found, (None, None))


def test_masks_and_labels_of_a_dag() -> None:
    """`dag_mask`, `dag_map` and JAX's functions make Dags of a Dag, by the paths of its tree."""
    dag = Dag(tied())
    for mask in (dag_mask(dag, "*.w"), weights(dag)):
        assert isinstance(mask, Dag)
        assert (mask.tree["body"].w, mask.tree["heads"][1].b) == (True, False)
    named = pydag.dag_map(
        lambda flag: "w" if flag else "rest", dag_mask(dag, ["body", "*['body'].*"])
    )
    assert isinstance(named, Dag)
    assert (named.tree["body"].b, named.tree["heads"][0].b) == ("w", "rest")
    assert dag_mask(dag, "['heads'][1].w").tree["body"].w is True


def test_equinox_modules() -> None:
    """Modules with activation functions: nothing is wrapped, nothing filtered."""
    eqx = pytest.importorskip("equinox")
    net = eqx.nn.MLP(2, 2, 4, depth=2, key=jax.random.key(0))
    net = eqx.tree_at(lambda n: n.layers[1].bias, net, net.layers[0].bias)
    ours = pj.optimizer(optax.adamw(1e-2))

    @pj.jit
    def step(net: Any, state: Any) -> Any:
        value, gradient = pj.value_and_grad(lambda net: jnp.sum(net(jnp.ones(2)) ** 2))(net)
        updates, state = ours.update(gradient, state, net)
        return pj.apply_updates(net, updates), state, value

    state, values = ours.init(net), []
    for _ in range(5):
        net, state, value = step(net, state)
        values.append(float(value))
    assert values[-1] < values[0]
    assert net.layers[0].bias is net.layers[1].bias


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


def test_an_optimizer_of_nnx_with_nothing_to_train() -> None:
    """A selection by a class that no Variable has is an error, as for a model."""
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    with pytest.raises(TypeError, match="nothing to train"):
        nnx.Optimizer(model, pj.optimizer(optax.sgd(0.5), wrt=nnx.BatchStat), wrt=nnx.Param)
