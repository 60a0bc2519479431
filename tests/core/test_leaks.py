# SPDX-License-Identifier: Apache-2.0
"""Nothing is leaked, whether an operation succeeds or fails."""

import gc
import pickle
import sys
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from operations import OPERATIONS
from registering import Box, Layer

import pydag

Point = namedtuple("Point", "x y")


@pydag.register_fields
class Slotted:
    __slots__ = ("p", "q")

    def __init__(self, p: Any) -> None:
        self.p, self.q = p, p


def every_kind() -> dict[Any, Any]:
    """A DAG with each kind of node in it."""
    w = [object()]
    return {
        "list": [w, w],
        "tuple": (w, None, ()),
        "ordered": OrderedDict(z=w, a=2.5),
        "default": defaultdict(list, k=w),
        "deque": deque([w], maxlen=3),
        "namedtuple": Point(w, 1),
        "struct sequence": time.gmtime(0),
        "custom": Box(w, 2),
        "fields": Layer(w=w),
        "slots": Slotted(w),
        3: {},
    }


def blocks_kept(work: Callable[[], Any], times: int = 1000) -> int:
    """How many blocks of memory `times` runs leave behind; 0 and a little noise is right."""
    if sys.getallocatedblocks() == 0:  # under the sanitizers, where Python counts none
        times = 10
    for _ in range(times):
        work()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(times):
        work()
    gc.collect()
    return sys.getallocatedblocks() - before


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_leaks_nothing(name: str) -> None:
    """An operation that succeeds leaves no memory behind."""
    tree = every_kind()
    assert blocks_kept(lambda: OPERATIONS[name](tree)) < 300


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_keeps_no_leaf(name: str) -> None:
    """Once its results are gone, an operation holds no reference to a leaf or a node."""
    tree = every_kind()
    pydag.clear_caches()
    watched = [tree, tree["list"], tree["list"][0], tree["list"][0][0], tree["custom"]]
    before = [sys.getrefcount(x) for x in watched]
    OPERATIONS[name](tree)
    gc.collect()
    assert [sys.getrefcount(x) for x in watched] == before


FAILURES: dict[str, Callable[[Any], Any]] = {
    "is_leaf": lambda tree: pydag.dag_flatten(tree, is_leaf=lambda x: x == 2.5 and 1 / 0 > 1),
    "map": lambda tree: pydag.dag_map(lambda x: 1 // (x != 2.5), tree),
    "map_with_path": lambda tree: pydag.dag_map_with_path(lambda path, x: 1 // (x != 2), tree),
    "map_with_accessor": lambda tree: pydag.dag_map_with_accessor(lambda a, x: 1 // (x != 2), tree),
    "few leaves": lambda tree: pydag.dag_unflatten(pydag.dag_structure(tree), [1]),
    "many leaves": lambda tree: pydag.dag_unflatten(pydag.dag_structure(tree), range(10**3)),
    "other keys": lambda tree: pydag.dag_map(lambda x, y: x, tree, {**tree, 3: {"k": 1}}),
    "other length": lambda tree: pydag.dag_map(lambda x, y: x, tree, {**tree, "list": [1]}),
    "other class": lambda tree: pydag.dag_map(lambda x, y: x, tree, {**tree, "custom": 1}),
    "two answers": lambda tree: pydag.dag_map(
        lambda x, y: x, tree, {**tree, "list": [[object()], [object()]]}
    ),
    "cycle": lambda tree: pydag.dag_flatten([tree, tree["list"].append(tree["list"]) or tree]),
    "lost alias": lambda tree: pydag.reref([tree, pydag.Alias(7)]),
    "two anchors": lambda tree: pydag.reref([pydag.Anchor(0, [1]), pydag.Anchor(0, [2])]),
    "no spec": lambda tree: pydag.dag_unflatten(tree, []),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failure_leaks_nothing(name: str) -> None:
    """An operation that fails leaves no memory behind, and fails each time."""

    def work() -> None:
        with pytest.raises((ZeroDivisionError, ValueError, TypeError)):
            FAILURES[name](every_kind())

    assert blocks_kept(work) < 300


def test_malformed_state_leaks_nothing() -> None:
    """A state that is refused leaves no memory behind."""
    state = pydag.dag_structure(every_kind()).__getstate__()

    def work() -> None:
        for i in range(0, len(state[3]), 5):
            nodes = bytearray(state[3])
            nodes[i] ^= 1
            with suppress(ValueError, TypeError, RuntimeError):
                pydag.PyDagSpec.__new__(pydag.PyDagSpec).__setstate__(
                    (*state[:3], bytes(nodes), state[4])
                )

    assert blocks_kept(work, 20) < 300


@pytest.mark.classes_die
def test_classes_leak_nothing() -> None:
    """Classes that come and go, registered or not, leave no memory behind."""

    def work() -> None:
        classes: list[Any] = [type(name, (), {}) for name in ("Fields", "Custom", "Leaf")]
        pydag.register_fields(classes[0])
        pydag.register_pydag_node(classes[1], lambda _: ((1,), None), lambda *_: None)
        tree = [cls() for cls in classes] * 2
        pickle.dumps(pydag.dag_structure(pydag.dag_leaves(tree)))
        pydag.dag_copy(tree)
        for cls in classes[:2]:
            pydag.unregister_pydag_node(cls)

    assert blocks_kept(work, 50) < 300
