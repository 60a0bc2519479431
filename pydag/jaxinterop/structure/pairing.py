# SPDX-License-Identifier: Apache-2.0
"""Structures in step: the nodes that two have at the same place, and nodes that are alike."""

from collections.abc import Callable, Hashable, Sequence
from operator import is_, itemgetter
from typing import Any, NamedTuple, TypeVar

from pydag._core import PyDagSpec
from pydag.jaxinterop.static.leaves import Static
from pydag.structure.kinds import MAPPINGS
from pydag.structure.listing import Listing
from pydag.structure.walk import Walk

T = TypeVar("T")

Slots = tuple[int, int]
"""The positions of one place in two listings."""


class Pair(NamedTuple):
    """The nodes that two structures have at the same place."""

    one: int  # the position of its anchor, as that of the other
    other: int
    slots: Slots  # where they were met


class Pairs:
    """Iterates over the pairs of nodes of two structures, each pair once; begins at the roots.

    Whoever iterates adds the places below a pair at which the walk goes on.
    """

    def __init__(self, one: Listing, other: Listing, first: Slots = (0, 0)) -> None:
        self.one, self.other = one, other
        self._walk = Walk([self.at(first)], key=itemgetter(0, 1))
        self.add = self._walk.add

    def at(self, slots: Slots) -> Pair:
        """The two nodes at a place."""
        return Pair(self.one.target(slots[0]), self.other.target(slots[1]), slots)

    def __iter__(self) -> Walk[Pair]:
        return self._walk

    def below(self, pair: Pair) -> list[Pair]:
        """The pairs of children of two nodes that are alike: by key in dicts."""
        children = self.one.children(pair.one)
        others = self.other.children(pair.other)
        if self.one.records[pair.one].kind in MAPPINGS:
            keys = [self.one.records[child].entry for child in children]
            if not all(map(is_, keys, (self.other.records[child].entry for child in others))):
                known = by_entry(self.other, pair.other)
                others = [known[Static(key)] for key in keys]
        first, second = self.one.targets, self.other.targets
        places = zip(children, others, strict=True)
        return [Pair(first.get(a, a), second.get(b, b), (a, b)) for a, b in places]


def by_entry(listing: Listing, position: int) -> dict[Static, int]:
    """The children of a node, by the step that leads to each."""
    return {Static(listing.records[child].entry): child for child in listing.children(position)}


def from_leaves_up(listing: Listing, make: Callable[[int, list[int], list[T]], T]) -> list[T]:
    """What is made of each node of a listing, from what was made of its children.

    Args:
        make: Is called once for each node: with its position, its children's, what these gave.
    """
    records, targets = listing.records, listing.targets
    found: list[Any] = [None] * len(records)
    for position in listing.upwards():
        if position in targets:
            found[position] = found[targets[position]]
        else:
            children = listing.children(position) if records[position].num_children else []
            found[position] = make(position, children, [found[child] for child in children])
    return found


def numbers_of_alike(
    listing: Listing,
    leaf_key: Callable[[int], Hashable],
    known: dict[Any, int],
    compares_details: bool = True,
) -> list[int]:
    """A number for each node: equal for nodes that unfold alike.

    Args:
        leaf_key: Gives for the position of a leaf what alike leaves have in common.
        known: The numbers of another listing, to which those of this one are added.
        compares_details: Whether meta fields and `aux_data` count.
    """
    records = listing.records

    def number(position: int, children: Sequence[int], below: Sequence[int]) -> int:
        record = records[position]
        if record.is_leaf:
            return known.setdefault(leaf_key(position), len(known))
        entries = tuple([Static(records[child].entry) for child in children])
        detail = Static(record.detail) if compares_details else None
        key = record.kind, record.type, detail, entries, tuple(below)
        return known.setdefault(key, len(known))

    return from_leaves_up(listing, number)


def unfold_alike(one: PyDagSpec, other: PyDagSpec) -> bool:
    """Whether two structures differ in what they share, at most."""
    known: dict[Any, int] = {}
    first, second = (
        numbers_of_alike(Listing.of(spec), lambda _: None, known)[0] for spec in (one, other)
    )
    return first == second
