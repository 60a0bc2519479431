# SPDX-License-Identifier: Apache-2.0
"""What makes it fast and can be counted: no Python calls for nodes, few allocations."""

import gc
import operator
import pickle
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from operations import python_calls

import pydag

Point = namedtuple("Point", "x y")


@pydag.register_fields(meta_fields=("name",))
class Layer:
    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b, self.name = w, b, "layer"


@pydag.register_fields
class Slotted:
    __slots__ = ("p", "q")

    def __init__(self, p: Any, q: Any) -> None:
        self.p, self.q = p, q


@pydag.register_fields
@dataclass
class Data:
    p: Any
    q: Any
    name: str = field(default="data", metadata={"static": True})


def forest(size: int) -> list[Any]:
    """So many of each kind of node that the core opens by itself, some of them shared."""
    tied = [1.5]
    return [
        [
            [2.5, tied],
            (3.5, None),
            {"b": 4.5, "a": tied, "c": {}},
            OrderedDict(z=5.5, y=tied),
            defaultdict(list, k=6.5),
            deque([7.5, tied]),
            Point(8.5, ()),
            Layer(9.5, tied),
            Slotted(10.5, tied),
            Data(11.5, tied),
        ]
        for _ in range(size)
    ]


def _unflatten(tree: Any) -> Callable[[], Any]:
    leaves, spec = pydag.dag_flatten(tree)
    return lambda: pydag.dag_unflatten(spec, leaves)


def _map_three(tree: Any) -> Callable[[], Any]:
    other = pydag.dag_copy(tree)
    return lambda: pydag.dag_map(max, tree, tree, other)


OPERATIONS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "flatten": lambda tree: lambda: pydag.dag_flatten(tree),
    "flatten nodes": lambda tree: lambda: pydag.dag_flatten(tree, identity="nodes"),
    "flatten with path": lambda tree: lambda: pydag.dag_flatten_with_path(tree),
    "structure": lambda tree: lambda: pydag.dag_structure(tree),
    "unflatten": _unflatten,
    "copy": lambda tree: lambda: pydag.dag_copy(tree),
    "map": lambda tree: lambda: pydag.dag_map(operator.neg, tree),
    "map of three": _map_three,
    "map with path": lambda tree: lambda: pydag.dag_map_with_path(operator.is_, tree),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_python_call_for_a_node(name: str) -> None:
    """There is no Python call, however many nodes there are: the functions are the core's own.

    They are builtin and of `register_fields`; nothing of the structure is remembered.
    """
    calls = []
    for size in (1, 100):
        work = OPERATIONS[name](forest(size))
        work()  # what is only done once, such as to look up the fields of a dataclass
        pydag.clear_caches()
        new, known = (len(python_calls(work)) - 1 for _ in range(2))  # without `work` itself
        assert known == 0
        calls.append(new)
    assert calls[0] == calls[1]  # one for each class that is new, not for each node


def blocks(work: Callable[[], Any]) -> int:
    """How many blocks of memory a call allocates and keeps: what its result is made of."""
    results = [work() for _ in range(3)]  # so that nothing is done for the first time
    gc.collect()
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        results[0] = None
        between = sys.getallocatedblocks()
        results[0] = work()
        return max(sys.getallocatedblocks() - between, before - between)
    finally:
        gc.enable()


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_flatten_of_a_known_tree_allocates_next_to_nothing(size: int) -> None:
    """Flatten allocates a list of leaves and a pair: the structure is remembered, however large."""
    tree = forest(size)
    assert blocks(lambda: pydag.dag_flatten(tree)) <= 6


def test_unflatten_allocates_what_it_returns() -> None:
    """No more blocks than the same containers take when they are made by hand."""
    tree = [[float(i)] for i in range(1000)]
    leaves, spec = pydag.dag_flatten(tree)
    by_hand = blocks(lambda: [[leaf] for leaf in leaves])
    assert blocks(lambda: pydag.dag_unflatten(spec, leaves)) <= by_hand + 6


def test_equal_structures_are_one_object() -> None:
    """Of trees that are built alike, the second structure is the first one, not an equal one."""
    first, second = (pydag.dag_structure(forest(10)) for _ in range(2))
    assert first is second


def test_structure_is_small() -> None:
    """A structure takes at most 16 bytes a node, besides a constant."""
    spec = pydag.dag_structure(forest(1000))
    assert sys.getsizeof(spec) <= 16 * spec.num_nodes + 4000
    assert len(pickle.dumps(spec)) <= 16 * spec.num_nodes + 4000
