"""Random DAGs at the JAX boundary, judged path by path in plain Python."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydag.jaxinterop.boundary.match import Side, check_alike
from pydag.jaxinterop.prefixes.treatments import Question, treatments
from pydag.jaxinterop.static.untraced import Options
from strategies import thorough

import pydag
from pydag import jaxinterop

QUESTION = Question("prefix", lambda treatment: f"treated by {treatment}", "Don't.")


@st.composite
def graphs(draw: st.DrawFn) -> Any:
    """A DAG of lists, dicts and tuples with arrays and text: each is made of those before it."""
    pool: list[Any] = [np.zeros(1, np.float32), np.zeros(1, np.float32), "text", None]
    for _ in range(draw(st.integers(1, 8))):
        children = draw(st.lists(st.sampled_from(range(len(pool))), min_size=1, max_size=3))
        found = [pool[i] for i in children]
        kind = draw(st.sampled_from([list, list, dict, tuple]))
        pool.append({"abc"[i]: x for i, x in enumerate(found)} if kind is dict else kind(found))
    return [pool[-1], pool[-2]]


def children(node: Any) -> dict[Any, Any]:
    """The children of a container by entry; none of a leaf."""
    if isinstance(node, dict):
        return node
    return dict(enumerate(node)) if isinstance(node, list | tuple) else {}


def paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Every path, with what it leads to."""
    found = [(path, node)]
    for entry, child in children(node).items():
        found += paths(child, (*path, entry))
    return found


def has_identity(obj: Any) -> bool:
    """Whether the object counts as one at several paths."""
    return not isinstance(obj, tuple | str | None)


def rebuilt(node: Any, parts: list[Any]) -> Any:
    """A container like `node` with other children."""
    if isinstance(node, dict):
        return dict(zip(node, parts, strict=True))
    return type(node)(parts)


def cut(draw: Any, node: Any, depth: int = 0) -> Any:
    """A tree prefix of a DAG, with one of three treatments at each end."""
    below = children(node)
    if not below or (depth and draw(st.integers(0, 2)) == 0):
        return None if node is None else draw(st.sampled_from([0, 0, 1]))
    return rebuilt(node, [cut(draw, child, depth + 1) for child in below.values()])


def treatment_of(prefix: Any, path: tuple[Any, ...]) -> Any:
    """What a prefix says about a path."""
    for entry in path:
        if not children(prefix):
            break
        prefix = prefix[entry]
    return prefix


@thorough
@given(st.data())
def test_treatments(data: st.DataObject) -> None:
    """An array has two treatments exactly if two paths to it do; both are named."""
    tree = data.draw(graphs())
    prefix = cut(data.draw, tree)
    by_path = [(path, leaf) for path, leaf in paths(tree) if isinstance(leaf, np.ndarray)]
    expected: dict[int, set[Any]] = {}
    for path, leaf in by_path:
        expected.setdefault(id(leaf), set()).add(treatment_of(prefix, path))
    try:
        found = treatments({"tree": tree}, {"tree": prefix}, QUESTION, Options())
    except pydag.SharingError as error:
        assert any(len(several) > 1 for several in expected.values())
        first, second = re.findall(
            r"^  (\S*?),?(?: the same object,)? is treated", str(error), re.M
        )
        one, other = (eval(text, {"tree": tree}) for text in (first, second))
        assert one is other
        assert first != second
        return
    assert all(len(several) == 1 for several in expected.values())
    for leaf, treatment in zip(pydag.dag_leaves(tree), found, strict=True):
        if isinstance(leaf, np.ndarray):
            assert {treatment} == expected[id(leaf)]


def loosened(draw: Any, node: Any, memo: dict[int, Any]) -> Any:
    """A copy that forgets, now and then, that it has met an object."""
    if id(node) in memo and draw(st.integers(0, 3)):
        return memo[id(node)]
    below = children(node)
    copy = node.copy() if isinstance(node, np.ndarray) else node
    if below:
        copy = rebuilt(node, [loosened(draw, child, memo) for child in below.values()])
    if has_identity(node):
        memo[id(node)] = copy
    return copy


def partition(tree: Any) -> set[frozenset[tuple[Any, ...]]]:
    """The paths, those to one object together."""
    groups: dict[int, set[tuple[Any, ...]]] = {}
    for path, obj in paths(tree):
        if has_identity(obj):
            groups.setdefault(id(obj), set()).add(path)
    return set(map(frozenset, groups.values()))


@thorough
@given(st.data())
def test_which_two_paths_differ(data: st.DataObject) -> None:
    """Two DAGs of one structure are alike, or the error names paths that differ."""
    tree = data.draw(graphs())
    trees = [loosened(data.draw, tree, {}) for _ in range(2)]
    one, other = (Side(f"side {i}", jaxinterop.Dag(t)) for i, t in enumerate(trees))
    alike = partition(trees[0]) == partition(trees[1])
    try:
        check_alike("two trees", "tree", one, other, "Don't.")
    except pydag.SharingError as error:
        assert not alike
        lines = str(error).splitlines()
        side = int(lines[1].partition("side ")[2][0])
        texts = re.findall(r"tree[^ ]*", lines[1])
        objects = [[eval(text, {"tree": t}) for text in texts] for t in trees]
        assert objects[side][0] is objects[side][1]
        assert objects[1 - side][0] is not objects[1 - side][1]
        return
    assert alike


def by_vmap(tree: Any) -> Any:
    """The tree, by way of `vmap`."""
    return jaxinterop.vmap(lambda t: t, axis_size=1)(tree)


def by_eval_shape(tree: Any) -> Any:
    """The tree with shapes for arrays."""
    return jaxinterop.eval_shape(lambda t: t, tree)


@pytest.mark.parametrize("way", [by_vmap, by_eval_shape])
def test_what_comes_out(way: Any) -> None:
    """What is given back as it was is shared as it was."""

    @thorough
    @given(graphs())
    def check(tree: Any) -> None:
        assert partition(way(tree)) == partition(tree)

    check()
