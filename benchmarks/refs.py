# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled functions with refs, JAX's mutable arrays.

A step writes into all refs of a model. The floor is `jax.jit` with the same arrays in a flat list,
donated and returned. A quick run leaves out the large model.
"""

import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from peers import Peers
from records import Record, Task
from timing import Effort, Work, contest

REFS = "refs"  # the label
LEAVES = (30, 300, 1200)
ARRAYS = "floor: jax.jit, arrays donated and returned"
OURS = "pydag jit, refs"
SHARED = "pydag jit, refs, each in two modules"
JAX = "jax.jit, refs"


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each size; none where JAX has no refs."""
    if "jax" not in peers or not hasattr(peers["jax"], "new_ref"):
        return []
    return [
        Task(f"jit with {count} refs", partial(_race, peers, effort, count))
        for count in LEAVES[: 1 if effort.quick else None]
    ]


def _race(peers: Peers, effort: Effort, count: int) -> list[Record]:
    # The first call compiles, which says nothing about the next ones.
    patient = replace(effort, patience=math.inf, turn=max(0.02, effort.turn))
    outcome = contest(_contenders(peers["jax"], count), patient)
    return [Record.of("boundary", {"work": REFS, "leaves": count}, outcome)]


def _contenders(jax: Any, count: int) -> dict[str, Work]:
    interop = importlib.import_module("pydag.jaxinterop")  # not at the top: JAX may be missing
    x = jax.numpy.float32(1.0)

    def arrays() -> list[Any]:
        return [jax.numpy.full(4, float(i)) for i in range(count)]

    def refs() -> list[Any]:
        return list(map(jax.new_ref, arrays()))

    def step() -> Callable[..., None]:
        def write(model: Any, x: Any) -> None:
            for ref in model:
                ref[...] = ref[...] + x

        return write

    shared = refs()
    modules = {"encoder": shared, "decoder": list(shared)}

    def write_shared(model: Any, x: Any) -> None:
        step()(model["encoder"], x)

    return {
        ARRAYS: Work(_Rebound(jax, arrays()), x),
        OURS: Work(interop.jit(step()), refs(), x),
        SHARED: Work(interop.jit(write_shared), modules, x),
        JAX: Work(jax.jit(step()), refs(), x),
    }


class _Rebound:
    """The step on arrays, whose results are what the next one is given."""

    def __init__(self, jax: Any, arrays: list[Any]) -> None:
        self.arrays = arrays
        self.step = jax.jit(lambda arrays, x: [a + x for a in arrays], donate_argnums=0)

    def __call__(self, x: Any) -> None:
        self.arrays = self.step(self.arrays, x)
