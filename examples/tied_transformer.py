# SPDX-License-Identifier: Apache-2.0
"""A small transformer of equinox modules whose embedding and unembedding are one table.

It learns to write this project's documentation, character by character. The tie is an assignment,
`self.unembed = self.embed`: no `eqx.nn.Shared`, no wrapper, no declaration. Beside it an untied
twin is trained, the same but for a table of its own at the end. A table compares the two, a
picture shows the losses and where the tied table has put the characters.

    python examples/tied_transformer.py [--steps 1000] [--out out/tied_transformer.png]
"""

import argparse
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from matplotlib.figure import Figure
from tqdm import tqdm

import pydag.jaxinterop as pj

WIDTH, HEADS, BLOCKS = 64, 4, 2
CONTEXT, BATCH = 64, 24
LEARNING_RATE = 3e-3
ROOT = Path(__file__).parents[1]

Array = jax.Array


# --- the model ---


class Attention(eqx.Module):
    project: eqx.nn.Linear  # to queries, keys and values
    out: eqx.nn.Linear

    def __init__(self, key: Array) -> None:
        keys = jax.random.split(key)
        self.project = eqx.nn.Linear(WIDTH, 3 * WIDTH, use_bias=False, key=keys[0])
        self.out = eqx.nn.Linear(WIDTH, WIDTH, use_bias=False, key=keys[1])

    def __call__(self, x: Array) -> Array:
        parts = jax.vmap(self.project)(x).reshape(len(x), 3, HEADS, WIDTH // HEADS)
        queries, keys, values = jnp.moveaxis(parts, 1, 0)
        scores = jnp.einsum("qhd,khd->hqk", queries, keys) / jnp.sqrt(WIDTH // HEADS)
        scores = jnp.where(jnp.tri(len(x), dtype=bool), scores, -jnp.inf)  # no look ahead
        mixed = jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), values)
        return jax.vmap(self.out)(mixed.reshape(x.shape))


class Block(eqx.Module):
    norms: list[eqx.nn.LayerNorm]
    attention: Attention
    layers: list[eqx.nn.Linear]

    def __init__(self, key: Array) -> None:
        keys = jax.random.split(key, 3)
        self.norms = [eqx.nn.LayerNorm(WIDTH), eqx.nn.LayerNorm(WIDTH)]
        self.attention = Attention(keys[0])
        self.layers = [
            eqx.nn.Linear(WIDTH, 4 * WIDTH, key=keys[1]),
            eqx.nn.Linear(4 * WIDTH, WIDTH, key=keys[2]),
        ]

    def __call__(self, x: Array) -> Array:
        before, between = map(jax.vmap, self.norms)
        x = x + self.attention(before(x))
        widen, narrow = map(jax.vmap, self.layers)
        return x + narrow(jax.nn.gelu(widen(between(x))))


class Transformer(eqx.Module):
    embed: eqx.nn.Embedding
    positions: Array
    blocks: list[Block]
    norm: eqx.nn.LayerNorm
    unembed: eqx.nn.Embedding

    def __init__(self, key: Array, characters: int, *, tied: bool) -> None:
        keys = jax.random.split(key, BLOCKS + 3)
        table = 0.02 * jax.random.normal(keys[0], (characters, WIDTH))
        self.embed = eqx.nn.Embedding(weight=table)
        self.positions = 0.02 * jax.random.normal(keys[1], (CONTEXT, WIDTH))
        self.blocks = [Block(key) for key in keys[3:]]
        self.norm = eqx.nn.LayerNorm(WIDTH)
        self.unembed = self.embed if tied else eqx.nn.Embedding(weight=table + 0)

    def __call__(self, tokens: Array) -> Array:
        """The logits of what follows each character."""
        x = jax.vmap(self.embed)(tokens) + self.positions[: len(tokens)]
        for block in self.blocks:
            x = block(x)
        return jax.vmap(self.norm)(x) @ self.unembed.weight.T


def loss(model: Transformer, windows: Array) -> Array:
    """In bits per character."""
    logits = jax.vmap(model)(windows[:, :-1])
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, windows[:, 1:])
    return jnp.mean(losses) / jnp.log(2.0)


# --- the text ---


