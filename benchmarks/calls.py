# SPDX-License-Identifier: Apache-2.0
"""The jit boundary with options, and the wrappers that compile nothing, each beside JAX's own."""

import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import layers
from peers import Peers
from records import Record, Task
from timing import Effort, Work, contest

import pydag

OPTIONS, EAGER = "options", "eager"  # labels: what a record is about
OPTION_LEAVES = (30, 300)
EAGER_LEAVES = (30, 999)
WRAPPERS = ("vmap", "scan", "cond", "checkpoint", "custom_vjp")

PLAIN = "no options"
DONATED, KEPT = "donated", "the same, kept"  # of a function that updates the model


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each size, and for each wrapper and size."""
    quick = 1 if effort.quick else None
    return [
        *(
            Task(f"jit with options, {count} leaves", partial(_options, peers, effort, count))
            for count in OPTION_LEAVES[:quick]
        ),
        *(
            Task(f"{name}, {count} leaves", partial(_eager, peers, effort, count, name))
            for count in EAGER_LEAVES[:quick]
            for name in WRAPPERS
        ),
    ]


def _patient(effort: Effort) -> Effort:
    """The first call compiles, or traces, which says nothing about the next ones."""
    return replace(effort, patience=math.inf, turn=max(0.01, effort.turn))


def _model(jax: Any, count: int) -> Any:
    """Arrays of a few numbers, so that there is an axis to go along."""
    return layers.of_dicts(count // 3, lambda: jax.numpy.ones(2))


class Stepping:
    """Calls a function with what it returned the last time, as a loop does."""

    def __init__(self, function: Callable[[Any], Any], model: Any) -> None:
        self.function, self.model = function, model

    def step(self) -> None:
        """Take a step."""
        self.model = self.function(self.model)


def _options(peers: Peers, effort: Effort, count: int) -> list[Record]:
    jax, interop = peers["jax"], importlib.import_module("pydag.jaxinterop")
    found: dict[str, Work] = {}
    for owner, jit, leaves, map_ in (
        ("pydag", interop.jit, pydag.dag_leaves, pydag.dag_map),
        ("jax", jax.jit, jax.tree_util.tree_leaves, jax.tree_util.tree_map),
    ):
        own = _calls(jax, owner, jit, leaves, map_, count)
        found |= {f"{owner}: {name}": work for name, work in own.items()}
    outcome = contest(found, _patient(effort))
    return [Record.of("boundary", {"work": OPTIONS, "leaves": count}, outcome)]


def _calls(jax: Any, owner: str, jit: Any, leaves: Any, map_: Any, count: int) -> dict[str, Work]:
    """The call of a function that reads a model, in all ways; and steps that update one."""
    model = _model(jax, count)

    def read() -> Callable[..., Any]:
        # A function of its own each time: those of one function share what is compiled.
        return lambda tree, times=1: times * sum(leaves(tree))

    found = {
        PLAIN: Work(jit(read()), model),
        "a keyword argument": Work(partial(jit(read()), tree=model)),
        "a static argument": Work(jit(read(), static_argnums=1), model, 3),
        "a static keyword argument": Work(
            partial(jit(read(), static_argnames="times"), times=3), model
        ),
    }

    def scaled(tree: Any) -> Any:
        return map_(lambda x: 0.9 * x, tree)

    for name, options in ((KEPT, {}), (DONATED, {"donate_argnums": 0})):
        mine = map_(lambda x: x + 0, model)  # arrays that nobody else has
        found[name] = Work(Stepping(jit(partial(scaled), **options), mine).step)
    if owner == "pydag":
        named = {"width": 3, "name": "net", "net": model}

        def read_named() -> Callable[..., Any]:
            return lambda tree: tree["width"] * sum(leaves(tree["net"]))

        found["static=, a path"] = Work(jit(read_named(), static="*'width'*"), named)
        found["static=, a class"] = Work(jit(read_named(), static=int), named)
    return found


def _eager(peers: Peers, effort: Effort, count: int, name: str) -> list[Record]:
    jax, interop = peers["jax"], importlib.import_module("pydag.jaxinterop")
    model, other = _model(jax, count), _model(jax, count)
    found = {
        "pydag": _wrapped(name, interop, interop, model, other),
        "jax": _wrapped(name, jax, jax.lax, model, other),
    }
    outcome = contest(found, _patient(effort))
    return [Record.of("boundary", {"work": EAGER, "wrapper": name, "leaves": count}, outcome)]


def _wrapped(name: str, of: Any, of_loops: Any, model: Any, other: Any) -> Work:
    """A wrapper of functions that return what they are given: only the way in and out is left."""

    def same(tree: Any) -> Any:
        return tree

    def body(carry: Any, slice_: Any) -> Any:
        return carry, slice_["layers"][0]["weight"]

    if name == "scan":
        return Work(of_loops.scan, body, model, other)
    if name == "cond":
        return Work(of_loops.cond, True, same, same, model)
    if name == "custom_vjp":
        function = of.custom_vjp(same)
        function.defvjp(lambda tree: (tree, None), lambda _, cotangent: (cotangent,))
        return Work(function, model)
    return Work(getattr(of, name)(same), model)
