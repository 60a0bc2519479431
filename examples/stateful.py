# SPDX-License-Identifier: Apache-2.0
"""A model with state that its layers share, trained in three ways, and in one that forgets.

Two layers hold one weight, one batch norm and one random stream for their dropout. So a step
changes more than the weights: the running statistics, and the counter of the stream. It gets out as
a result, through refs, or through `update_argnums`. The three trainings have the same losses. A
fourth one forgets to hand the changes on, as is easily done: each of its steps draws the same
masks, and its statistics stay what they were. pydag warns of it. Plain JAX refuses the refs, and
says nothing of what is forgotten. A table and a picture show what that costs, on the digits that
scikit-learn ships.

    python examples/stateful.py [--steps 400] [--out out/stateful.png]
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from tqdm import tqdm

import pydag
import pydag.jaxinterop as pj

WIDTH, BATCH, HELD_OUT = 48, 64, 360
RATE = 0.5  # of dropout
MOMENTUM = 0.97  # of the running statistics
LEARNING_RATE = 3e-3
TRAINED = ["*.weight", "*.bias", "*.scale"]

Array = jax.Array
Data = tuple[Array, Array]  # images and labels


# --- the model: each place holds an array, or a ref of one ---


def put(owner: pj.Module, name: str, value: Array) -> None:
    """Writes into the ref that stands there, or puts the array in the place of the old one."""
    place = getattr(owner, name)
    if isinstance(place, jax.Ref):
        place[...] = value
    else:
        setattr(owner, name, value)


class Stream(pj.Module):
    """A random stream: each draw has a key of its own."""

    def __init__(self, seed: int) -> None:
        self.key = jax.random.key(seed)
        self.count = jnp.int32(0)

    def next(self) -> Array:
        key = jax.random.fold_in(self.key[...], self.count[...])
        put(self, "count", self.count[...] + 1)
        return key


class Norm(pj.Module):
    """Normalizes by the batch's statistics while training, by the running ones afterwards."""

    def __init__(self, width: int) -> None:
        self.scale, self.bias = jnp.ones(width), jnp.zeros(width)
        self.mean, self.variance = jnp.zeros(width), jnp.ones(width)

    def __call__(self, x: Array, is_training: bool) -> Array:
        mean, variance = self.mean[...], self.variance[...]
        if is_training:
            mean, variance = x.mean(0), x.var(0)
            for name, now in (("mean", mean), ("variance", variance)):
                new = MOMENTUM * getattr(self, name)[...] + (1 - MOMENTUM) * now
                put(self, name, jax.lax.stop_gradient(new))
        x = (x - mean) / jnp.sqrt(variance + 1e-5)
        return x * self.scale[...] + self.bias[...]


class Layer(pj.Module):
    def __init__(self, weight: Array, norm: Norm, stream: Stream) -> None:
        self.weight, self.norm, self.stream = weight, norm, stream
        self.bias = jnp.zeros(weight.shape[1])

    def __call__(self, x: Array, is_training: bool) -> Array:
        y = jax.nn.relu(self.norm(x @ self.weight[...] + self.bias[...], is_training))
        if is_training:
            y = jnp.where(jax.random.bernoulli(self.stream.next(), RATE, y.shape), y / RATE, 0)
        return x + y


class Classifier(pj.Module):
    def __init__(self, key: Array, pixels: int, width: int = WIDTH) -> None:
        keys = jax.random.split(key, 3)
        self.enter = jax.random.normal(keys[0], (pixels, width)) / jnp.sqrt(pixels)
        weight = jax.random.normal(keys[1], (width, width)) / jnp.sqrt(width)
        norm, stream = Norm(width), Stream(0)
        self.layers = [Layer(weight, norm, stream) for _ in range(2)]  # all three are shared
        self.weight = jax.random.normal(keys[2], (width, 10)) / jnp.sqrt(width)

    def __call__(self, images: Array, is_training: bool) -> Array:
        x = images @ self.enter[...]
        for layer in self.layers:
            x = layer(x, is_training)
        return x @ self.weight[...]


def loss(model: Classifier, data: Data, is_training: bool = True) -> Array:
    images, labels = data
    scores = model(images, is_training)
    losses: Array = optax.softmax_cross_entropy_with_integer_labels(scores, labels)
    return losses.mean()


# --- the ways: what each of them calls with a batch ---

optimizer = pj.optimizer(optax.adam(LEARNING_RATE), wrt=TRAINED)
Step = Callable[[Data], Array]


class Training(pj.Module):
    """What a training changes."""

    def __init__(self, model: Classifier) -> None:
        self.model, self.state = model, optimizer.init(model)


