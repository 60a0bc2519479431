# SPDX-License-Identifier: Apache-2.0
"""Equinox modules that are tied by putting one object into two attributes, and nothing else."""

import dataclasses
import io
from typing import Any

import equinox
import jax
import jax.numpy as jnp
import pytest
from jax.tree_util import keystr

import pydag
from pydag import jaxinterop
from pydag.jaxinterop import Dag

eqx: Any = equinox  # whose transformations have no types


class Net(equinox.Module):
    """An MLP between a layer and the same layer."""

    first: Any
    middle: Any
    last: Any

    def __init__(self, key: Any) -> None:
        keys = jax.random.split(key)
        self.first = eqx.nn.Linear(3, 3, key=keys[0])
        self.middle = eqx.nn.MLP(3, 3, 5, 1, activation=jnp.tanh, key=keys[1])
        self.last = self.first

    def __call__(self, x: Any) -> Any:
        return self.last(self.middle(self.first(x)))


def net() -> Any:
    return Net(jax.random.key(0))


def loss(model: Any, x: Any) -> Any:
    return jnp.sum(model(x) ** 2)


def dag_loss(dag: Dag, x: Any) -> Any:
    return loss(dag.tree, x)


X = jnp.array([1.0, -2.0, 0.5])


def assert_tied(model: Any) -> None:
    assert type(model) is Net
    assert model.first is model.last
    assert model.middle.activation is jnp.tanh


def test_wrappers_take_modules_as_they_are() -> None:
    """No Dag, no partition, no filter: functions and other static leaves just pass."""
    model = net()
    value, gradient = jaxinterop.jit(jaxinterop.value_and_grad(loss))(model, X)
    assert value == pytest.approx(float(loss(model, X)))
    assert gradient.first is gradient.last
    assert gradient.middle.activation is None
    updated = pydag.dag_map(lambda p, g: p if g is None else p - 0.1 * g, model, gradient)
    assert_tied(updated)
    assert float(loss(updated, X)) < value


def test_filter_jit_and_filter_grad() -> None:
    """Equinox's own transformations take a Dag of a module, and give one."""
    dag = Dag(net())
    gradient = eqx.filter_jit(eqx.filter_grad(dag_loss))(dag, X)
    assert_tied(gradient.tree)
    expected = jaxinterop.grad(loss)(net(), X)
    assert jnp.allclose(gradient.tree.first.weight, expected.first.weight)
    assert_tied(eqx.apply_updates(dag, gradient).tree)
    value, _ = eqx.filter_value_and_grad(dag_loss)(dag, X)
    assert float(value) == pytest.approx(float(loss(net(), X)))


def test_flags_and_numbers_beside_arrays() -> None:
    """Flags are configuration: a gradient has None for them, and a Dag keeps them from JAX."""
    layer = eqx.nn.Linear(3, 3, key=jax.random.key(0))
    model = {"a": layer, "b": layer, "dropout": eqx.nn.Dropout(0.5, inference=True)}

    def f(model: Any) -> Any:
        return jnp.sum(model["dropout"](model["b"](model["a"](X))))

    gradient = jaxinterop.jit(jaxinterop.grad(f))(model)
    assert gradient["a"] is gradient["b"]
    assert (gradient["dropout"].p, gradient["dropout"].inference) == (None, None)
    filtered = eqx.filter_jit(eqx.filter_grad(lambda dag: f(dag.tree)))(Dag(model)).tree
    assert filtered["a"] is filtered["b"]
    assert filtered["dropout"].inference is True
    assert jnp.allclose(filtered["a"].weight, gradient["a"].weight)


def test_a_flag_is_set_on_the_model() -> None:
    """Equinox's own ways to set one see the module itself; what is compiled takes it as it is."""
    dropout = eqx.nn.Dropout(0.5)
    noisy = jaxinterop.jit(lambda dropout, x, key: dropout(x, key=key))
    key = jax.random.key(0)
    assert 0.0 in noisy(dropout, X, key).tolist()
    assert noisy(eqx.nn.inference_mode(dropout), X, key).tolist() == X.tolist()
    assert noisy(eqx.tree_at(lambda d: d.p, dropout, 0.0), X, key).tolist() == X.tolist()


