# SPDX-License-Identifier: Apache-2.0
"""A tied autoencoder, trained as plain JAX sees it and as pydag sees it.

The decoder holds the encoder's own layer and applies it transposed, so the model has one weight
that is used twice. All trainings start from the same random key and run the same code, on the 1,797
handwritten digits that scikit-learn ships; what differs is who carries the model across the JAX
boundary, and how many hidden units it has. Plain JAX makes two weights of the one, so it trains
twice as many parameters at the same width. The table compares both at two widths, of which the
larger one, tied, has as many parameters as the smaller one, untied.

    python examples/tied_autoencoder.py [--steps 1500] [--out out/tied_autoencoder.png]
"""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
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


# --- the model: ordinary classes, tied by putting one object into two places ---


class Module:
    """A class whose attributes are its children; one line tells pydag so."""

    def __init_subclass__(cls) -> None:
        # Registered with JAX as well, so that plain JAX gets the very same model.
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
    counts: dict[str, int]
    facts: dict[str, str]  # the rows of the table
    losses: list[float]
    apart: list[float]
    refusal: str  # why donation failed, "" if it worked

    @property
    def error(self) -> float:
        """Of the last hundred steps the median: adam makes a leap now and then."""
        return median(self.losses[-100:])


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
    for _ in (bar := tqdm(range(steps), desc=f"{name:>20}", unit="step")):
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
    }
    outcome = Outcome(counts, facts, [*map(float, losses)], [*map(float, distances)], refusal)
    outcome.facts["reconstruction error"] = f"{outcome.error:.5f}"
    return outcome


# --- the report ---


def table(outcomes: dict[str, Outcome]) -> str:
    facts = next(iter(outcomes.values())).facts
    rows = [
        ["", *outcomes],
        *([fact, *(it.facts[fact] for it in outcomes.values())] for fact in facts),
    ]
    return "\n".join(f"{row[0]:<28}" + "".join(f"{cell:>24}" for cell in row[1:]) for row in rows)


LOOKS = [("C1", "--"), ("C0", ":"), ("C3", "--"), ("C0", "-")]


def picture(outcomes: dict[str, Outcome], path: Path) -> None:
    """Two panels that are readable in a column of 650 pixels."""
    figure = Figure(figsize=(7, 7), layout="constrained")  # no pyplot: needs no display
    above, below = figure.subplots(2, 1, sharex=True)
    for (color, line), (name, outcome) in zip(LOOKS, outcomes.items(), strict=True):
        label = f"{name}: {outcome.counts['parameters']:,} parameters"
        look: Any = {"color": color, "linestyle": line, "linewidth": 2, "label": label}
        above.plot([100 * distance for distance in outcome.apart], **look)
        below.plot(outcome.losses, **look)
    above.set(ylabel="% of their size", title="How far the two weights are apart")
    below.set(xlabel="step", yscale="log", title="Reconstruction error")
    below.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def conclusions(outcomes: dict[str, Outcome]) -> str:
    """What the table shows, in words."""
    lines = []
    for width in (HIDDEN, WIDER):
        plain, tied = (outcomes[f"{who}, width {width}"] for who in ("plain JAX", "pydag"))
        parameters = tied.counts["parameters"] / plain.counts["parameters"]
        error = tied.error / plain.error
        lines.append(
            f"At width {width} the tied model has {parameters:.0%} of plain JAX's parameters, "
            f"and {error:.0%} of its error."
        )
    return "\n".join(lines)


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
        f"{who}, width {width}": (way, width)
        for width in (HIDDEN, WIDER)
        for who, way in {"plain JAX": PLAIN, "pydag": PYDAG}.items()
    }
    outcomes = {
        name: train(name, way, hidden, images, args.steps)
        for name, (way, hidden) in trainings.items()
    }
    print(f"\n{len(images):,} digits of {images.shape[1]} pixels, {args.steps:,} steps each\n")
    print(table(outcomes))
    print(f"\n{conclusions(outcomes)}")
    for name, outcome in outcomes.items():
        if outcome.refusal:
            print(f"What {name} says of donation:\n  {outcome.refusal}")
    picture(outcomes, args.out)
    print(f"\nThe picture is in {args.out}")


if __name__ == "__main__":
    main()
