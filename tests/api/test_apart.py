# SPDX-License-Identifier: Apache-2.0
"""Structures in which shared objects come apart, and what lies below a node."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from strategies import dags, options, thorough

import pydag
from pydag import _core
from pydag.structure.apart import apart
from pydag.structure.listing import Listing


@thorough
@given(dags(), options)
def test_nothing_comes_apart_in_one_state(tree: Any, options: Any) -> None:
    """In one state everywhere, the structure stays, and its leaves keep their order."""
    spec = _core.structure(tree, **options)
    found = apart(Listing.of(spec), spec, 0, lambda _, state, children: [state] * len(children))
    assert found.spec == spec
    assert found.leaves == list(range(spec.num_leaves))


@thorough
@given(dags(), options)
def test_children_come_apart(tree: Any, options: Any) -> None:
    """With a state for each child, nothing is shared between children, and all within each."""
    pair = [tree, (tree, 0.5)]
    spec = _core.structure(pair, **options)

    def of_child(position: int, state: int, children: Sequence[int]) -> Sequence[int]:
        return children if position == 0 else [state] * len(children)

    found = apart(Listing.of(spec), spec, 0, of_child)
    leaves = _core.leaves(pair, **options)
    alone = [pydag.dag_map(lambda _: object(), part, **options) for part in pair]
    assert found.spec == _core.structure(alone, **options)
    wanted = [leaf for part in pair for leaf in _core.leaves(part, **options)]
    assert list(map(id, wanted)) == [id(leaves[i]) for i in found.leaves]


def test_what_lies_below() -> None:
    """A node's anchor is listed once, through aliases, in the order of the first visit."""
    shared = [1.0, 2.0]
    listing = Listing.of(pydag.dag_structure({"a": shared, "b": (3.0, shared)}))
    assert [listing.records[p].kind for p in listing.below(4)] == ["tuple", "leaf", "list"] + [
        "leaf"
    ] * 2
    assert listing.leaves_below(4) == [2, 0, 1]
    assert listing.leaves_below(0) == [0, 1, 2]
