# SPDX-License-Identifier: Apache-2.0
"""Calls of `jax.jit` functions with refs: their times, and the Python code that they run.

    python upstream/jax_refs.py

Writes the tables of jax_refs.md.
"""

import cProfile
import pstats
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import page

COUNTS = (1, 30, 300, 1200)
CALLS = 200


def arrays(count: int) -> list[Any]:
    """Arrays of four numbers each."""
    return [jnp.full(4, float(i)) for i in range(count)]


def with_arrays(count: int) -> Callable[[], Any]:
    """A step that donates and returns arrays."""
    step = jax.jit(lambda xs, y: [x + y for x in xs], donate_argnums=0)
    held, y = [arrays(count)], jnp.float32(1.0)

    def call() -> None:
        held[0] = step(held[0], y)

    return call


def with_refs(count: int) -> Callable[[], Any]:
    """The same step on refs."""

    @jax.jit
    def step(refs: Any, y: Any) -> None:
        for ref in refs:
            ref[...] = ref[...] + y

    refs, y = list(map(jax.new_ref, arrays(count))), jnp.float32(1.0)
    return lambda: step(refs, y)


def profile(call: Callable[[], Any]) -> Any:
    """What CALLS calls run in Python."""
    for _ in range(3):  # the first ones compile
        call()
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(CALLS):
        call()
    profiler.disable()
    return pstats.Stats(profiler)


def python_calls(stats: Any) -> int:
    """How many Python functions of JAX's a call runs."""
    folder = str(Path(jax.__file__).parent)
    calls = [count for (file, _, _), (_, count, *_) in stats.stats.items() if folder in file]
    return int(sum(calls) / CALLS)


def expensive(stats: Any, most: int = 6) -> list[list[str]]:
    """The functions of JAX's that take the most time, with what they call."""
    folder, total = Path(jax.__file__).parent, stats.total_tt
    rows = [
        (spent / total, f"`{name}`, {Path(file).relative_to(folder)}", f"{calls / CALLS:.0f}")
        for (file, _, name), (_, calls, _, spent, _) in stats.stats.items()
        if file.startswith(str(folder)) and spent / total < 0.9
    ]
    rows.sort(reverse=True)
    return [[what, calls, f"{share:.0%}"] for share, what, calls in rows[:most]]


def main() -> None:
    """Measure, and write the tables."""
    rows = []
    for count in COUNTS:
        few = 20 if count < 1000 else 5
        times = [page.least(make(count), calls=few) for make in (with_arrays, with_refs)]
        runs = [python_calls(profile(make(count))) for make in (with_arrays, with_refs)]
        rows.append(
            [
                f"{count:,}",
                *map(page.micro, times),
                f"{times[1] / times[0]:.1f}",
                *(f"{run:,}" for run in runs),
            ]
        )
    head = ["leaves", "arrays", "refs", "ratio", "Python calls, arrays", "Python calls, refs"]
    parts = page.table(head, rows)
    parts += "\nOf a call with 30 refs, under the profiler:\n\n"
    parts += page.table(["function", "calls", "share"], expensive(profile(with_refs(30))))
    page.write(__file__, parts, ["jax"])


if __name__ == "__main__":
    main()
