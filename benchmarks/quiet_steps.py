# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: by how much the slowest training steps are slower than the others.

Each step is timed alone, with the garbage collector on, as in a training loop. The time that one
step in a thousand exceeds is compared with the median; and that ratio with the one that `jax.jit`
has on the same model, where it takes it. It is the thread's own time: what the machine does for
others meanwhile doesn't count.
"""

import importlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from peers import Peers
from rows import USUAL, Row, at_most
from timing import Effort, Outcome, Times

import pydag

OTHER = "jax.jit, had it our median"


class Fields:
    """A model of attributes."""

    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b = w, b


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """For each kind of model."""
    if "jax" not in peers:
        return []
    jax, interop = peers["jax"], importlib.import_module("pydag.jaxinterop")
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # a call ends with its results
    if pydag.register_pydag_node.get(Fields) is None:
        pydag.register_fields(Fields, ["w", "b"])
    ours = interop.jit(lambda model: pydag.dag_map(lambda x: 0.999 * x, model))
    theirs = jax.jit(lambda model: jax.tree.map(lambda x: 0.999 * x, model))
    found = []
    for kind, model in _models(peers).items():
        name = f"steps on {kind}: the slowest of 1,000 over the median"
        found.append(at_most(name, 1.2, partial(_alone, partial(_steps, ours, model))))
        if _is_taken(theirs, model):
            both = partial(_steps, ours, model), partial(_steps, theirs, model)
            found.append(at_most(f"{name}, beside jax.jit", 1.0, partial(_beside, *both)))
    return found


def _models(peers: Peers) -> dict[str, Any]:
    array = peers["jax"].numpy.ones(8)
    models: dict[str, Any] = {
        "dicts": {"w": array, "b": array + 1},
        "register_fields": Fields(array, array + 1),
    }
    if "equinox" in peers:
        equinox = peers["equinox"]
        models["an equinox module"] = equinox.nn.Linear(8, 8, key=peers["jax"].random.key(0))
    if "flax" in peers:
        nnx = peers["flax"]
        models["an NNX module"] = nnx.Linear(8, 8, rngs=nnx.Rngs(0))
    return models


def _is_taken(jit: Callable[[Any], Any], model: Any) -> bool:
    try:
        return type(jit(model)) is type(model)
    except TypeError:
        return False


def _steps(step: Callable[[Any], Any], model: Any, number: int) -> tuple[float, float]:
    """The median, and what one step in a thousand exceeds."""
    seconds = []
    model = step(step(model))  # compiled
    for _ in range(number):
        start = time.thread_time()
        model = step(model)
        seconds.append(time.thread_time() - start)
    seconds.sort()
    return seconds[number // 2], seconds[number - number // 1000]


def _best(steps: list[Callable[[int], tuple[float, float]]], effort: Effort) -> list[Any]:
    """Of each the round in which it was most even; they take turns."""
    number = 2_000 if effort.quick else 10_000
    found = [[one(number) for one in steps] for _ in range(effort.rounds)]
    return [
        min(rounds, key=lambda times: times[1] / times[0]) for rounds in zip(*found, strict=True)
    ]


def _alone(ours: Callable[[int], tuple[float, float]], effort: Effort) -> Outcome:
    [(median, slow)] = _best([ours], effort)
    return Outcome({"pydag": Times(slow, slow), USUAL: Times(median, median)})


def _beside(
    ours: Callable[[int], tuple[float, float]],
    theirs: Callable[[int], tuple[float, float]],
    effort: Effort,
) -> Outcome:
    (median, slow), (other_median, other_slow) = _best([ours, theirs], effort)
    scaled = other_slow / other_median * median
    return Outcome({"pydag": Times(slow, slow), OTHER: Times(scaled, scaled)})
