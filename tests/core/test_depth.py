# SPDX-License-Identifier: Apache-2.0
"""Depth is bounded by memory, not by the C stack nor by the recursion limit."""

import gc
import pickle
import sys
import threading
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
from operations import DEPTHS, OPERATIONS, run_apart
from registering import Box

import pydag

Point = namedtuple("Point", "x")


@pydag.register_fields
class Link:
    x: Any


@pydag.register_fields
class Slotted:
    __slots__ = ("x",)
    x: Any


def link(cls: Any, child: Any) -> Any:
    node = cls()
    node.x = child
    return node


LINKS: dict[str, Callable[[Any], Any]] = {
    "list": lambda child: [child],
    "dict": lambda child: {"x": child},
    "tuple": lambda child: (child,),
    "fields": lambda child: link(Link, child),
    "slots": lambda child: link(Slotted, child),
    "deque": lambda child: deque([child]),
    "OrderedDict": lambda child: OrderedDict(x=child),
    "namedtuple": Point,
    "long list": lambda child: [child, 0],
    "list of two": lambda child: [0, child],
}


def chain(kind: str, depth: int, innermost: Any = 0.5) -> Any:
    """A node in a node in a node."""
    tree = innermost
    for _ in range(depth):
        tree = LINKS[kind](tree)
    return tree


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", ["list", "dict", "tuple", "fields"])
def test_deep_chain(kind: str, depth: int) -> None:
    """What the library is for goes down a chain of a million nodes."""
    gc.disable()  # it would walk down the chain each time, too
    try:
        tree = chain(kind, depth)
        leaves, spec = pydag.dag_flatten(tree)
        assert (leaves, spec.num_nodes, spec.num_paths) == ([0.5], depth + 1, 1)
        assert pydag.dag_structure(pydag.dag_unflatten(spec, leaves)) == spec
        assert pydag.dag_leaves(pydag.dag_map(lambda x, y: x + y, tree, tree)) == [1.0]
        assert pickle.loads(pickle.dumps(spec)) == spec
        assert len(repr(spec)) > depth
        assert pydag.dag_leaves(pydag.reref(pydag.deref([tree, [1]]))) == [0.5, 1]
        assert pydag.dag_map_with_path(lambda path, x: len(path), {"k": tree})
        assert pydag.dag_fold(lambda _, below: 1 + max(below, default=0), tree) == depth + 1
        assert pydag.dag_leaves(pydag.dag_rewrite({float: lambda x: x + 1}, tree)) == [1.5]
        assert pydag.dag_intern(tree) is tree
    finally:
        gc.enable()


@pytest.mark.parametrize("operation", list(OPERATIONS))
@pytest.mark.parametrize("kind", LINKS)
def test_chain_of_every_kind(kind: str, operation: str) -> None:
    """Every operation goes down a chain that is deeper than the recursion limit, of every kind."""
    OPERATIONS[operation](chain(kind, 3_000))


@pytest.mark.parametrize("depth", [1, 1000, *DEPTHS])
@pytest.mark.parametrize("kind", ["list", "dict", "tuple"])
def test_cycle_at_any_depth(kind: str, depth: int) -> None:
    """A cycle is found at depth 1 as at a million, whatever the recursion limit is."""
    root: list[Any] = []
    root.append(chain(kind, depth - 1, root) if depth > 1 else root)
    for operation in (pydag.dag_flatten, pydag.dag_copy, pydag.deref):
        with pytest.raises(pydag.CycleError) as info:
            operation(root)
        assert len(str(info.value)) < 2000
    root.clear()


@pytest.mark.parametrize("depth", DEPTHS)
def test_errors_at_the_bottom(depth: int) -> None:
    """An error a million levels deep has a path whose middle is left out."""
    tree = chain("dict", depth)
    with pytest.raises(ZeroDivisionError) as info:
        pydag.dag_map(lambda _: 1 / 0, tree)
    (note,) = info.value.__notes__
    assert note.startswith("raised while mapping tree['x']['x']")
    assert note.endswith("['x']['x']")
    assert " ... " in note
    assert len(note) < 2000
    with pytest.raises(ValueError, match=r"\['x'\]") as mismatch:
        pydag.dag_map(lambda x, y: x, chain("dict", depth, [1]), tree)
    assert len(str(mismatch.value)) < 2000


