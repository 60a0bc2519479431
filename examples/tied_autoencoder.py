# SPDX-License-Identifier: Apache-2.0
"""A tied autoencoder, trained twice: as plain JAX sees it, and as pydag sees it.

The decoder holds the encoder's own layer and applies it transposed, so the model has one weight
that is used twice. Both trainings start from the same model and run the same code, on the 1,797
handwritten digits that scikit-learn ships; all that differs is who carries the model across the
JAX boundary. A table shows what became of the tie, a picture what the models make of the digits.

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
LEARNING_RATE = 3e-3
SHOWN = 10  # digits in the picture


# --- the model: ordinary classes, tied by putting one object into two places ---


class Module:
    """A class whose attributes are its children; one line tells pydag so."""

    def __init_subclass__(cls) -> None:
        pydag.register_fields(cls)
        # Plain JAX is told as well, so that it can be handed the very same model.
        jax.tree_util.register_pytree_node(cls, open_module, partial(build_module, cls))


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
    def __init__(self, key: jax.Array, pixels: int) -> None:
        self.encoder = Layer(key, pixels, HIDDEN)
        self.decoder = Transposed(self.encoder)  # the tie: no copy, no wrapper, no declaration

    def __call__(self, images: jax.Array) -> jax.Array:
        return self.decoder(jnp.tanh(self.encoder(images)))


def reconstruction_error(model: Autoencoder, images: jax.Array) -> jax.Array:
    return jnp.mean((model(images) - images) ** 2)


# --- the training: the same code for both ways across the JAX boundary ---


@dataclass(frozen=True)
class Way:
    """One way to take a model across the JAX boundary."""

    name: str
    jit: Callable[..., Any]
    value_and_grad: Callable[..., Any]
    pack: Callable[[Any], Any]  # model -> what optax, which calls plain JAX, gets for it
    unpack: Callable[[Any], Any]  # and back


PLAIN = Way("plain JAX", jax.jit, jax.value_and_grad, lambda model: model, lambda model: model)
PYDAG = Way(
    "pydag",
    pydag.jaxinterop.jit,
    pydag.jaxinterop.value_and_grad,
    pydag.jaxinterop.Dag,
    lambda dag: dag.tree,
)


@dataclass
class Outcome:
    facts: dict[str, str]  # the rows of the table
    losses: list[float]
    model: Autoencoder
    refusal: str  # why donation failed, "" if it worked


def train(way: Way, images: jax.Array, steps: int) -> Outcome:
    optimizer = optax.adam(LEARNING_RATE)

    def start() -> tuple[Autoencoder, Any]:
        model = Autoencoder(jax.random.key(0), images.shape[1])
        return model, optimizer.init(way.pack(model))

    def step(model: Autoencoder, state: Any) -> tuple[Autoencoder, Any, jax.Array]:
        loss, gradient = way.value_and_grad(reconstruction_error)(model, images)
        updates, state = optimizer.update(way.pack(gradient), state)
        return way.unpack(optax.apply_updates(way.pack(model), updates)), state, loss

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
    losses: list[jax.Array] = []
    for _ in (bar := tqdm(range(steps), desc=f"{way.name:>9}", unit="step")):
        model, state, loss = fast_step(model, state)
        losses.append(loss)
        if len(losses) % 100 == 0:
            bar.set_postfix(error=f"{loss:.4f}")

    donation = "works" if first_weight.is_deleted() else "ignored"
    if refusal:
        donation = "refused (see below)"
    tied = model.encoder is model.decoder.layer
    apart = float(jnp.max(jnp.abs(model.encoder.weight - model.decoder.layer.weight)))
    facts = {
        "leaves": f"{len(leaves)}",
        "parameters": f"{sum(leaf.size for leaf in leaves):,}",
        "bytes of adam's moments": f"{sum(moment.nbytes for moment in moments):,}",
        "gradient of the tied weight": "one, the sum" if len(parts) == 1 else f"{len(parts)} parts",
        "  norm": ", ".join(f"{jnp.linalg.norm(part):.4f}" for part in parts),
        "donation": donation,
        "tied after training": "yes" if tied else f"no, up to {apart:.2f} apart",
        "reconstruction error": f"{reconstruction_error(model, images):.5f}",
    }
    return Outcome(facts, [float(loss) for loss in losses], model, refusal)


# --- the report ---


def table(outcomes: dict[str, Outcome]) -> str:
    facts = next(iter(outcomes.values())).facts
    rows = [
        ["", *outcomes],
        *([fact, *(it.facts[fact] for it in outcomes.values())] for fact in facts),
    ]
    return "\n".join(f"{row[0]:<28}" + "".join(f"{cell:>22}" for cell in row[1:]) for row in rows)


def picture(outcomes: dict[str, Outcome], images: jax.Array, path: Path) -> None:
    rows = {"digits": images} | {name: it.model(images) for name, it in outcomes.items()}
    figure = Figure(figsize=(12, 3), layout="constrained")  # no pyplot: needs no display
    grid = figure.add_gridspec(len(rows), 4 + SHOWN)

    curves = figure.add_subplot(grid[:, :4])
    for (name, outcome), line in zip(outcomes.items(), ["--", "-"], strict=True):
        curves.plot(outcome.losses, line, label=name)
    curves.set(xlabel="step", ylabel="reconstruction error", yscale="log")
    curves.legend()

    for row, (name, reconstructions) in enumerate(rows.items()):
        for column, pixels in enumerate(reconstructions):
            axes = figure.add_subplot(grid[row, 4 + column])
            axes.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[], ylabel=name if column == 0 else "")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


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
    outcomes = {way.name: train(way, images, args.steps) for way in (PLAIN, PYDAG)}

    print(f"\n{len(images):,} digits of {images.shape[1]} pixels, {args.steps:,} steps each\n")
    print(table(outcomes))
    print("\nPlain JAX had twice the weight to train: not the model that was written, another one.")
    for name, outcome in outcomes.items():
        if outcome.refusal:
            print(f"What {name} says of donation:\n  {outcome.refusal}")
    picture(outcomes, images[:SHOWN], args.out)
    print(f"\nThe picture is in {args.out}")


if __name__ == "__main__":
    main()
