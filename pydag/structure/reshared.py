# SPDX-License-Identifier: Apache-2.0
"""The structure of a tree in which some shared objects are split."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec

from .listing import Listing

Below = Callable[[int, Any, Sequence[int]], Sequence[Any]]
"""From a node's position in the listing, its state and its children's positions: their states."""


class Apart(NamedTuple):
    """A structure in which shared objects were split.

    Args:
        spec: The structure.
        leaves: For each of its leaves, which leaf it was before.
        states: For each of its leaves, its state.
    """

    spec: PyDagSpec
    leaves: list[int]
    states: list[Any]


def apart(listing: Listing, spec: PyDagSpec, state: Hashable, below: Below) -> Apart:
    """Splits each shared object into one object for each state in which it is reached.

    No object of the user is built for that.

    Args:
        listing: Of `spec`.
        state: The state of the root.
        below: Gives the states of children.
    """
    rows, refs = _core.nodes_of(spec)
    found, again = list[tuple[Any, ...]](), set[int]()  # an alias has its anchor's place in `found`
    places: dict[tuple[int, Any], int] = {}
    leaves, states = list[int](), list[Any]()
    waiting = [(0, state)]
    while waiting:
        slot, state = waiting.pop()
        position = listing.target(slot)
        place = places.setdefault((position, state), len(found))
        if place < len(found):
            again.add(place)
            found.append(("alias", False, place))
            continue
        found.append(rows[position])
        if position in listing.leaf_numbers:
            leaves.append(listing.leaf_numbers[position])
            states.append(state)
        children = listing.children(position)
        waiting += reversed(list(zip(children, below(position, state, children), strict=True)))
    anchors = {place: number for number, place in enumerate(sorted(again))}
    made = tuple(
        ("alias", False, anchors[row[2]]) if row[0] == "alias" else (row[0], i in anchors, *row[2:])
        for i, row in enumerate(found)
    )
    whole = _core.spec_from_nodes(spec.none_is_leaf, spec.namespace, made, refs)
    return Apart(whole, leaves, states)
