# SPDX-License-Identifier: Apache-2.0
"""Modules of equinox and flax that are tied by assignment, and nothing else."""

from typing import Any

import equinox
import jax
import jax.numpy as jnp
import pytest

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


def test_a_flag_is_set_on_the_model() -> None:
    """Equinox's own ways to set one see the module itself; what is compiled takes it as it is."""
    dropout = eqx.nn.Dropout(0.5)
    noisy = jaxinterop.jit(lambda dropout, x, key: dropout(x, key=key))
    key = jax.random.key(0)
    assert 0.0 in noisy(dropout, X, key).tolist()
    assert noisy(eqx.nn.inference_mode(dropout), X, key).tolist() == X.tolist()
    assert noisy(eqx.tree_at(lambda d: d.p, dropout, 0.0), X, key).tolist() == X.tolist()


def test_tree_at() -> None:
    """A replacement at one path is at all of them."""
    zero = jnp.zeros((3, 3))
    dag = eqx.tree_at(lambda dag: dag.tree.first.weight, Dag(net()), zero)
    assert_tied(dag.tree)
    assert dag.tree.last.weight is zero


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


class Model(jaxinterop.Module):
    """A module of pydag's."""

    def __init__(self) -> None:
        self.w = self.tied = jnp.ones(2)
        self.size = 2


def test_tree_at_of_an_own_module() -> None:
    """The error names what works: `dag_replace`, and `eqx.tree_at` of a `Dag`."""
    model, new = Model(), jnp.zeros(2)
    with pytest.raises(TypeError, match=r"pydag\.dag_replace(.|\n)*pj\.Dag\(model\)") as caught:
        eqx.tree_at(lambda m: m.w, model, new)
    assert "_LeafWrapper" not in str(caught.value)
    replaced = pydag.dag_replace(model, model.w, new)
    through = eqx.tree_at(lambda dag: dag.tree.w, Dag(model), new).tree
    for changed in (replaced, through):
        assert changed.w is changed.tied
        assert (changed.w.tolist(), changed.size) == ([0.0, 0.0], 2)


def test_partition_of_an_own_module() -> None:
    """A `Dag` comes together again."""
    halves = eqx.partition(Dag(Model()), eqx.is_array)
    model = eqx.combine(*halves).tree
    assert model.w is model.tied
    assert model.w.tolist() == [1.0, 1.0]


class Shared(equinox.Module):
    """Ties two layers as equinox does."""

    layers: Any

    def __init__(self) -> None:
        key = jax.random.key(0)
        parts = eqx.nn.Embedding(4, 3, key=key), eqx.nn.Linear(3, 4, use_bias=False, key=key)
        self.layers = eqx.nn.Shared(parts, lambda p: p[1].weight, lambda p: p[0].weight)

    def __call__(self, i: Any) -> Any:
        embed, unembed = self.layers()
        return unembed(embed(i)).sum()


class Holder(jaxinterop.Module):
    """Holds such a model."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, i: Any) -> Any:
        return self.model(i)


@pytest.mark.parametrize("wrap", [lambda m: m, Holder])
def test_shared_of_equinox(wrap: Any) -> None:
    """What stands in the place of a tied weight holds nothing: it is configuration."""
    model = Shared()
    expected = eqx.filter_grad(lambda m: m(1))(model).layers.pytree[0].weight
    own = wrap(model)
    assert jnp.allclose(jaxinterop.jit(lambda m, i: m(i))(own, 1), model(1))
    gradient = jaxinterop.jit(jaxinterop.grad(lambda m: m(1)))(own)
    [found] = jax.tree.leaves(jaxinterop.tree.leaves(gradient))
    assert jnp.allclose(found, expected)
    assert jnp.allclose(jaxinterop.tree.map(lambda x: 2 * x, own)(1), 4 * model(1))


# --- linen: parameters are dicts ---


# --- NNX: objects with variables ---


# --- flax.serialization ---
