# SPDX-License-Identifier: Apache-2.0
"""Threads that call one compiled function at the same time, with the GIL and without it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax.numpy as jnp
import pytest
from parallel import in_parallel

import pydag
import pydag.jaxinterop as pj


@pytest.fixture(autouse=True)
def _eager_switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_static_leaves_of_one_structure() -> None:
    """Each call gets the result for its own static leaf, whatever the others call with."""
    scale = pj.jit(lambda tree: [tree[0] * int(tree[1])])
    ones = jnp.ones(2)

    def work(i: int) -> None:
        for number in range(120):
            factor = (i + number) % 5
            assert scale([ones, str(factor)])[0].tolist() == [factor, factor]

    in_parallel(work)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_ends_its_thread() -> None:
    """A thread that ends itself while it is traced leaves nothing behind that others wait for."""

    def leave(_: Any) -> Any:
        sys.exit()

    @pj.jit
    def step(tree: Any) -> Any:
        return pydag.dag_map(leave if tree["ends"] == "now" else lambda x: x + 1, tree["x"])

    for ends in ("now", "later", "now", "later"):
        results: list[Any] = []

        def work(ends: str = ends, results: list[Any] = results) -> None:
            results.append(step({"x": [jnp.ones(())], "ends": ends}))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        assert not any(thread.is_alive() for thread in threads)
        assert [float(x[0]) for x in results] == ([] if ends == "now" else [2.0] * 3)


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
