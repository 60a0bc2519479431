# SPDX-License-Identifier: Apache-2.0
"""The way from the root of a tree to one of its nodes, to be followed in a tree like it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag.structure.listing import Listing, Record


class Step(NamedTuple):
    """From a node to its child.

    Args:
        record: Of the child.
        child: Its index, where the node is an object that a function opens.
    """

    record: Record
    child: int | None


def way_to(listing: Listing, position: int) -> list[Step]:
    """The steps from the root to a position."""
    found, parent = [], 0
    for step in listing.way(position):
        is_opened = listing.records[parent].kind == "custom type"
        index = listing.children(parent).index(step) if is_opened else None
        found.append(Step(listing.records[step], index))
        parent = step
    return found


def follow(node: Any, way: Sequence[Step], namespace: str) -> Any:
    """What stands in a tree at the end of a way."""
    for record, child in way:
        if child is not None:
            node = _core.open_one_level(node, namespace=namespace)[0][child]
        elif record.attribute is not None:
            node = held(node, record.attribute)
        else:
            node = node[record.entry]
    return node


def held(node: Any, name: str) -> Any:
    """An attribute of an object, even where its class hides it."""
    try:
        return object.__getattribute__(node, name)
    except AttributeError:
        return getattr(node, name)
