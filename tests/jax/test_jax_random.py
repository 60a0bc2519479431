# SPDX-License-Identifier: Apache-2.0
"""Random DAGs at the JAX boundary, judged path by path in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import thorough

from pydag import jaxinterop


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


def partition(tree: Any) -> set[frozenset[tuple[Any, ...]]]:
    """The paths, those to one object together."""
    groups: dict[int, set[tuple[Any, ...]]] = {}
    for path, obj in paths(tree):
        if has_identity(obj):
            groups.setdefault(id(obj), set()).add(path)
    return set(map(frozenset, groups.values()))


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
