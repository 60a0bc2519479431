# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: small calls through `jit`, wrapping anew, first calls.

Each is beside JAX's own function with the same arguments.
"""

import importlib
import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from peers import Peers
from rows import Race, Row, at_least
from timing import Effort, Outcome, Times, Work, contest

Call = Callable[[], Any]
OTHER = "jax"


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """All of them."""
    if "jax" not in peers:
        return []
    jax, interop = peers["jax"], importlib.import_module("pydag.jaxinterop")
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # a call ends with its results
    theirs, ours = _calls(jax, jax.jit), _calls(jax, interop.jit)
    sizes = (40, 400) if effort.quick else (40, 400, 4000)
    return [
        *(at_least(name, 0.95, _pair(ours[name], theirs[name])) for name in ours),
        at_least(
            "a function wrapped anew for each call",
            0.8,
            _pair(_anew(jax, interop.jit), _anew(jax, jax.jit)),
        ),
        at_least(
            "eager vmap with a tree of axes", 0.9, _pair(_mapped(jax, interop), _mapped(jax, jax))
        ),
        *(
            at_least(f"{what}, {size} leaves", 0.95, partial(_first, jax, interop, what, size))
            for what in ("trace", "first call")
            for size in sizes
        ),
    ]


def _pair(ours: Call, theirs: Call) -> Race:
    def race(effort: Effort) -> Outcome:
        # Compiling and the warning of many static values aren't what is measured.
        return contest(
            {"pydag": Work(ours), OTHER: Work(theirs)}, replace(effort, patience=float("inf"))
        )

    return race


def _calls(jax: Any, jit: Any) -> dict[str, Call]:
    """Calls that return their first argument."""
    arrays = [jax.numpy.float32(i) for i in range(8)]
    x, y, z = arrays[:3]
    words = ["wide", "deep"]
    rotation = itertools.cycle([f"mode {i}" for i in range(20)])

    def first() -> Any:
        return lambda x, *_others, **_named: x  # a function of its own for each

    static = {name: jit(lambda x, n: x, static_argnums=1) for name in ("same", "text", "tuple")}
    rotated = jit(lambda x, n: x, static_argnums=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it compiles for each of them
        for _ in range(20):
            rotated(x, next(rotation))
    return {
        **{f"jit of {n} arrays": partial(jit(first()), *arrays[:n]) for n in (1, 2, 3, 8)},
        "jit, a keyword argument": partial(jit(lambda x, y: x), x, y=y),
        "jit, three keyword arguments": partial(jit(lambda x, y, z: x), z=z, x=x, y=y),
        "jit, a static number": partial(static["same"], x, 3),
        "jit, a static text made anew": lambda: static["text"](x, " ".join(words)),
        "jit, a static tuple made anew": lambda: static["tuple"](x, (*words, 3)),
        "jit, twenty static values in rotation": lambda: rotated(x, next(rotation)),
    }


def _anew(jax: Any, jit: Any) -> Call:
    x = jax.numpy.float32(1)

    def same(x: Any) -> Any:
        return x

    return lambda: jit(same)(x)


def _mapped(jax: Any, of: Any) -> Call:
    tree = {name: jax.numpy.ones((3, 3)) for name in ("w", "b", "c")}
    return partial(of.vmap(lambda tree: tree["w"], in_axes=({"w": 0, "b": 1, "c": None},)), tree)


def _first(jax: Any, interop: Any, what: str, size: int, effort: Effort) -> Outcome:
    """The time of what is done once for a function: each time with a new one."""
    model = {
        f"layer {i}": {"w": jax.numpy.float32(1), "b": jax.numpy.float32(2)}
        for i in range(size // 2)
    }
    seconds: dict[str, list[float]] = {"pydag": [], OTHER: []}
    for _ in range(max(3, effort.rounds if size < 4000 else effort.rounds // 3)):
        for name, jit in (("pydag", interop.jit), (OTHER, jax.jit)):
            function = jit(lambda model: model["layer 0"]["w"] + 1)
            start = time.perf_counter()
            _ = function.trace(model) if what == "trace" else function(model)
            seconds[name].append(time.perf_counter() - start)
    return Outcome({name: Times.of(all_) for name, all_ in seconds.items()})
