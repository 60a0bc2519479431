# SPDX-License-Identifier: Apache-2.0
"""Structures made from others: shared objects are split, or leaves become one object.

Leaves of one memory become one: a module's `state_dict()` makes a new tensor for each name at each
call, and `array[:]` a new array. Their memory, not their identity, decides what is one array.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.arrays.memory import MemoryKey, are_owners, clusters, first_overlap, place_of
from pydag.typing import Leaf

from .listing import Listing, Walk

Below = Callable[[int, Any, Sequence[int]], Sequence[Any]]
"""From a node's position in the listing, its state and its children's positions: their states."""


class Apart(NamedTuple):
    """A structure in which shared objects were split."""

    spec: PyDagSpec
    leaves: list[int]  # which leaf each was before
    states: list[Any]  # the state of each leaf


def apart(listing: Listing, spec: PyDagSpec, state: Hashable, below: Below) -> Apart:
    """Splits each shared object into one object for each state in which it is reached.

    No object of the user is built for that.
    """
    rows, refs = _core.nodes_of(spec)
    found = list[tuple[Any, ...]]()
    places: dict[tuple[int, Any], int] = {}
    leaves, states = list[int](), list[Any]()
    waiting = [(0, state)]
    while waiting:
        slot, state = waiting.pop()
        position = listing.target(slot)
        place = places.setdefault((position, state), len(found))
        if place < len(found):
            found.append(("alias", False, place))
            continue
        found.append(rows[position])
        if position in listing.leaf_numbers:
            leaves.append(listing.leaf_numbers[position])
            states.append(state)
        children = listing.children(position)
        waiting += reversed(list(zip(children, below(position, state, children), strict=True)))
    return Apart(_spec_of(spec, found, refs), leaves, states)


def in_common(spec: PyDagSpec, others: Sequence[PyDagSpec]) -> Apart:
    """Splits each shared object that is two objects in one of several other structures.

    Args:
        others: Structures with the same nodes. A part that has other nodes splits nothing.
    """
    listing, found = Listing.of(spec), list(map(Listing.of, others))

    def below(position: int, state: Any, children: Sequence[int]) -> Sequence[Any]:
        keys: Iterable[Any] = listing.named_children(position) or range(len(children))
        matches = [_children(*at) for at in zip(found, state, strict=True)]
        return [tuple(match.get(key) for match in matches) for key in keys]

    return apart(listing, spec, (0,) * len(found), below)


def _children(listing: Listing, position: int | None) -> dict[Any, int]:
    """The objects that a node holds, by key or number; none where there is no such node."""
    if position is None:
        return {}
    children = listing.named_children(position) or dict(enumerate(listing.children(position)))
    return {key: listing.target(child) for key, child in children.items()}


def with_merged_leaves(spec: PyDagSpec, same: Mapping[int, int]) -> PyDagSpec:
    """The structure in which earlier leaves replace some leaves.

    Args:
        same: Maps the number of each replaced leaf to the number of the earlier leaf that takes its
            places.
    """
    rows, refs = _core.nodes_of(spec)
    leaves = [place for place, row in enumerate(rows) if row[0] == "leaf"]
    anchors = [place for place, row in enumerate(rows) if row[1]]
    merged: dict[int, int] = {}
    for leaf, earlier in sorted(same.items()):
        merged[leaves[leaf]] = merged.get(leaves[earlier], leaves[earlier])
    found = list[tuple[Any, ...]]()
    for place, row in enumerate(rows):
        first = anchors[row[2]] if row[0] == "alias" else place
        target = merged.get(first, first)
        found.append(row if target == place else ("alias", False, target))
    return _spec_of(spec, found, refs)


def _spec_of(spec: PyDagSpec, rows: Sequence[tuple[Any, ...]], refs: Any) -> PyDagSpec:
    """A structure from the rows of its nodes; an alias has the place of its anchor among them."""
    places = sorted({row[2] for row in rows if row[0] == "alias"})
    anchors = {place: number for number, place in enumerate(places)}
    nodes = tuple(
        ("alias", False, anchors[row[2]]) if row[0] == "alias" else (row[0], i in anchors, *row[2:])
        for i, row in enumerate(rows)
    )
    return _core.spec_from_nodes(spec.none_is_leaf, spec.namespace, nodes, refs)


def matched(a: Listing, b: Listing) -> list[tuple[int, int]] | None:
    """Which objects of two structures are at one path; None if more than sharing differs."""
    found, walk = [], Walk([(0, 0)])
    for i, j in walk:
        x, y = a.records[i], b.records[j]
        if not x.fits(y) or x.detail != y.detail:
            return None
        found.append((i, j))
        for child, match in zip(a.children(i), b.children(j), strict=True):
            if a.records[child].entry != b.records[match].entry:
                return None
            walk.add([(a.target(child), b.target(match))])
    return found


class OneEach(NamedTuple):
    """Leaves with different memory, and their structure."""

    leaves: list[Leaf]
    spec: PyDagSpec
    kept: Sequence[int]  # the former number of each leaf
    overlap: tuple[int, int] | None  # two leaves that share bytes, and aren't one array


def one_each(leaves: Sequence[Leaf], spec: PyDagSpec) -> OneEach:
    """Makes leaves that are one memory one leaf. Those without elements have none."""
    if len(leaves) < 2 or are_owners(leaves):
        return OneEach(list(leaves), spec, range(len(leaves)), None)
    same: dict[int, int] = {}  # the number of a leaf that goes, and of the one that stays
    overlap = None
    values = frozenset(_core.value_leaves(spec))  # they have no identity, not even by their memory
    for cluster in clusters(leaves, values):
        first: dict[MemoryKey, int] = {}
        for i in sorted(cluster):
            place = place_of(leaves[i])
            if place is not None and first.setdefault(place, i) != i:
                same[i] = first[place]
        overlap = overlap or first_overlap(first)
    if not same:
        return OneEach(list(leaves), spec, range(len(leaves)), overlap)
    kept = [i for i in range(len(leaves)) if i not in same]
    new = {i: number for number, i in enumerate(kept)}
    if overlap is not None:
        overlap = new[overlap[0]], new[overlap[1]]
    return OneEach([leaves[i] for i in kept], with_merged_leaves(spec, same), kept, overlap)