def _exchanging(it: Training, step: Callable[..., tuple[Training, Array]]) -> Step:
    """Calls a step that returns a new training, and goes on with that."""

    def call(data: Data) -> Array:
        new, value = step(it, data)
        it.model, it.state = new.model, new.state
        return value

    return call


def values_out(it: Training) -> Step:
    """The changed model is a result, of the loss and of the step."""

    @partial(pj.jit, donate_argnums=0)
    def step(it: Training, data: Data) -> tuple[Training, Array]:
        def loss_and_model(model: Classifier) -> tuple[Array, Classifier]:
            return loss(model, data), model

        gradient_of = pj.value_and_grad(loss_and_model, has_aux=True, wrt=TRAINED)
        (value, it.model), gradient = gradient_of(it.model)
        updates, it.state = optimizer.update(gradient, it.state, it.model)
        it.model = pj.apply_updates(it.model, updates)
        return it, value

    return _exchanging(it, step)


def by_update_argnums(it: Training) -> Step:
    """The step changes the caller's own model, whose weights it writes in, too."""

    @pj.jit(update_argnums=0, donate_argnums=1)
    def step(model: Classifier, state: Any, data: Data) -> tuple[Any, Array]:
        value, gradient = pj.value_and_grad(loss, wrt=TRAINED, update_argnums=0)(model, data)
        updates, state = optimizer.update(gradient, state, model)
        pydag.dag_update(model, pj.apply_updates(model, updates))
        return state, value

    def call(data: Data) -> Array:
        it.state, value = step(it.model, it.state, data)
        return value

    return call


def by_refs(it: Training) -> Step:
    """Every array is a ref, one for each that is shared; the step writes into these."""
    it.model = pydag.dag_map(jax.new_ref, it.model, where=jax.Array)
    it.state = pj.tree.map(jax.new_ref, it.state)

    @pj.jit
    def step(it: Training, data: Data) -> Array:
        value, gradient = pj.value_and_grad(loss, wrt=TRAINED)(it.model, data)
        state = pj.tree.map(lambda ref: ref[...], it.state)
        updates, state = optimizer.update(gradient, state, it.model)
        pj.apply_updates(it.model, updates)
        pydag.dag_update(it.state, state)
        return value

    return partial(step, it)


def forgetful(it: Training) -> Step:
    """As `values_out`, but the loss doesn't return the model that it has changed."""

    @partial(pj.jit, donate_argnums=0)
    def step(it: Training, data: Data) -> tuple[Training, Array]:
        value, gradient = pj.value_and_grad(loss, wrt=TRAINED)(it.model, data)
        updates, it.state = optimizer.update(gradient, it.state, it.model)
        it.model = pj.apply_updates(it.model, updates)
        return it, value

    return _exchanging(it, step)


WAYS = {
    "values out": values_out,
    "refs": by_refs,
    "update_argnums": by_update_argnums,
    "forgotten": forgetful,
}
FORGOTTEN = "forgotten"


@dataclass
class Outcome:
    losses: list[float]
    measured: list[int]  # at which steps
    draws: list[int]  # the counter of the stream
    means: list[float]  # the norm of the running mean
    held_out: list[float]  # the loss there
    facts: dict[str, str]  # the rows of the table
    warning: str


MEASURED = 10  # steps from one measurement to the next


def train(name: str, train_data: Data, held_out: Data, steps: int) -> Outcome:
    it = Training(Classifier(jax.random.key(0), train_data[0].shape[1]))
    step = WAYS[name](it)

    @pj.jit
    def measure(model: Classifier) -> tuple[Array, Array, Array, Array]:
        layer = model.layers[0]
        right = model(held_out[0], False).argmax(-1) == held_out[1]
        size = jnp.linalg.norm(layer.norm.mean[...])
        return layer.stream.count[...], size, loss(model, held_out, False), right.mean()

    random, losses, measured = np.random.default_rng(0), [], [(0, measure(it.model))]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", pj.LostUpdateWarning)
        for i in tqdm(range(1, steps + 1), desc=f"{name:>14}", unit="step"):
            batch = random.integers(len(train_data[0]), size=BATCH)
            losses.append(step((train_data[0][batch], train_data[1][batch])))
            if i % MEASURED == 0 or i == steps:
                measured.append((i, measure(it.model)))

    first, second = it.model.layers
    at, found = zip(*measured, strict=True)
    draws, means, held_out_losses, right = zip(*found, strict=True)
    return Outcome(
        losses=[float(x) for x in losses],
        measured=list(at),
        draws=[int(x) for x in draws],
        means=[float(x) for x in means],
        held_out=[float(x) for x in held_out_losses],
        facts={
            "loss of the last 20 steps": f"{np.mean([float(x) for x in losses[-20:]]):.4f}",
            "loss, held out": f"{held_out_losses[-1]:.4f}",
            "right, held out": f"{right[-1]:.1%}",
            "masks drawn": f"{draws[-1]:,}",
            "weight, norm, stream shared": "yes"
            if first.weight is second.weight
            and first.norm is second.norm
            and first.stream is second.stream
            else "no",
        },
        warning="".join(str(w.message) for w in told if w.category is pj.LostUpdateWarning),
    )


