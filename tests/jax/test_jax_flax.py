# SPDX-License-Identifier: Apache-2.0
"""Flax: linen's parameter dicts, and NNX modules that share what they hold."""

from typing import Any

import flax
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import linen, nnx
from flax.core import freeze
from flax.training.train_state import TrainState
from jax.tree_util import keystr

import pydag
from pydag import jaxinterop
from pydag.jaxinterop import Dag

# --- linen: parameters are dicts ---


class Encoder(linen.Module):
    @linen.compact
    def __call__(self, tokens: Any) -> Any:
        return linen.Dense(4)(linen.Embed(8, 4, name="embed")(tokens))


class Decoder(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        return linen.Embed(8, 4, name="embed").attend(x)


TOKENS = jnp.arange(3)


def tied_parameters() -> dict[str, Any]:
    """Two linen modules, made apart, whose parameters are tied by an assignment."""
    encoder = Encoder().init(jax.random.key(0), TOKENS)["params"]
    return {"encoder": encoder, "decoder": {"embed": encoder["embed"]}}


def linen_loss(parameters: Any) -> Any:
    x: Any = Encoder().apply({"params": parameters["encoder"]}, TOKENS)
    y: Any = Decoder().apply({"params": parameters["decoder"]}, x)
    return jnp.sum(jnp.square(y))


def test_frozen_dicts() -> None:
    """A FrozenDict is a node like any other."""
    w = jnp.ones(2)
    out = jaxinterop.jit(lambda tree: tree)(freeze({"a": w, "b": {"c": w}}))
    assert type(out) is flax.core.FrozenDict
    assert out["a"] is out["b"]["c"]


def test_a_train_state() -> None:
    """Flax's TrainState holds a Dag as one of its parameters, and keeps it tied."""
    create: Any = TrainState.create
    state = create(apply_fn=None, params={"model": Dag(tied_parameters())}, tx=optax.adam(0.1))

    @jax.jit
    def step(state: Any) -> Any:
        gradient = jax.grad(lambda params: linen_loss(params["model"].tree))(state.params)
        return state.apply_gradients(grads=gradient)

    before = linen_loss(tied_parameters())
    for _ in range(3):
        state = step(state)
    model = state.params["model"].tree
    assert model["encoder"]["embed"] is model["decoder"]["embed"]
    assert linen_loss(model) < before


# --- NNX: objects with variables ---


class Net(nnx.Module):
    """One table at two paths, one variable at two paths, one layer within a list and outside."""

    def __init__(self, rngs: Any) -> None:
        self.embed = nnx.Embed(8, 4, rngs=rngs)
        self.unembed = self.embed
        self.layer = nnx.Linear(4, 4, rngs=rngs)
        self.layers = nnx.List([self.layer, nnx.Linear(4, 4, rngs=rngs)])
        self.scale = nnx.Param(jnp.full(4, 0.5))
        self.same_scale = self.scale

    def __call__(self, tokens: Any) -> Any:
        x = self.embed(tokens) * self.scale[...]
        for layer in (self.layer, *self.layers):
            x = jnp.tanh(layer(x))
        return self.unembed.attend(x * self.same_scale[...])


def net() -> Net:
    return Net(nnx.Rngs(0))


def loss(model: Net) -> Any:
    return jnp.sum(jnp.square(model(TOKENS)))


def assert_tied(model: Any) -> None:
    assert type(model) is Net
    assert model.embed is model.unembed
    assert model.layer is model.layers[0]
    assert model.layers[0] is not model.layers[1]
    assert model.scale is model.same_scale


def test_a_variable_at_two_paths_stays_one() -> None:
    """In, inside, out: modules and variables are shared as they were."""

    @jaxinterop.jit
    def f(model: Net) -> Net:
        assert_tied(model)
        return model

    out = f(net())
    assert_tied(out)
    assert out(TOKENS).tolist() == net()(TOKENS).tolist()


def test_a_step_of_optax() -> None:
    """A step through a Dag keeps modules and variables tied, and is a step downhill."""
    tx = optax.adam(0.01)

    @jaxinterop.jit
    def step(model: Net, state: Any) -> Any:
        gradient = jaxinterop.grad(loss)(model)
        updates, state = tx.update(Dag(gradient), state)
        return optax.apply_updates(Dag(model), updates).tree, state

    model, state = step(net(), tx.init(Dag(net())))
    assert_tied(model)
    assert loss(model) < loss(net())
    assert len(jax.tree.leaves(state[0].mu)) == 6


def test_what_a_function_does_to_a_module() -> None:
    """A module is changed inside and handed back: nothing leaks into the caller's."""

    @jaxinterop.jit
    def f(model: Net) -> Net:
        model.scale[...] = model.scale[...] + 1
        model.layer = model.layers[1]
        return model

    model = net()
    with pytest.warns(jaxinterop.LostTieWarning, match=r"layers\[0\]"):
        out = f(model)
    assert out.layer is out.layers[1]
    assert out.same_scale[...].tolist() == [1.5] * 4
    assert_tied(model)
    assert model.scale[...].tolist() == [0.5] * 4


def test_dropout_and_its_stream() -> None:
    """Random streams are state: counters and keys are leaves, shared where the stream is."""

    class Noisy(nnx.Module):
        def __init__(self) -> None:
            rngs = nnx.Rngs(0)
            self.a = nnx.Dropout(0.5, rngs=rngs)
            self.b = nnx.Dropout(0.5, rngs=rngs)

    model = Noisy()
    shared = model.a.rngs is model.b.rngs
    out = jaxinterop.jit(lambda m: m)(model)
    assert (out.a.rngs is out.b.rngs) is shared


def test_paths_read_well() -> None:
    """Attributes and indices, as one would write them."""
    paths = [keystr(path) for path, _ in jax.tree.leaves_with_path(Dag(net()))]
    assert ".tree.layers[1].kernel.value" in paths
    assert ".tree.embed.embedding.value" in paths
    assert len(paths) == len(pydag.dag_leaves(net()))


# --- flax.serialization ---
