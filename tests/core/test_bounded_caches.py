# SPDX-License-Identifier: Apache-2.0
"""What the core remembers takes a bounded amount of memory, whatever comes."""

import functools
import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from operations import run_apart

import pydag

MEASURE = """
import pydag
def kilobytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
"""

NEW_KEYS = """
def work(first, count):
    for i in range(first, first + count):
        tree = {f"{i} {j}": 0.0 for j in range(10)}
        for _ in range(2): pydag.dag_map(lambda x: x, tree)
work(0, 1_000)
before = kilobytes()
work(1_000, 20_000)
print(kilobytes() - before)
"""

LARGE_STRUCTURES = """
def work(first, count):
    for i in range(first, first + count):
        tree = [1.5] * (100_000 + i)
        for _ in range(2): pydag.dag_flatten(tree)
work(0, 10)
before = kilobytes()
work(10, 1_000)
print(kilobytes() - before)
"""


@pytest.mark.measures
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("source", [NEW_KEYS, LARGE_STRUCTURES], ids=["keys", "structures"])
def test_process_stays_small(source: str) -> None:
    """200,000 keys that never come again, and 1,000 structures of 100,000 nodes: below 100 MB."""
    assert int(run_apart(MEASURE + source)) < 100_000


class Key:
    """A key that compares as an object does."""

    def __lt__(self, other: Any) -> bool:
        return id(self) < id(other)


def test_nothing_outlives_its_last_user() -> None:
    """What the core remembers keeps no keys, classes or functions."""
    gone = []
    for _ in range(5):
        key, cls = Key(), type("Node", (), {"a": 1.5})

        def opened(node: Any) -> Any:
            return (node.a,), None

        def built(_: Any, children: Any, cls: Any = cls) -> Any:
            return cls()

        def is_leaf(x: Any) -> bool:
            return x is None

        pydag.register_pydag_node(cls, opened, built)
        tree = {key: [cls(), (1, key)], Key(): None, (2, key): type("Leaf", (), {})()}
        for _ in range(3):
            leaves, spec = pydag.dag_flatten(tree)
            pydag.dag_unflatten(spec, leaves)
            pydag.dag_map(lambda x: x, tree, is_leaf=is_leaf)
            pydag.dag_copy(tree)
        pydag.unregister_pydag_node(cls)
        gone += [weakref.ref(x) for x in (key, cls, opened, built, is_leaf)]
        del key, cls, opened, built, is_leaf, tree, leaves, spec
    gc.collect()
    assert [ref() for ref in gone] == [None] * len(gone)


class OfThisModule:
    """A class under its name in a module."""


def of_this_module() -> None:
    """A function under its name in a module."""


def replaced() -> None:
    """A function whose name another one has taken."""


_old, replaced = replaced, of_this_module

KEPT = {"function": of_this_module, "class": OfThisModule, "dtype": np.dtype("float32")}
RELEASED = {
    "made in a function": (lambda: lambda: None)(),
    "replaced": _old,
    "dressed as another": functools.wraps(len)(lambda items: 0),
    "dtype that holds an object": np.dtype("float32", metadata={"held": object()}),
    "dtype with fields": np.dtype([("a", "float32")]),
    "instance": Key(),
}


@pytest.mark.parametrize("name", [*KEPT, *RELEASED])
def test_what_lives_in_a_module_may_be_kept(name: str) -> None:
    """A structure is kept if what it holds lives as long as its module; else it is released.

    So trees with modules of a library, which hold its functions and dtypes, are flattened as fast
    as those without.
    """
    pydag.clear_caches()
    text = "".join(["a", "constant"])

    @pydag.register_fields(meta_fields=("held", "text"))
    class Node:
        def __init__(self) -> None:
            self.leaf, self.held, self.text = 1.5, {**KEPT, **RELEASED}[name], text

    tree = [Node()]
    before = sys.getrefcount(text)
    for _ in range(3):
        pydag.dag_structure(tree)
    assert (sys.getrefcount(text) > before) == (name in KEPT)
