# SPDX-License-Identifier: Apache-2.0
"""A tied autoencoder, trained as plain JAX sees it and as pydag sees it.

The decoder holds the encoder's own layer and applies it transposed, so the model has one weight
that is used twice. Both trainings start from the same model and run the same code, on the 1,797
handwritten digits that scikit-learn ships; all that differs is who carries the model across the
JAX boundary. To plain JAX the weight is two, so it has more to train. A third training, by pydag,
is of a model with so many hidden units that it has as many parameters as plain JAX trains. A table
and a picture show what became of the tie, and what it is good for.

    python examples/tied_autoencoder.py [--steps 1500] [--out out/tied_autoencoder.png]
"""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import optax
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from tqdm import tqdm

import pydag
import pydag.jaxinterop

HIDDEN = 24
WIDER = 48  # of one weight, has as many parameters as 24 of two: 64 * 48 + 48 + 64
LEARNING_RATE = 3e-3
SHOWN = 10  # digits in the picture


# --- the model: ordinary classes, tied by putting one object into two places ---


class Module:
    """A class whose attributes are its children; one line tells pydag so."""

    def __init_subclass__(cls) -> None:
        # Plain JAX is told as well, so that it can be handed the very same model.
        jax.tree_util.register_pytree_node(cls, open_module, partial(build_module, cls))
        pydag.register_module(cls)


def open_module(module: Module) -> tuple[Iterable[Any], tuple[str, ...]]:
    return tuple(vars(module).values()), tuple(vars(module))


def build_module(cls: type[Module], names: tuple[str, ...], children: Iterable[Any]) -> Module:
    module = object.__new__(cls)
    vars(module).update(zip(names, children, strict=True))
    return module


class Layer(Module):
    def __init__(self, key: jax.Array, inputs: int, outputs: int) -> None:
        self.weight = jax.random.normal(key, (inputs, outputs)) / jnp.sqrt(inputs)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x @ self.weight + self.bias


