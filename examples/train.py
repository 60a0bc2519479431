# SPDX-License-Identifier: Apache-2.0
"""An ordinary training script: a tied transformer, saved in the middle and resumed bit for bit.

python examples/train.py [--steps 200]
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

import pydag.jaxinterop as pj

WORDS, WIDTH, LENGTH, BATCH = 64, 32, 16, 32


class TiedTransformer(eqx.Module):
    embed: eqx.nn.Embedding
    attention: eqx.nn.MultiheadAttention
    norm: eqx.nn.LayerNorm
    unembed: eqx.nn.Embedding

    def __init__(self, key: jax.Array) -> None:
        keys = jax.random.split(key)
        self.embed = eqx.nn.Embedding(WORDS, WIDTH, key=keys[0])
        self.attention = eqx.nn.MultiheadAttention(4, WIDTH, key=keys[1])
        self.norm = eqx.nn.LayerNorm(WIDTH)
        self.unembed = self.embed  # the tie

    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = jax.vmap(self.embed)(tokens)
        past = jnp.tri(len(tokens), dtype=bool)
        x = jax.vmap(self.norm)(x + self.attention(x, x, x, mask=past))
        return x @ self.unembed.weight.T


def loss(model: TiedTransformer, tokens: jax.Array) -> Any:
    logits = jax.vmap(model)(tokens[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


@pj.jit(donate_argnums=0)
def step(run: dict[str, Any]) -> tuple[dict[str, Any], jax.Array]:
    key, draw = jax.random.split(run["key"])
    first = jax.random.randint(draw, (BATCH, 1), 0, WORDS)
    tokens = (first * 5 + 3 * jnp.arange(LENGTH)) % WORDS  # what is to be learned
    value, gradient = pj.value_and_grad(loss)(run["model"], tokens)
    updates, state = optimizer.update(gradient, run["state"], run["model"])
    model = pj.apply_updates(run["model"], updates)
    return {"model": model, "state": state, "key": key}, value


def start() -> dict[str, Any]:
    model = TiedTransformer(jax.random.key(0))
    return {"model": model, "state": optimizer.init(model), "key": jax.random.key(1)}


parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--steps", type=int, default=200)
steps = parser.parse_args().steps
if steps < 2:
    parser.error("there must be at least two steps")
optimizer = pj.optimizer(optax.adamw(3e-3))
run: Any = start()
path = Path(tempfile.mkdtemp()) / "run.safetensors"
for i in range(steps):
    if i == steps // 2:
        pj.save(path, run)
    run, loss_now = step(run)
    if i % max(1, steps // 5) == 0:
        print(f"step {i:4}: loss {loss_now:.3f}")

again = pj.load(path, start())  # in another process, too
while again["state"][0].count < steps:
    again, loss_now = step(again)
pairs = zip(jax.tree.leaves(pj.Dag(run)), jax.tree.leaves(pj.Dag(again)), strict=True)
print("one table:", run["model"].embed is run["model"].unembed)
print("moments for it:", sum(x.shape == (WORDS, WIDTH) for x in jax.tree.leaves(run["state"])))
print("resumed bit for bit:", all(bool(jnp.all(a == b)) for a, b in pairs))
