# SPDX-License-Identifier: Apache-2.0
"""`update_argnums`: a step that changes a model in place, beside one that returns it."""

import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import layers
from calls import Stepping
from peers import Peers
from records import Record, Task
from timing import Effort, Work, contest

import pydag

UPDATED = "updated"  # a label: what a record is about
LEAVES = (30, 300, 1200)
IN_PLACE, RETURNED = "update_argnums", "returned"  # after the kind of model
KINDS = ("dict", "fields", "NNX module")


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each size."""
    return [
        Task(f"update_argnums, {count} leaves", partial(_race, peers, effort, count))
        for count in LEAVES[: 1 if effort.quick else None]
    ]


def _race(peers: Peers, effort: Effort, count: int) -> list[Record]:
    # The first call compiles, which says nothing about the next ones.
    patient = replace(effort, patience=math.inf, turn=max(0.02, effort.turn))
    outcome = contest(_contenders(peers, count // 3), patient)
    return [Record.of("boundary", {"work": UPDATED, "leaves": count}, outcome)]


def _contenders(peers: Peers, count: int) -> dict[str, Work]:
    interop = importlib.import_module("pydag.jaxinterop")  # not at the top: JAX may be missing
    kinds: dict[str, tuple[layers.Layered, Callable[[Any], None]]] = {
        KINDS[0]: (layers.of_dicts, _shrink),
        KINDS[1]: (layers.of_fields, _shrink),
    }
    if "flax" in peers:
        kinds[KINDS[2]] = layers.of_nnx_modules(peers), partial(_shrink_nnx, peers)
    found = {}
    for kind, (make, shrink) in kinds.items():

        def returned(model: Any, shrink: Callable[[Any], None] = shrink) -> Any:
            shrink(model)
            return model

        # All models hold arrays that were made in the same order.
        array = partial(peers["jax"].numpy.ones, 4)
        updating = interop.jit(shrink, update_argnums=0)
        found[f"{kind}, {IN_PLACE}"] = Work(updating, make(count, array))
        stepping = Stepping(interop.jit(returned), make(count, array))
        found[f"{kind}, {RETURNED}"] = Work(stepping.step)
    return found


def _shrink(model: Any) -> None:
    pydag.dag_update(model, pydag.dag_map(lambda x: 0.9 * x, model))


def _shrink_nnx(peers: Peers, model: Any) -> None:
    jax, nnx = peers["jax"], peers["flax"]
    nnx.update(model, jax.tree_util.tree_map(lambda x: 0.9 * x, nnx.state(model)))
