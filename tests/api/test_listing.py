# SPDX-License-Identifier: Apache-2.0
"""The list of a structure's nodes, which views, files and selectors read."""

import copy
import dataclasses
import pickle
import time
from typing import Any

import optree
import pytest
from hypothesis import given
from strategies import dags, options, thorough

import pydag
from pydag.sharing.shared_object import SharedObject
from pydag.structure.listing import Listing


class Tagged:
    def __init__(self, *children: Any) -> None:
        self.children = children


pydag.register_pydag_node(
    Tagged, lambda x: (x.children, ("tag",)), lambda tag, children: Tagged(*children)
)


@thorough
@given(dags(), options)
def test_listing_agrees_with_the_spec(tree: Any, options: Any) -> None:
    """Leaves, nodes, shared objects, paths and the number of paths are those of the spec."""
    spec = pydag.dag_structure(tree, **options)
    listing = Listing.of(spec)
    assert len(listing.leaves) == spec.num_leaves
    assert sum(not record.is_alias for record in listing.records) == spec.num_nodes
    assert [listing.path(leaf) for leaf in listing.leaves] == spec.paths()
    assert [tuple(listing.path(slot) for slot in slots) for slots in listing.slots] == [
        shared.paths for shared in spec.shared
    ]
    ways = listing.num_ways()
    assert sum(ways[leaf] for leaf in listing.leaves) == spec.num_paths
    if spec.num_paths < 300:
        for position in listing.leaves:
            found = list(listing.ways(position))
            assert len(found) == ways[position]
            assert len({tuple(way) for way in found}) == len(found)
            assert found[0] == listing.way(position)


def ladder(levels: int) -> Any:
    """Each level holds the one below twice."""
    tree: Any = [0.5]
    for _ in range(levels):
        tree = [tree, tree]
    return tree


@pytest.mark.measures
def test_shared_objects_of_a_ladder() -> None:
    """What a ladder shares is found in time that grows with its height, not with its square."""
    tree = ladder(20_000)
    began = time.thread_time()
    found = pydag.shared_objects(tree)
    assert len(found) == len(pydag.dag_structure(tree).shared) == 20_000
    assert found[-1].paths == ((0,) * 20_000, (0,) * 19_999 + (1,))
    assert time.thread_time() - began < 3


def test_a_shared_object_as_a_value() -> None:
    """A shared object is equal to one with the same paths, and can be copied and pickled."""
    [found] = pydag.dag_structure({"a": (w := [1]), "b": w}).shared
    made = SharedObject(0, optree.PyTreeKind.LIST, list, (("a",), ("b",)))
    assert found == made
    assert pickle.loads(pickle.dumps(found)) == copy.copy(found) == made
    assert repr(found) == repr(made)
    assert dataclasses.replace(found, index=3).paths == made.paths
    with pytest.raises(AttributeError, match="no attribute 'path'"):
        found.path  # type: ignore[attr-defined]  # noqa: B018  # what is tested
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.paths = ()  # type: ignore[misc]  # what is tested
