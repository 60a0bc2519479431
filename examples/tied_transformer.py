# SPDX-License-Identifier: Apache-2.0
"""A small transformer of equinox modules whose embedding and unembedding are one table.

It learns to write this project's documentation, word by word. The tie is an assignment,
`self.unembed = self.embed`: no `eqx.nn.Shared`, no wrapper, no declaration. The same model is
trained three times: by plain JAX, which makes two tables of the one without a word; by pydag, which
keeps it; and by pydag with wider layers, so that it has as many parameters as plain JAX trains. A
table compares them, and a picture shows how the two tables part, and what that is good for.

    python examples/tied_transformer.py [--steps 600] [--out out/tied_transformer.png]
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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

WIDTH, HEADS, BLOCKS, HIDDEN = 64, 4, 2, 256
CONTEXT, BATCH = 32, 24
RARE = 3  # a word must occur so often to have a row of its own
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

    def __init__(self, key: Array, hidden: int) -> None:
        keys = jax.random.split(key, 3)
        self.norms = [eqx.nn.LayerNorm(WIDTH), eqx.nn.LayerNorm(WIDTH)]
        self.attention = Attention(keys[0])
        self.layers = [
            eqx.nn.Linear(WIDTH, hidden, key=keys[1]),
            eqx.nn.Linear(hidden, WIDTH, key=keys[2]),
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

    def __init__(self, key: Array, words: int, hidden: int = HIDDEN) -> None:
        keys = jax.random.split(key, BLOCKS + 3)
        table = 0.02 * jax.random.normal(keys[0], (words, WIDTH))
        self.embed = eqx.nn.Embedding(weight=table)
        self.positions = 0.02 * jax.random.normal(keys[1], (CONTEXT, WIDTH))
        self.blocks = [Block(key, hidden) for key in keys[3:]]
        self.norm = eqx.nn.LayerNorm(WIDTH)
        self.unembed = self.embed  # the tie

    def __call__(self, tokens: Array) -> Array:
        """The logits of what follows each word."""
        x = jax.vmap(self.embed)(tokens) + self.positions[: len(tokens)]
        for block in self.blocks:
            x = block(x)
        return jax.vmap(self.norm)(x) @ self.unembed.weight.T


def loss(model: Transformer, windows: Array) -> Array:
    """In bits per word."""
    logits = jax.vmap(model)(windows[:, :-1])
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, windows[:, 1:])
    return jnp.mean(losses) / jnp.log(2.0)


def apart(model: Transformer) -> Array:
    """How far the two tables are from one another, for their size."""
    one, other = model.embed.weight, model.unembed.weight
    distance: Array = jnp.linalg.norm(one - other) / jnp.linalg.norm(one)
    return distance


# --- the text ---


@dataclass(frozen=True)
class Text:
    words: list[str]  # the first stands for all that are rare
    train: np.ndarray[Any, Any]
    held_out: Array  # windows, which the training never sees

    @classmethod
    def read(cls) -> "Text":
        """The project's pages. Every tenth stretch of some lines is held out."""
        pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        text = "".join(page.read_text("utf-8") for page in pages if page.stem != "benchmarks")
        found = re.findall(r"\n\s*| ?\w+| ?[^\w\s]", text)
        words = ["", *(word for word, count in Counter(found).most_common() if count >= RARE)]
        numbers = {word: i for i, word in enumerate(words)}
        tokens = np.array([numbers.get(word, 0) for word in found])
        stretches = tokens[: len(tokens) // 264 * 264].reshape(-1, 264)
        is_held_out = np.arange(len(stretches)) % 10 == 9
        windows = stretches[is_held_out].reshape(-1, CONTEXT + 1)
        return cls(words, stretches[~is_held_out].ravel(), jnp.asarray(windows))

    def batch(self, random: np.random.Generator) -> Array:
        starts = random.integers(len(self.train) - CONTEXT - 1, size=BATCH)
        return jnp.asarray(self.train[starts[:, None] + np.arange(CONTEXT + 1)])


# --- the training, by two ways across the JAX boundary ---

Step = Callable[[Transformer, Any, Array], tuple[Transformer, Any, Array]]


def step_of_jax(optimizer: Any) -> tuple[Callable[[Transformer], Any], Step]:
    """As equinox's documentation has it. JAX flattens the model into one leaf for each path."""

    @eqx.filter_jit
    def step(model: Transformer, state: Any, windows: Array) -> tuple[Transformer, Any, Array]:
        value, gradient = eqx.filter_value_and_grad(loss)(model, windows)
        updates, state = optimizer.update(gradient, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, value

    return lambda model: optimizer.init(eqx.filter(model, eqx.is_array)), step


def step_of_pydag(optimizer: Any) -> tuple[Callable[[Transformer], Any], Step]:
    """The same with pydag: nothing is filtered, and what is one table stays one."""
    trainer = pj.optimizer(optimizer)

    @partial(pj.jit, donate_argnums=(0, 1))
    def step(model: Transformer, state: Any, windows: Array) -> tuple[Transformer, Any, Array]:
        value, gradient = pj.value_and_grad(loss)(model, windows)
        updates, state = trainer.update(gradient, state, model)
        return pj.apply_updates(model, updates), state, value

    return trainer.init, step


@dataclass
class Outcome:
    model: Transformer
    losses: list[float]  # of each step
    held_out: list[float]  # every so many steps, and at the end
    apart: list[float]  # likewise
    counts: dict[str, int]
    facts: dict[str, str]  # the rows of the table


MEASURED = 20  # steps from one measurement to the next


def train(name: str, model: Transformer, make_step: Any, text: Text, steps: int) -> Outcome:
    optimizer = optax.adamw(optax.cosine_decay_schedule(LEARNING_RATE, steps))
    start, step = make_step(optimizer)
    state = start(model)
    arrays = [leaf for leaf in jax.tree.leaves(state[0].mu) if leaf.size > 1]
    measure = pj.jit(lambda model, windows: (loss(model, windows), apart(model)))

    random, losses, measured = np.random.default_rng(0), [], []
    for i in (bar := tqdm(range(steps), desc=f"{name:>13}", unit="step")):
        if i % MEASURED == 0:
            measured.append(measure(model, text.held_out))
        model, state, value = step(model, state, text.batch(random))
        losses.append(value)
        if i % MEASURED == 0:
            bar.set_postfix(bits=f"{value:.2f}", held_out=f"{measured[-1][0]:.2f}")
    measured.append(measure(model, text.held_out))

    held_out, distances = ([float(x) for x in column] for column in zip(*measured, strict=True))
    counts = {
        "arrays": len(arrays),
        "parameters": sum(array.size for array in arrays),
        "bytes of adam's moments": 2 * sum(array.nbytes for array in arrays),
    }
    facts = {fact: f"{count:,}" for fact, count in counts.items()} | {
        "one table": "yes" if model.embed is model.unembed else f"no, {distances[-1]:.0%} apart",
        "bits per word, training": f"{np.mean(losses[-50:]):.2f}",
        "bits per word, held out": f"{held_out[-1]:.2f}",
    }
    return Outcome(model, [float(x) for x in losses], held_out, distances, counts, facts)


def write(model: Transformer, text: Text, prompt: Sequence[str], length: int) -> str:
    """Continues the prompt, one drawn word after the other."""

    @pj.jit
    def draw(model: Transformer, tokens: Array, last: int, key: Array) -> Array:
        return jax.random.categorical(key, 1.4 * model(tokens)[last].at[0].set(-jnp.inf))

    tokens = [text.words.index(word) for word in prompt]
    for key in jax.random.split(jax.random.key(1), length):
        window = np.array(tokens[-CONTEXT:])
        padded = jnp.asarray(np.pad(window, (0, CONTEXT - len(window))))
        tokens.append(int(draw(model, padded, len(window) - 1, key)))
    return "".join(text.words[token] for token in tokens)


# --- the report ---


def table(outcomes: dict[str, Outcome]) -> str:
    facts = next(iter(outcomes.values())).facts
    rows = [
        ["", *outcomes],
        *([fact, *(it.facts[fact] for it in outcomes.values())] for fact in facts),
    ]
    return "\n".join(f"{row[0]:<26}" + "".join(f"{cell:>22}" for cell in row[1:]) for row in rows)


def picture(outcomes: dict[str, Outcome], path: Path) -> None:
    figure = Figure(figsize=(13, 8), layout="constrained")  # no pyplot: needs no display
    mosaic: Any = [["apart", "counts"], ["training", "held out"]]
    panels = figure.subplot_mosaic(mosaic)
    for color, line, (name, outcome) in zip(
        ["C3", "C0", "C2"], ["--", "-", ":"], outcomes.items(), strict=True
    ):
        count, width = len(outcome.losses), min(20, len(outcome.losses))
        smooth = np.convolve(outcome.losses, np.ones(width) / width, "valid")
        measured = [*range(0, count, MEASURED), count]
        for panel, steps, values in (
            ("apart", measured, 100 * np.array(outcome.apart)),
            ("training", np.arange(width, count + 1), smooth),
            ("held out", measured[1:], outcome.held_out[1:]),
        ):
            panels[panel].plot(steps, values, line, color=color, linewidth=2, label=name)
            panels[panel].set(xlabel="step", ylabel="bits per word")
    panels["apart"].set(ylabel="% of their size", title="How far the two tables are apart")
    panels["training"].set(title="Loss on the text that is trained on")
    panels["held out"].set(title="Loss on text that is held out")
    bars(panels["counts"], {name: outcome.counts for name, outcome in outcomes.items()})
    for panel in ("apart", "training", "held out"):
        panels[panel].legend()

    plain, ours, wider = (it.counts["parameters"] for it in outcomes.values())
    figure.suptitle("A transformer with one table for embedding and unembedding", fontsize=15)
    figure.supxlabel(
        "Model, code and seed are the same. Plain JAX makes two tables of the one and trains "
        f"{plain - ours:,} parameters more:\nanother model than the one that was written. "
        f"The wider model of pydag's has {wider:,} parameters, too, and one table.",
        fontsize=11,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def bars(panel: Any, counts: dict[str, dict[str, int]]) -> None:
    """What there is to train, as bars with their numbers."""
    panel.set(title="What there is to train", xticks=[], yticks=[], xlim=(0, 1.02), ylim=(-14, 1))
    for i, what in enumerate(next(iter(counts.values()))):
        most = max(count[what] for count in counts.values())
        panel.text(0.01, -5 * i, what, va="center", weight="bold")
        for j, (name, count) in enumerate(counts.items(), 1):
            panel.barh(-5 * i - j, count[what] / most, color=["C3", "C0", "C2"][j - 1], alpha=0.5)
            panel.text(0.01, -5 * i - j, f"{count[what]:,}  {name}", va="center")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a tied transformer by JAX and by pydag.")
    parser.add_argument("--steps", type=int, default=600, help="training steps (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/tied_transformer.png"))
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f"--steps must be at least 1, not {args.steps}")

    text = Text.read()
    # The control: one table, and as many parameters as with two, in wider layers.
    wider = HIDDEN + round(len(text.words) * WIDTH / (BLOCKS * (2 * WIDTH + 1)))
    key, words = jax.random.key(0), len(text.words)
    contenders = {
        "plain JAX": (Transformer(key, words), step_of_jax),
        "pydag": (Transformer(key, words), step_of_pydag),
        "pydag, wider": (Transformer(key, words, wider), step_of_pydag),
    }
    outcomes = {
        name: train(name, model, make_step, text, args.steps)
        for name, (model, make_step) in contenders.items()
    }
    print(f"\n{len(text.train):,} words, {words:,} different ones\n")
    print(table(outcomes))
    print("\nPlain JAX made two tables of the one, and trained another model than was written.")
    print("\nThe tied one writes:\n")
    print(write(outcomes["pydag"].model, text, ["\n", "A", " shared"], 80))
    picture(outcomes, args.out)
    print(f"\nThe picture is in {args.out}")


if __name__ == "__main__":
    main()
