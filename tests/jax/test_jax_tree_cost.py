# SPDX-License-Identifier: Apache-2.0
"""What `pydag.jaxinterop.tree` costs beside `jax.tree`: ratios in one process, taken in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import numpy as np

from pydag import jaxinterop as pj

COUNT = 20_000


def least(*functions: Callable[[], Any]) -> list[float]:
    """The least time of each."""
    found = [float("inf")] * len(functions)
    for _ in range(7):
        for i, function in enumerate(functions):
            start = time.process_time()
            function()
            found[i] = min(found[i], time.process_time() - start)
    return found


@pytest.mark.once
@pytest.mark.parametrize(
    "make",
    [lambda i: np.zeros(2), lambda i: f"name{i}", lambda i: 1.5 * i],
    ids=["NumPy arrays", "text", "numbers"],
)
@pytest.mark.parametrize("width", [COUNT, 10], ids=["one dict", "dicts of ten"])
def test_host_trees_cost_at_most_what_they_cost_jax(make: Callable[[int], Any], width: int) -> None:
    """`map` and `leaves` on trees of NumPy arrays, text, numbers take no longer than `jax.tree`'s.

    The bound of the test leaves room for a machine that is busy with other work.
    """
    tree = {f"m{j}": {f"k{i}": make(j + i) for i in range(width)} for j in range(0, COUNT, width)}
    ours, plain, our_leaves, plain_leaves = least(
        lambda: pj.tree.map(lambda x: x, tree),
        lambda: jax.tree.map(lambda x: x, tree),
        lambda: pj.tree.leaves(tree),
        lambda: jax.tree.leaves(tree),
    )
    assert ours < 1.3 * plain
    assert our_leaves < 1.3 * plain_leaves