def refusal() -> str:
    """What plain JAX says of two layers that share their refs."""
    model = pydag.dag_map(jax.new_ref, Classifier(jax.random.key(0), WIDTH), where=jax.Array)

    def run(layers: list[Layer], x: Array) -> Array:
        return layers[1](layers[0](x, True), True)

    try:
        jax.jit(run)(model.layers, jnp.ones((BATCH, WIDTH)))
    except ValueError as error:
        return str(error)
    return ""


# --- the report ---


def table(outcomes: dict[str, Outcome]) -> str:
    facts = next(iter(outcomes.values())).facts
    rows = [
        ["", *outcomes],
        *([fact, *(it.facts[fact] for it in outcomes.values())] for fact in facts),
    ]
    return "\n".join(f"{row[0]:<28}" + "".join(f"{cell:>16}" for cell in row[1:]) for row in rows)


def picture(outcomes: dict[str, Outcome], path: Path) -> None:
    figure = Figure(figsize=(13, 8), layout="constrained")  # no pyplot: needs no display
    mosaic: Any = [["losses", "held out"], ["draws", "means"]]
    panels = figure.subplot_mosaic(mosaic)
    # The first three lie on one another: a wide line, a narrower one on it, and dots on both.
    looks: list[dict[str, Any]] = [
        {"color": "C0", "linewidth": 9, "alpha": 0.3},
        {"color": "C2", "linewidth": 3.5, "alpha": 0.7},
        {"color": "black", "linewidth": 1.5, "linestyle": ":"},
        {"color": "C3", "linewidth": 2, "linestyle": "--"},
    ]
    for look, (name, outcome) in zip(looks, outcomes.items(), strict=True):
        width = min(20, len(outcome.losses))
        smooth = np.convolve(outcome.losses, np.ones(width) / width, "valid")
        steps = np.arange(width, len(outcome.losses) + 1)
        panels["losses"].plot(steps, smooth, label=name, **look)
        panels["held out"].plot(outcome.measured, outcome.held_out, label=name, **look)
        panels["draws"].plot(outcome.measured, outcome.draws, label=name, **look)
        panels["means"].plot(outcome.measured, outcome.means, label=name, **look)
    panels["losses"].set(title="Loss of training, the mean of 20 steps", yscale="log")
    panels["held out"].set(title="Loss on digits that are held out", yscale="log")
    panels["draws"].set(title="Counter of the random stream that both layers share")
    panels["means"].set(title="Size of the running mean, by which evaluation normalizes")
    for panel in panels.values():
        panel.set(xlabel="step")
    panels["losses"].legend()
    figure.suptitle("Two layers that share a weight, a batch norm and a random stream", fontsize=15)
    figure.supxlabel(
        "Three ways to get the changes out of a compiled step do the same. Where the loss doesn't "
        "return the model that it has changed, every step draws\nthe same two masks, and the "
        "statistics stay what they were: its training looks best, and on other digits it does "
        "worse. pydag warns of it.",
        fontsize=11,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a model with shared state in three ways.")
    parser.add_argument("--steps", type=int, default=400, help="training steps (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/stateful.png"))
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f"--steps must be at least 1, not {args.steps}")

    digits = load_digits()
    images = jnp.asarray(digits.data / 16.0, dtype=jnp.float32)
    labels = jnp.asarray(digits.target)
    train_data = images[:-HELD_OUT], labels[:-HELD_OUT]
    held_out = images[-HELD_OUT:], labels[-HELD_OUT:]
    outcomes = {name: train(name, train_data, held_out, args.steps) for name in WAYS}

    print(f"\n{len(train_data[0]):,} digits, {args.steps:,} steps of {BATCH}\n")
    print(table(outcomes))
    good = np.array([it.losses for name, it in outcomes.items() if name != FORGOTTEN])
    furthest = np.abs(good - good[0]).max()
    print(f"\nThe losses of the three ways are at most {furthest:.1g} apart.")
    print(f"\nWhat pydag says of the one that forgets:\n  {outcomes[FORGOTTEN].warning}")
    print(f"\nWhat plain JAX says of the refs:\n  {refusal()}")
    picture(outcomes, args.out)
    print(f"\nThe picture is in {args.out}")


if __name__ == "__main__":
    main()
