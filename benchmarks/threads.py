# SPDX-License-Identifier: Apache-2.0
"""How far threads get in each other's way, beside optree: `python benchmarks/threads.py`.

Each thread flattens, unflattens and maps a tree again and again: one that it has made, one of its
own that another thread has made, or one that all have in common. The figure is how many times as
much two threads do as one. Beside them stands how often CPython copies a list of the same leaves,
which counts the same references. On a build with the GIL it can't be much above one. Without it
each object belongs to the thread that made it, and other threads count their references to it by
atomic instructions; so these are further cases for one thread, too.
"""

import statistics
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import optree

import pydag

ROUNDS = 15
SECONDS = 0.05


def tree_of(number: int) -> Any:
    """Parameters of a model with many layers. No two trees have an object in common."""
    return {
        f"layer{i}": {
            "w": number + i + 0.25,
            "b": [object(), object()],
            "scale": (number + i + 0.5, object()),
        }
        for i in range(40)
    }


def identity(leaf: Any) -> Any:
    """What is mapped."""
    return leaf


def with_pydag(tree: Any) -> None:
    """Flatten, unflatten and map."""
    leaves, spec = pydag.dag_flatten(tree)
    spec.unflatten(leaves)
    pydag.dag_map(identity, tree)


def with_optree(tree: Any) -> None:
    """The same with optree."""
    leaves, spec = optree.tree_flatten(tree)
    spec.unflatten(leaves)
    optree.tree_map(identity, tree)


def with_a_list(tree: list[Any]) -> None:
    """A copy of the list of all leaves, by CPython."""
    tree[:]


def rate(work: Callable[[Any], None], trees: list[Callable[[], Any]]) -> float:
    """How often a second the threads together do the work, each with one of the trees."""
    rates = [0.0] * len(trees)
    barrier = threading.Barrier(len(trees) + 1)

    def run(i: int) -> None:
        tree, count = trees[i](), 0
        work(tree)
        work(tree)
        barrier.wait()
        start = time.perf_counter()
        while (now := time.perf_counter()) < start + SECONDS:
            work(tree)
            count += 1
        rates[i] = count / (now - start)  # the last round may have ended late

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(trees))]
    for thread in threads:
        thread.start()
    barrier.wait()
    for thread in threads:
        thread.join()
    return sum(rates)


def leaves_of(make: Callable[[], Any]) -> list[Any]:
    """The leaves of a tree that is made here."""
    return pydag.dag_leaves(make())


def main() -> None:
    """Measure, and print a table."""
    trees = [tree_of(0), tree_of(1)]
    given: list[Callable[[], Any]] = [partial(identity, tree) for tree in trees]
    made: list[Callable[[], Any]] = [partial(tree_of, number) for number in range(2)]
    cases = {
        "one thread, a tree that it made": made[:1],
        "two, trees that they made": made,
        "one thread, a tree of another's": given[:1],
        "two, trees of another's": given,
        "two, a common tree": given[:1] * 2,
    }
    works = {"pydag": with_pydag, "optree": with_optree, "list": with_a_list}
    rates: dict[tuple[str, str], list[float]] = {
        (case, name): [] for case in cases for name in works
    }
    for _ in range(ROUNDS):
        for case, makers in cases.items():
            for name, work in works.items():
                of_lists: list[Callable[[], Any]] = [partial(leaves_of, make) for make in makers]
                rates[case, name].append(rate(work, of_lists if work is with_a_list else makers))
    best = {key: max(found) for key, found in rates.items()}
    print(
        f"Python {sys.version.split()[0]}, GIL: {getattr(sys, '_is_gil_enabled', lambda: True)()}"
    )
    alone = ""
    for case, threads in cases.items():
        alone = case if len(threads) == 1 else alone
        texts = [
            f"{name} {best[case, name]:8.0f}/s {best[case, name] / best[alone, name]:5.2f}x"
            for name in works
        ]
        spread = statistics.median(rates[case, "pydag"]) / best[case, "pydag"]
        print(f"{case:34}", *texts, f"(median {spread:.2f} of the best)")


if __name__ == "__main__":
    main()