@dataclass(frozen=True)
class Text:
    characters: str
    train: np.ndarray[Any, Any]
    held_out: Array  # windows, which the training never sees

    @classmethod
    def read(cls) -> "Text":
        """The project's pages. Every tenth stretch of some lines is held out."""
        pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        text = "".join(page.read_text("utf-8") for page in pages)
        characters = "".join(sorted(set(text)))
        tokens = np.array([characters.index(c) for c in text])
        stretches = tokens[: len(tokens) // 512 * 512].reshape(-1, 512)
        is_held_out = np.arange(len(stretches)) % 10 == 9
        windows = stretches[is_held_out][:, : 512 // (CONTEXT + 1) * (CONTEXT + 1)]
        return cls(
            characters,
            stretches[~is_held_out].ravel(),
            jnp.asarray(windows.reshape(-1, CONTEXT + 1)),
        )

    def batch(self, random: np.random.Generator) -> Array:
        starts = random.integers(len(self.train) - CONTEXT - 1, size=BATCH)
        return jnp.asarray(self.train[starts[:, None] + np.arange(CONTEXT + 1)])


# --- the training ---


@dataclass
class Outcome:
    model: Transformer
    losses: list[float]
    facts: dict[str, str]  # the rows of the table


def train(name: str, text: Text, steps: int) -> Outcome:
    model = Transformer(jax.random.key(0), len(text.characters), tied=name == "tied")
    optimizer = optax.adamw(optax.cosine_decay_schedule(LEARNING_RATE, steps))
    state = optimizer.init(pj.Dag(model))

    @partial(pj.jit, donate_argnums=(0, 1))
    def step(model: Transformer, state: Any, windows: Array) -> tuple[Transformer, Any, Array]:
        value, gradient = pj.value_and_grad(loss)(model, windows)
        updates, state = optimizer.update(pj.Dag(gradient), state, pj.Dag(model))
        return optax.apply_updates(pj.Dag(model), updates).tree, state, value

    random, losses = np.random.default_rng(0), []
    for _ in (bar := tqdm(range(steps), desc=f"{name:>9}", unit="step")):
        model, state, value = step(model, state, text.batch(random))
        losses.append(value)
        if len(losses) % 50 == 0:
            bar.set_postfix(bits=f"{value:.3f}")

    weights = jax.tree.leaves(pj.Dag(model))
    moments = jax.tree.leaves((state[0].mu, state[0].nu))
    facts = {
        "arrays": f"{len(weights)}",
        "parameters": f"{sum(weight.size for weight in weights):,}",
        "bytes of adam's moments": f"{sum(moment.nbytes for moment in moments):,}",
        "one table": "yes" if model.embed is model.unembed else "no",
        "bits per character, training": f"{np.mean(losses[-50:]):.3f}",
        "bits per character, held out": f"{pj.jit(loss)(model, text.held_out):.3f}",
    }
    return Outcome(model, [float(value) for value in losses], facts)


def write(model: Transformer, text: Text, prompt: str, length: int) -> str:
    """Continues the prompt, one drawn character after the other."""

    @pj.jit
    def draw(model: Transformer, tokens: Array, last: int, key: Array) -> Array:
        return jax.random.categorical(key, 1.5 * model(tokens)[last])

    tokens = [text.characters.index(c) for c in prompt]
    for key in jax.random.split(jax.random.key(1), length):
        window = np.array(tokens[-CONTEXT:])
        padded = jnp.asarray(np.pad(window, (0, CONTEXT - len(window))))
        tokens.append(int(draw(model, padded, len(window) - 1, key)))
    return "".join(text.characters[token] for token in tokens)


# --- the report ---


def table(outcomes: dict[str, Outcome]) -> str:
    rows = [("", *outcomes)]
    rows += zip(
        next(iter(outcomes.values())).facts,
        *(outcome.facts.values() for outcome in outcomes.values()),
        strict=True,
    )
    return "\n".join(starmap("{:<30}{:>12}{:>12}".format, rows))


def picture(outcomes: dict[str, Outcome], text: Text, path: Path) -> None:
    figure = Figure(figsize=(11, 4.5), layout="constrained")  # no pyplot: needs no display
    curves, plane = figure.subplots(1, 2)
    for name, outcome in outcomes.items():
        width = max(1, len(outcome.losses) // 50)  # the mean of so many steps is a point
        smooth = np.convolve(outcome.losses, np.ones(width) / width, "valid")
        curves.plot(np.arange(len(smooth)) + width, smooth, label=name)
    curves.set(xlabel="step", ylabel="bits per character", title="loss")
    curves.legend()

    weights = np.asarray(outcomes["tied"].model.embed.weight)
    centered = weights - weights.mean(axis=0)
    spots = centered @ np.linalg.svd(centered, full_matrices=False)[2][:2].T
    for character, (x, y) in zip(text.characters, spots, strict=True):
        if character.isascii() and character.isprintable():
            plane.text(x, y, character.replace("$", r"\$"), ha="center", va="center")
    plane.plot(*spots.T, linestyle="")  # for the limits alone
    plane.set(xticks=[], yticks=[])
    plane.set_title("the shared table, in its two main directions")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a tied transformer and its untied twin.")
    parser.add_argument("--steps", type=int, default=1000, help="training steps (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/tied_transformer.png"))
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f"--steps must be at least 1, not {args.steps}")

    text = Text.read()
    outcomes = {name: train(name, text, args.steps) for name in ("tied", "untied")}
    print(f"\n{len(text.train):,} characters, {len(text.characters)} different ones\n")
    print(table(outcomes))
    print("\nThe tied one writes:\n")
    print(write(outcomes["tied"].model, text, "A shared array is ", 240))
    picture(outcomes, text, args.out)
    print(f"\nThe picture is in {args.out}")


if __name__ == "__main__":
    main()
