# SPDX-License-Identifier: Apache-2.0
"""The jit boundary: what it costs to call a compiled function with a model.

The functions hardly compute, one reads every array of the model and one updates it; so what is
measured is the way in and out. The floor is `jax.jit` with nothing but a flat tuple of arrays.
Calls with options and wrappers that compile nothing are in calls.py, asynchronous ones in
dispatch.py.
"""

import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import calls
import dispatch
import layers
import updated
from peers import Peers
from records import Record, Task
from timing import Effort, Work, contest

import pydag

LEAVES = (30, 300, 1200)
WORKS = ("read", "update")
TURN = 0.02  # seconds
FLOOR = "floor: jax.jit, flat tuple"
OURS = (
    "pydag jit, dict",
    "pydag jit, dataclass",
    "pydag jit, jax dataclass",
    "pydag jit, equinox module",
)


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each size and function. A quick run leaves out the large model: it compiles."""
    if "jax" not in peers:
        return []
    # A call ends when its results are there.
    peers["jax"].config.update("jax_cpu_enable_async_dispatch", False)
    return [
        *(
            Task(f"jit, {count} leaves, {work}", partial(_race, peers, effort, count, work))
            for count in LEAVES[: 2 if effort.quick else None]
            for work in WORKS
        ),
        *calls.tasks(peers, effort),
        *updated.tasks(peers, effort),
        *dispatch.tasks(peers, effort),
    ]


def _race(peers: Peers, effort: Effort, count: int, work: str) -> list[Record]:
    contenders = _contenders(peers, count // 3, work)
    # The first call compiles, which says nothing about the next ones; and the turns are longer,
    # since what a contender works with comes back into the processor's caches first.
    outcome = contest(contenders, replace(effort, patience=math.inf, turn=max(TURN, effort.turn)))
    return [Record.of("boundary", {"work": work, "leaves": count}, outcome)]


def _shrunk(x: Any) -> Any:
    return 0.9 * x


def _functions(
    leaves: Callable[[Any], list[Any]], map_: Callable[..., Any]
) -> dict[str, Callable[[Any], Any]]:
    """A function that reads a model and one that updates it, by the functions of a library."""

    def read(model: Any) -> Any:
        return sum(leaves(model))

    def update(model: Any) -> Any:
        return map_(_shrunk, model)

    return {"read": read, "update": update}


def _contenders(peers: Peers, count: int, work: str) -> dict[str, Work]:
    jax = peers["jax"]
    interop = importlib.import_module("pydag.jaxinterop")  # not at the top: JAX may be missing

    # Each contender compiles a function of its own: those of one function share what is compiled.
    def plain() -> Any:
        return _functions(jax.tree_util.tree_leaves, jax.tree_util.tree_map)[work]

    def ours() -> Any:
        return interop.jit(_functions(pydag.dag_leaves, pydag.dag_map)[work])

    # All models hold the same arrays: where arrays lie in memory can cost more than a flatten.
    flat = tuple(jax.numpy.float32(1.0) for _ in range(3 * count))

    def model(make: layers.Layered) -> Any:
        return make(count, iter(flat).__next__)

    of_dicts = model(layers.of_dicts)
    of_jax = model(layers.of_jax_dataclasses(peers))
    found = {
        FLOOR: Work(jax.jit(plain()), flat),
        OURS[0]: Work(ours(), of_dicts),
        OURS[1]: Work(ours(), model(layers.of_data_fields)),
        OURS[2]: Work(ours(), of_jax),
        "jax.jit, dict": Work(jax.jit(plain()), of_dicts),
        "jax.jit, dataclass": Work(jax.jit(plain()), of_jax),
    }
    if "equinox" in peers:
        module = model(layers.of_equinox_modules(peers))
        found[OURS[3]] = Work(ours(), module)
        found["jax.jit, equinox module"] = Work(jax.jit(plain()), module)
        found["eqx.filter_jit"] = Work(peers["equinox"].filter_jit(plain()), module)
    if "flax" in peers:
        found |= _nnx(peers, model(layers.of_nnx_modules(peers)), work)
    return found


def _nnx(peers: Peers, module: Any, work: str) -> dict[str, Work]:
    """NNX updates its modules in place."""
    jax, nnx = peers["jax"], peers["flax"]

    def read(model: Any) -> Any:
        return sum(jax.tree_util.tree_leaves(nnx.state(model)))

    def update(model: Any) -> None:
        nnx.update(model, jax.tree_util.tree_map(_shrunk, nnx.state(model)))

    function = {"read": read, "update": update}[work]
    interop = importlib.import_module("pydag.jaxinterop")
    of_plain = _functions(jax.tree_util.tree_leaves, jax.tree_util.tree_map)[work]
    found = {
        "pydag jit, nnx module": Work(
            interop.jit(_functions(pydag.dag_leaves, pydag.dag_map)[work]), module
        ),
        "jax.jit, nnx module": Work(jax.jit(of_plain), module),
        "nnx.jit": Work(nnx.jit(function), module),
    }
    if hasattr(nnx, "cached_partial"):
        found["nnx.cached_partial"] = Work(nnx.cached_partial(nnx.jit(function), module))
    if hasattr(nnx, "jit_partial"):
        found["nnx.jit_partial"] = Work(nnx.jit_partial(function, module, graph=False))
    return found