def test_callbacks_have_a_limit() -> None:
    """A flatten function that makes children for ever meets a limit; no other node counts."""
    made = []

    class Endless:
        pass

    def flatten(_: Any) -> Any:
        made.append(1)
        return ([[[Endless()]]],), None

    pydag.register_pydag_node(Endless, flatten, lambda *_: None)
    for _ in range(3):
        made.clear()
        with pytest.raises(RecursionError) as info:
            pydag.dag_flatten(Endless())
        assert len(made) == sys.getrecursionlimit()
        assert len(str(info.value)) < 2000
    limit = sys.getrecursionlimit()
    tree: Any = 1
    for _ in range(limit):
        tree = Box([[(tree,)]])
    assert pydag.dag_leaves(tree) == [1]
    assert pydag.dag_leaves(pydag.dag_copy(tree)) == [1]
    with pytest.raises(RecursionError):
        pydag.dag_flatten(Box(tree))


def test_small_stack() -> None:
    """All operations run in a thread with a small stack, chains and callbacks at their limit."""
    tree: Any = chain("list", 5_000)
    for _ in range(sys.getrecursionlimit()):
        tree = Box(tree)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for operation in OPERATIONS.values():
                operation(tree)
        except BaseException as error:  # all of them, to be raised below
            failed.append(error)

    # To free a result that is nested like this, CPython itself takes 256 kB and more of the stack;
    # a collection in the middle, which may find another one, as much again.
    before = threading.stack_size(1024 * 1024)
    gc.disable()
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        gc.enable()
        threading.stack_size(before)
    assert failed == []


def test_recursion_through_callbacks() -> None:
    """Callbacks that call the library that calls them meet Python's own limit, not the stack's."""
    source = """
import pydag
def again(x): return pydag.dag_map(again, [x])
def ask(x): return bool(pydag.dag_leaves([x], is_leaf=ask))
class Box: pass
box = Box()
pydag.register_pydag_node(Box, lambda b: (pydag.dag_leaves(b), None), lambda *_: box)
for work in (lambda: again(1), lambda: ask(1), lambda: pydag.dag_leaves(box)):
    for _ in range(3):
        try:
            work()
        except RecursionError:
            print("limit")
"""
    assert run_apart(source) == "limit\n" * 9


def test_repr_of_a_spec_in_itself() -> None:
    """The text of a spec that holds itself is finite, and an error in it doesn't stick."""

    class Key:
        spec: Any = None

        def __repr__(self) -> str:
            if fails:
                raise ZeroDivisionError
            return repr(self.spec)

    fails = False
    key = Key()
    key.spec = pydag.dag_structure({key: 1})
    assert repr(key.spec) == "PyDagSpec({PyDagSpec(...): *})"
    fails = True
    with pytest.raises(ZeroDivisionError):
        repr(key.spec)
    fails = False
    assert repr(key.spec) == "PyDagSpec({PyDagSpec(...): *})"
    assert hash(key.spec) == hash(pydag.dag_structure({key: 1}))


def test_comparing_specs_in_themselves() -> None:
    """Comparing specs that hold one another's likes meets Python's limit, not the stack's."""

    class Tag:
        spec: Any = None

        def __eq__(self, other: object) -> bool:
            return bool(self.spec == other.spec)  # type: ignore[attr-defined]  # a Tag

        __hash__ = None  # type: ignore[assignment]  # it has none

    class Node:
        def __init__(self, tag: Tag) -> None:
            self.tag = tag

    pydag.register_pydag_node(Node, lambda n: ((), n.tag), lambda tag, _: Node(tag))
    first, second = Tag(), Tag()
    first.spec, second.spec = (pydag.dag_structure(Node(tag)) for tag in (first, second))
    for _ in range(3):
        with pytest.raises(RecursionError):
            first.spec == second.spec  # noqa: B015  # only whether it raises
    assert hash(first.spec) == hash(second.spec)
