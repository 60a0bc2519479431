# SPDX-License-Identifier: Apache-2.0
"""One training step of a tied model, as users of equinox, of NNX and of pydag write it.

    python examples/one_step.py [--steps N]

A tied table, fixed positions, a layer, and adamw. All three begin with the same weights, and their
losses agree. docs/compared.md has the number of lines of each model and step.
"""

# equinox has no types for the function that filter_value_and_grad returns
# mypy: disable-error-code="no-untyped-call"

import argparse
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from flax import nnx

import pydag.jaxinterop as pj

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--steps", type=int, default=10)
steps = parser.parse_args().steps
if steps < 1:
    parser.error("--steps must be at least 1")


def cross_entropy(scores: jax.Array, tokens: jax.Array) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(scores, tokens).mean()


key, words = jax.random.key(3), jax.random.randint(jax.random.key(4), (12,), 0, 16)
positions = jnp.sin(jnp.outer(jnp.arange(11.0), jnp.arange(8.0)))


# --- equinox: the model ---
class Model(eqx.Module):
    embed: eqx.nn.Embedding
    position: jax.Array
    layer: eqx.nn.Linear
    unembed: eqx.nn.Embedding

    def __init__(self, key: jax.Array) -> None:
        keys = jax.random.split(key)
        self.embed = eqx.nn.Embedding(16, 8, key=keys[0])
        self.position = positions
        self.layer = eqx.nn.Linear(8, 8, key=keys[1])
        self.unembed = self.embed

    def __call__(self, words: jax.Array) -> Any:
        x = jax.vmap(self.embed)(words) + self.position
        return jnp.tanh(jax.vmap(self.layer)(x)) @ self.unembed.weight.T


# --- equinox: the step ---
shared = eqx.nn.Shared(Model(key), lambda model: model.unembed, lambda model: model.embed)
trained = jax.tree.map(eqx.is_inexact_array, shared)
trained = eqx.tree_at(lambda shared: shared.pytree.position, trained, False)
plain: Any = optax.adamw(1e-2)
state = plain.init(eqx.filter(shared, trained))


def loss_of_parts(variable: Any, fixed: Any, words: jax.Array) -> Any:
    model = eqx.combine(variable, fixed)()
    return cross_entropy(model(words[:-1]), words[1:])


@eqx.filter_jit
def step_of_parts(shared: Any, state: Any, words: jax.Array) -> Any:
    variable, fixed = eqx.partition(shared, trained)
    value, gradient = eqx.filter_value_and_grad(loss_of_parts)(variable, fixed, words)
    updates, state = plain.update(gradient, state, variable)
    return eqx.apply_updates(shared, updates), state, value


# --- equinox: the loop ---
losses: dict[str, list[float]] = {"equinox": [], "NNX": [], "pydag": []}
for _ in range(steps):
    shared, state, value = step_of_parts(shared, state, words)
    losses["equinox"].append(float(value))


# --- NNX: the model ---
class Fixed(nnx.Variable[jax.Array]):
    pass


class Network(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(16, 8, rngs=rngs)
        self.position = Fixed(positions)
        self.layer = nnx.Linear(8, 8, rngs=rngs)
        self.unembed = self.embed

    def __call__(self, words: jax.Array) -> Any:
        x = self.embed(words) + self.position[...]
        return self.unembed.attend(jnp.tanh(self.layer(x)))


# --- NNX: the step ---
network = Network(nnx.Rngs(0))
adam = nnx.Optimizer(network, optax.adamw(1e-2), wrt=nnx.Param)


def loss_of_network(network: Network, words: jax.Array) -> Any:
    return cross_entropy(network(words[:-1]), words[1:])


@nnx.jit
def step_of_network(network: Network, adam: Any, words: jax.Array) -> Any:
    value, gradient = nnx.value_and_grad(loss_of_network)(network, words)
    adam.update(network, gradient)
    return value


# --- NNX: the loop ---
start: Any = Model(key)  # the same weights for all three
network.embed.embedding[...] = start.embed.weight
network.layer.kernel[...] = start.layer.weight.T
network.layer.bias = nnx.Param(jnp.zeros(8) + start.layer.bias)
losses["NNX"] = [float(step_of_network(network, adam, words)) for _ in range(steps)]

# --- pydag: the step ---
model = Model(key)  # equinox's, in which the assignment is a tie now
chosen = ["embed*", "layer*"]
optimizer = pj.optimizer(optax.adamw(1e-2), wrt=chosen)
state = optimizer.init(model)


def loss(model: Model, words: jax.Array) -> Any:
    return cross_entropy(model(words[:-1]), words[1:])


@pj.jit
def step(model: Model, state: Any, words: jax.Array) -> Any:
    value, gradient = pj.value_and_grad(loss, wrt=chosen)(model, words)
    updates, state = optimizer.update(gradient, state, model)
    return pj.apply_updates(model, updates), state, value


# --- pydag: the loop ---
for _ in range(steps):
    model, state, value = step(model, state, words)
    losses["pydag"].append(float(value))

for name, values in losses.items():
    print(f"{name:8}", *[f"{value:.2f}" for value in values])
found = jnp.array([*losses.values()])
print("the losses agree:", bool(jnp.allclose(found, found[0], rtol=1e-4)))
