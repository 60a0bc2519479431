# SPDX-License-Identifier: Apache-2.0
"""No Python function is called for a builtin node or one of `register_fields`."""

import functools
import gc
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from operations import python_calls

import pydag

Point = namedtuple("Point", "x y")


@pydag.register_fields
class Open:
    def __init__(self, w: Any) -> None:
        self.w, self.v = w, 1.5


@pydag.register_fields(data_fields=("w",), meta_fields=("m",))
class Named:
    def __init__(self, w: Any) -> None:
        self.w, self.m = w, "meta"


@pydag.register_fields
class Slotted:
    __slots__ = ("unset", "w")

    def __init__(self, w: Any) -> None:
        self.w = w


@pydag.register_fields
@dataclass(frozen=True)
class Frozen:
    w: Any
    name: str = field(default="n", metadata={"static": True})


KINDS: dict[str, Callable[[Any], Any]] = {
    "None": lambda w: None,
    "tuple": lambda w: (w, 1),
    "list": lambda w: [w, 1],
    "dict": lambda w: {"b": w, "a": 1},
    "dict of mixed keys": lambda w: {2: w, "a": 1, None: 3},
    "OrderedDict": lambda w: OrderedDict(b=w, a=1),
    "defaultdict": lambda w: defaultdict(list, b=w, a=1),
    "deque": lambda w: deque([w, 1], maxlen=5),
    "namedtuple": lambda w: Point(w, 1),
    "struct sequence": lambda w: time.gmtime(0),
    "fields": Open,
    "named fields": Named,
    "slots": Slotted,
    "dataclass": Frozen,
}


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "dag_flatten": pydag.dag_flatten,
    "dag_leaves": pydag.dag_leaves,
    "dag_structure": pydag.dag_structure,
    "dag_copy": pydag.dag_copy,
    "dag_map": lambda tree: pydag.dag_map(abs, tree),
    "dag_map of two": lambda tree: pydag.dag_map(max, tree, tree),
    "dag_flatten_with_path": pydag.dag_flatten_with_path,
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_call_for_a_node(kind: str, operation: str) -> None:
    """A tree of 200 nodes costs as many calls as a tree of one."""
    shared = [0.5]
    one, many = KINDS[kind](shared), [KINDS[kind](shared) for _ in range(200)]
    work = OPERATIONS[operation]
    gc.collect()  # a class that dies meanwhile makes the core forget all of them
    work([one]), work(many)  # classes are looked up when they are first met
    assert python_calls(lambda: work(many)) == python_calls(lambda: work([one]))


@pytest.mark.parametrize("kind", KINDS)
def test_no_call_to_build_a_node(kind: str) -> None:
    """Unflattening runs no Python code."""
    leaves, spec = pydag.dag_flatten([KINDS[kind]([0.5]) for _ in range(200)])
    names = python_calls(lambda: pydag.dag_unflatten(spec, leaves))
    assert [name for name in names if "<lambda>" not in name] == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_call_to_match_a_node(kind: str) -> None:
    """A tree that fits a structure as it is, whenever that was made, is matched without a call."""
    shared = [0.5]
    spec = pydag.dag_structure([KINDS[kind](shared) for _ in range(200)])
    tree = [KINDS[kind](shared) for _ in range(200)]
    assert spec.flatten_up_to(tree) == pydag.dag_leaves(tree)
    names = python_calls(lambda: spec.flatten_up_to(tree))
    assert [name for name in names if "<lambda>" not in name] == []


def test_no_call_to_flatten() -> None:
    """Nor does flattening, or copying, every kind at once."""
    tree = [make([0.5]) for make in KINDS.values()]
    for name in ("dag_flatten", "dag_copy"):
        work = OPERATIONS[name]
        work(tree)
        names = python_calls(functools.partial(work, tree))
        assert [n for n in names if "<lambda>" not in n] == []
