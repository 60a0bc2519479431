# SPDX-License-Identifier: Apache-2.0
"""Compiled functions that several threads call, with the GIL and without it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

jnp = jax.numpy

from pydag import jaxinterop as pj

THREADS, ROUNDS = 4, 40


def tied() -> dict[str, Any]:
    """A weight at two places, and another one."""
    weight = jnp.ones(3)
    return {"a": weight, "b": [weight, jnp.zeros(2)]}


def test_updates_by_each_thread() -> None:
    """One function with `update_argnums` writes into the objects of the thread that called it."""

    @pj.jit(update_argnums=0)
    def count(state: Any) -> None:
        state["calls"] = state["calls"] + 1

    def work(_: int) -> float:
        state = {"calls": jnp.zeros(())}
        for _ in range(ROUNDS):
            count(state)
        return float(state["calls"])

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == [float(ROUNDS)] * THREADS


def test_a_function_that_is_first_called_by_all_at_once() -> None:
    """Threads that wrap, trace and call one function at the same moment get the same answer."""

    def norm(tree: Any) -> Any:
        return (tree["a"] * tree["b"][0]).sum()

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: float(pj.jit(norm)(tied())), range(4 * THREADS)))
    assert found == [3.0] * (4 * THREADS)
