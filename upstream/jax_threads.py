# SPDX-License-Identifier: Apache-2.0
"""Threads that call one `jax.jit` function, by how its static argument compares.

    python upstream/jax_threads.py

Writes the table of jax_threads.md. Each run is a process of its own, since some of them crash.
"""

import gc
import random
import subprocess
import sys
import threading
import time
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import page

RUNS, SECONDS, THREADS, VALUES = 5, 20, 8, 5


class ByPython:
    """Compares by Python code."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByPython) and self.value == other.value

    def __mul__(self, x: Any) -> Any:
        return self.value * x


def static(kind: str, known: dict[int, Any], value: int) -> Hashable:
    """A static argument: equal ones are one object, numbers, or compare by Python code."""
    if kind == "numbers":
        return value
    return known[value] if kind == "one object for equal values" else ByPython(value)


KINDS = ("numbers", "one object for equal values", "compares by Python code")


def stress(kind: str, seconds: float) -> None:
    """Lets threads call functions that are new to JAX."""
    ones, end = jnp.ones(2), time.monotonic() + seconds
    known = {value: ByPython(value) for value in range(VALUES)}
    while time.monotonic() < end:
        sys.setswitchinterval(random.choice((1e-6, 1e-5, 1e-4, 5e-3)))
        gc.set_threshold(random.choice((1, 10, 700)))
        start = threading.Barrier(THREADS)
        scale = jax.jit(lambda factor, x: [factor * x], static_argnums=0)

        def work(i: int, scale: Any = scale, start: threading.Barrier = start) -> None:
            start.wait()
            for number in range(120):
                value = (i + number) % VALUES
                if scale(static(kind, known, value), ones)[0].tolist() != [value] * 2:
                    raise AssertionError("a wrong result")

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(work, range(THREADS)))  # raises what a thread has raised


def ends(kind: str) -> list[int]:
    """How some runs end: the exit status of each."""
    command = [sys.executable, __file__, kind]
    return [subprocess.run(command, capture_output=True).returncode for _ in range(RUNS)]


def main() -> None:
    """Run, and write the table."""
    rows = []
    for kind in KINDS:
        found = ends(kind)
        crashed = sum(status < 0 for status in found)
        rows.append(
            [kind, f"{crashed} of {RUNS}", f"{sum(status > 0 for status in found)} of {RUNS}"]
        )
    head = ["the static argument", "crashes", "errors"]
    page.write(__file__, page.table(head, rows), ["jax"])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        stress(sys.argv[1], SECONDS)
    else:
        main()