def test_filter_vmap() -> None:
    """Many models in one Dag, or one model and many inputs."""
    xs = jnp.stack([X, 2 * X])
    one = eqx.filter_vmap(dag_loss, in_axes=(None, 0))(Dag(net()), xs)
    assert jnp.allclose(one, jnp.stack([loss(net(), x) for x in xs]))

    models = eqx.filter_vmap(lambda key: Dag(Net(key)))(jax.random.split(jax.random.key(0), 3))
    assert_tied(models.tree)
    assert models.tree.first.weight.shape == (3, 3, 3)
    assert eqx.filter_vmap(dag_loss, in_axes=(0, None))(models, X).shape == (3,)


def test_partition_and_combine() -> None:
    """A Dag that was split by a filter and put together again is tied."""
    arrays, rest = eqx.partition(Dag(net()), lambda x: eqx.is_array(x) and x.ndim == 2)
    assert len(jax.tree.leaves(arrays)) == 3
    assert_tied(eqx.combine(arrays, rest).tree)
    frozen = eqx.filter_grad(lambda a, b: dag_loss(eqx.combine(a, b), X))(arrays, rest)
    assert frozen.tree.first.bias is None
    assert frozen.tree.first.weight.shape == (3, 3)


def test_tree_at() -> None:
    """A replacement at one path is at all of them."""
    zero = jnp.zeros((3, 3))
    dag = eqx.tree_at(lambda dag: dag.tree.first.weight, Dag(net()), zero)
    assert_tied(dag.tree)
    assert dag.tree.last.weight is zero


def test_serialisation() -> None:
    """Equinox's files have each distinct leaf once; the tie comes from the model that is given."""
    ours, plain = io.BytesIO(), io.BytesIO()
    eqx.tree_serialise_leaves(ours, Dag(net()))
    eqx.tree_serialise_leaves(plain, net())
    assert ours.tell() < plain.tell()
    ours.seek(0)
    found = eqx.tree_deserialise_leaves(ours, Dag(Net(jax.random.key(1))))
    assert_tied(found.tree)
    assert eqx.tree_equal(found, Dag(net()))


def test_paths_read_well() -> None:
    """JAX's paths into a Dag are attributes and indices, each weight once."""
    paths = [keystr(path) for path, _ in jax.tree.leaves_with_path(Dag(net()))]
    assert paths[:3] == [".tree.first.weight", ".tree.first.bias", ".tree.middle.layers[0].weight"]
    assert not any("last" in path for path in paths)


def test_a_module_of_modules_of_other_kinds() -> None:
    """Modules, dicts and classes of one's own hold one another, and share throughout."""

    @pydag.register_fields
    class Holder:
        def __init__(self, layer: Any) -> None:
            self.layer = layer

    model = net()
    tree = {"net": model, "holders": [Holder(model.first), Holder(model.first)]}
    out = jaxinterop.jit(
        lambda tree: pydag.dag_map(lambda x: x * 2 if eqx.is_array(x) else x, tree)
    )(tree)
    assert_tied(out["net"])
    assert out["holders"][0].layer is out["holders"][1].layer is out["net"].last


def test_a_frozen_module_stays_frozen() -> None:
    """What comes back is a module like any other: equinox's checks hold."""
    out = jaxinterop.jit(lambda model: model)(net())
    with pytest.raises(Exception, match="cannot assign"):
        out.first = None


class Around(jaxinterop.Module):
    def __init__(self) -> None:
        self.linear = equinox.nn.Linear(2, 2, key=jax.random.key(0))
        self.also, self.dropout = self.linear, equinox.nn.Dropout(0.5)

    def __call__(self, x: Any, key: Any = None) -> Any:
        return self.dropout(self.also(self.linear(x)), key=key)


def test_inference_mode_of_own_modules() -> None:
    """Its layers are rewritten by `dag_rewrite`, and stay shared."""
    net, x = Around(), jnp.ones(2)
    mode = {equinox.nn.Dropout: equinox.nn.inference_mode}
    evaluated = pydag.dag_rewrite(mode, net)
    assert evaluated.dropout.inference is True
    assert net.dropout.inference is False
    assert evaluated.linear is evaluated.also
    expected = net.linear(net.linear(x))
    assert jnp.allclose(jaxinterop.jit(lambda net, x: net(x))(evaluated, x), expected)


def test_inference_is_an_attribute_as_any_other() -> None:
    """Modules without it have none, one of their own counts."""

    class Own(jaxinterop.Module):
        def __init__(self, **attributes: Any) -> None:
            self.w = jnp.ones(2)
            vars(self).update(attributes)

    assert not hasattr(Own(), "inference")
    own: Any = Own(inference=True)
    assert own.inference is True

    @dataclasses.dataclass
    class Data(jaxinterop.Module):
        inference: bool
        w: Any

    assert Data(False, 1.0).inference is False