class Transposed(Module):
    """Runs a layer backwards: its weight transposed, with a bias of its own."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.bias = jnp.zeros(layer.weight.shape[0])

    def __call__(self, x: jax.Array) -> jax.Array:
        return x @ self.layer.weight.T + self.bias


class Autoencoder(Module):
    def __init__(self, key: jax.Array, pixels: int, hidden: int = HIDDEN) -> None:
        self.encoder = Layer(key, pixels, hidden)
        self.decoder = Transposed(self.encoder)  # the tie: no copy, no wrapper, no declaration

    def __call__(self, images: jax.Array) -> jax.Array:
        return self.decoder(jnp.tanh(self.encoder(images)))


def apart(model: Autoencoder) -> jax.Array:
    """How far the weights of encoder and decoder are from one another, for their size."""
    one, other = model.encoder.weight, model.decoder.layer.weight
    distance: jax.Array = jnp.linalg.norm(one - other) / jnp.linalg.norm(one)
    return distance


def reconstruction_error(model: Autoencoder, images: jax.Array) -> jax.Array:
    return jnp.mean((model(images) - images) ** 2)


# --- the training: the same code for both ways across the JAX boundary ---


@dataclass(frozen=True)
class Way:
    """One way to take a model across the JAX boundary."""

    jit: Callable[..., Any]
    value_and_grad: Callable[..., Any]
    pack: Callable[[Any], Any]  # model -> what optax, which calls plain JAX, gets for it
    unpack: Callable[[Any], Any]  # and back


PLAIN = Way(jax.jit, jax.value_and_grad, lambda model: model, lambda model: model)
PYDAG = Way(
    pydag.jaxinterop.jit,
    pydag.jaxinterop.value_and_grad,
    pydag.jaxinterop.Dag,
    lambda dag: dag.tree,
)


@dataclass
class Outcome:
    model: Autoencoder
    counts: dict[str, int]
    facts: dict[str, str]  # the rows of the table
    losses: list[float]
    apart: list[float]
    refusal: str  # why donation failed, "" if it worked


def train(name: str, way: Way, hidden: int, images: jax.Array, steps: int) -> Outcome:
    optimizer = optax.adam(LEARNING_RATE)

    def start() -> tuple[Autoencoder, Any]:
        model = Autoencoder(jax.random.key(0), images.shape[1], hidden)
        return model, optimizer.init(way.pack(model))

    def step(model: Autoencoder, state: Any) -> tuple[Autoencoder, Any, jax.Array, jax.Array]:
        loss, gradient = way.value_and_grad(reconstruction_error)(model, images)
        updates, state = optimizer.update(way.pack(gradient), state)
        model = way.unpack(optax.apply_updates(way.pack(model), updates))
        return model, state, loss, apart(model)

    model, state = start()
    leaves = jax.tree.leaves(way.pack(model))
    moments = jax.tree.leaves((state[0].mu, state[0].nu))
    _, gradient = way.value_and_grad(reconstruction_error)(model, images)
    # One gradient object if the weight is one, two if it came apart.
    parts = pydag.dag_leaves([gradient.encoder.weight, gradient.decoder.layer.weight])

    fast_step, refusal = way.jit(step, donate_argnums=(0, 1)), ""
    try:
        fast_step(*start())
    except jax.errors.JaxRuntimeError as error:
        fast_step, refusal = way.jit(step), str(error).splitlines()[0]

    first_weight = model.encoder.weight
    losses, distances = [], [apart(model)]
    for _ in (bar := tqdm(range(steps), desc=f"{name:>12}", unit="step")):
        model, state, loss, distance = fast_step(model, state)
        losses.append(loss)
        distances.append(distance)
        if len(losses) % 100 == 0:
            bar.set_postfix(error=f"{loss:.4f}")

    donation = "works" if first_weight.is_deleted() else "ignored"
    if refusal:
        donation = "refused (see below)"
    tied = model.encoder is model.decoder.layer
    counts = {
        "leaves": len(leaves),
        "parameters": sum(leaf.size for leaf in leaves),
        "bytes of adam's moments": sum(moment.nbytes for moment in moments),
    }
    facts = {fact: f"{count:,}" for fact, count in counts.items()} | {
        "gradient of the tied weight": "one, the sum" if len(parts) == 1 else f"{len(parts)} parts",
        "  norm": ", ".join(f"{jnp.linalg.norm(part):.4f}" for part in parts),
        "donation": donation,
        "tied after training": "yes" if tied else f"no, {distances[-1]:.0%} apart",
        "reconstruction error": f"{reconstruction_error(model, images):.5f}",
    }
    return Outcome(model, counts, facts, [*map(float, losses)], [*map(float, distances)], refusal)


# --- the report ---


def table(outcomes: dict[str, Outcome]) -> str:
    facts = next(iter(outcomes.values())).facts
    rows = [
        ["", *outcomes],
        *([fact, *(it.facts[fact] for it in outcomes.values())] for fact in facts),
    ]
    return "\n".join(f"{row[0]:<28}" + "".join(f"{cell:>22}" for cell in row[1:]) for row in rows)


def picture(outcomes: dict[str, Outcome], images: jax.Array, path: Path) -> None:
    figure = Figure(figsize=(13, 8), layout="constrained")  # no pyplot: needs no display
    parts: Any = figure.subfigures(2, 1, height_ratios=(5, 4))
    above, below = parts
    apart, counts, errors = above.subplots(1, 3)
    for color, line, (name, outcome) in zip(
        ["C3", "C0", "C2"], ["--", "-", ":"], outcomes.items(), strict=True
    ):
        look: Any = {"color": color, "linestyle": line, "linewidth": 2, "label": name}
        apart.plot([100 * distance for distance in outcome.apart], **look)
        errors.plot(outcome.losses, **look)
    apart.set(xlabel="step", ylabel="% of their size", title="How far the two weights are apart")
    errors.set(xlabel="step", yscale="log", title="Reconstruction error")
    bars(counts, {name: outcome.counts for name, outcome in outcomes.items()})
    apart.legend()
    errors.legend()

    rows = {"digits": images} | {name: it.model(images) for name, it in outcomes.items()}
    grid: Any = below.subplots(len(rows), SHOWN)
    for axes, (name, reconstructions) in zip(grid, rows.items(), strict=True):
        axes[0].set_ylabel(name, rotation=0, ha="right", va="center")
        for panel, pixels in zip(axes, reconstructions, strict=True):
            panel.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            panel.set(xticks=[], yticks=[])

    plain, wider, ours = outcomes.values()
    figure.suptitle(
        f"Plain JAX untied the decoder from the encoder: {plain.apart[-1]:.0%} apart. pydag kept "
        f"one weight,\nand with as many parameters has {wider.losses[-1] / plain.losses[-1]:.0%} "
        "of plain JAX's error.",
        fontsize=15,
    )
    figure.supxlabel(
        "An autoencoder whose decoder is its encoder, transposed. Plain JAX makes two weights of "
        f"the one and trains {plain.counts['parameters']:,} parameters\ninstead of "
        f"{ours.counts['parameters']:,}. The wider model of pydag's keeps one weight and has "
        f"{wider.counts['parameters']:,} parameters, too. Code and seed are the same.",
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
    parser = argparse.ArgumentParser(description="Train a tied autoencoder by JAX and by pydag.")
    parser.add_argument("--steps", type=int, default=1500, help="training steps (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/tied_autoencoder.png"))
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f"--steps must be at least 1, not {args.steps}")
    # XLA logs the refused donation by itself; the table says it once and that is enough.
    cast(Any, jax.config).update("jax_logging_level", "CRITICAL")  # has no types in some releases

    images = jnp.asarray(load_digits().data / 16.0, dtype=jnp.float32)
    trainings = {
        "plain JAX": (PLAIN, HIDDEN),
        "pydag, wider": (PYDAG, WIDER),  # first what has as many parameters
        "pydag": (PYDAG, HIDDEN),
    }
    outcomes = {
        name: train(name, way, hidden, images, args.steps)
        for name, (way, hidden) in trainings.items()
    }
    print(f"\n{len(images):,} digits of {images.shape[1]} pixels, {args.steps:,} steps each\n")
    print(table(outcomes))
    print("\nPlain JAX had twice the weight to train: not the model that was written, another one.")
    errors = [outcomes[name].losses[-1] for name in ("plain JAX", "pydag, wider")]
    print(f"With as many parameters, the tied model has {errors[1] / errors[0]:.0%} of its error.")
    for name, outcome in outcomes.items():
        if outcome.refusal:
            print(f"What {name} says of donation:\n  {outcome.refusal}")
    picture(outcomes, images[:SHOWN], args.out)
    print(f"\nThe picture is in {args.out}")


if __name__ == "__main__":
    main()
