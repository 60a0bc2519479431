# SPDX-License-Identifier: Apache-2.0
"""What a function changed in the arguments that it updates: its leaves, before and after."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import jax.numpy as jnp

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.messages.roots import CALL, position_text
from pydag.jaxinterop.packed.changed import Changed
from pydag.jaxinterop.packed.given import GivenTree
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs, Spot, roots_of
from pydag.jaxinterop.static.differentiable import is_ref
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.positions import static_positions
from pydag.jaxinterop.structure.pairing import by_entry
from pydag.structure.listing import Listing
from pydag.typing import Leaf

from .attributes import differ_in_orders_alone
from .errors import (
    another_structure,
    cut_tie,
    made_tie,
    of_another_trace,
    ref_put_in,
    static_changed,
)
from .returned_objects import ReturnedObjects


class UpdatedArguments:
    """The arguments of a call that are updated."""

    def __init__(self, given: GivenTree, spots: Iterable[Spot]) -> None:
        self._given = given
        self._spots = sorted(spots, key=str)
        self._listing = given.listing
        self._reached = set(self._listing.below(*roots_of(self._listing, spots)))
        self.leaves = {i for i, p in enumerate(self._listing.leaves) if p in self._reached}

    def _chosen(self, arguments: tuple[Args, Kwargs]) -> tuple[Any, ...]:
        args, kwargs = arguments
        return tuple(args[s] if isinstance(s, int) else kwargs[s] for s in self._spots)

    def compare(self) -> dict[int, Leaf]:
        """The leaves that are other objects now, by their positions.

        Raises:
            ValueError: The structure, or a static leaf, isn't as it was.
            SharingError: What is shared isn't as it was.
        """
        given, options = self._given, self._given.untraced.options
        spec = given.untraced.spec
        listing, roots = self._listing, list(roots_of(self._listing, self._spots))
        there = [listing.target(root) not in listing.leaves for root in roots]
        built = self._chosen(_core.unflatten(spec, given.leaves))
        before = tuple(x for x, is_tree in zip(built, there, strict=True) if is_tree)
        after = tuple(
            x for x, is_tree in zip(self._chosen(given.tree), there, strict=True) if is_tree
        )
        spots = [s for s, is_tree in zip(self._spots, there, strict=True) if is_tree]
        names = tuple(f"args[{s}]" if isinstance(s, int) else f"kwargs[{s!r}]" for s in spots)
        trees = [root for root, is_tree in zip(roots, there, strict=True) if is_tree]
        numbers = listing.leaves_below(*trees)
        old = options.flatten(before)[1]
        leaves, new = options.flatten(after, names)
        if old != new and not differ_in_orders_alone(old, new):
            raise another_structure(old, new, before, after, names)
        selected = options.selected(leaves, new, names, is_returned=True)
        static = static_positions(leaves, new, names, selected)
        found: dict[int, Leaf] = {}
        for i, (number, leaf) in enumerate(zip(numbers, leaves, strict=True)):
            known = given.leaves[number]
            if leaf is known:
                continue
            if i not in static:
                if jax_private.is_dead(leaf):
                    raise of_another_trace(self._text(listing.leaves[number]), leaf)
                found[number] = self._own(leaf)
            elif Static(leaf) != Static(known):
                raise static_changed(self._text(listing.leaves[number]), known, leaf)
        return found

    def returned(self, result: Any) -> ReturnedObjects | None:
        """Which objects of these arguments a result has."""
        chosen = self._chosen(self._given.tree)
        return ReturnedObjects.of(self._given, chosen, self._reached, self._listing, result)

    def check_staged(self, found: dict[int, Leaf]) -> None:
        """Checks what a function that is traced once, for many calls, has changed.

        Raises:
            TypeError: A ref is new where it stands.
        """
        for number, leaf in found.items():
            if is_ref(leaf):
                raise ref_put_in(self._text(self._listing.leaves[number]))

    def _own(self, leaf: Leaf) -> Leaf:
        """A leaf that is written; a copy where it is one of an argument that isn't updated.

        A compiled function returns a copy, too. The very array would tie the arguments.
        """
        is_theirs = id(leaf) in self._theirs and not is_ref(leaf)
        return jnp.copy(leaf) if is_theirs else leaf

    @cached_property
    def _theirs(self) -> frozenset[int]:
        """The leaves of arguments that aren't updated, by id."""
        leaves = self._given.leaves
        return frozenset(id(leaf) for i, leaf in enumerate(leaves) if i not in self.leaves)

    def check_ties(self, changed: Changed) -> None:
        """Checks that these arguments and those that stay as they are share what they shared.

        Raises:
            SharingError: They share something else now.
        """
        before, after = self._listing, changed.listing
        for one, other in _crossings(after, set(after.below(*roots_of(after, self._spots)))):
            was = _followed(before, after, one), _followed(before, after, other)
            if was[0] is None or was[0] != was[1]:
                raise made_tie(changed.path(one), changed.path(other))
        for one, other in _crossings(before, self._reached):
            now = _followed(after, before, one), _followed(after, before, other)
            if now[0] is None or now[0] != now[1]:
                raise cut_tie(self._text(one), self._text(other))

    def _text(self, position: int) -> str:
        return position_text(self._listing, position, CALL)


def _crossings(listing: Listing, inside: set[int]) -> Iterator[tuple[int, int]]:
    """Slots of one object, the first in some arguments, the second in the others.

    An array that is an argument itself, or stands in tuples alone, is a variable of its own.
    """
    args, kwargs = listing.children(0)
    arguments = {0, args, kwargs}
    for slots in listing.slots:
        within = [s for s in slots if listing.parents[s] in inside]
        beyond = [s for s in slots if listing.parents[s] not in inside]
        if not _is_node(listing, slots[0]):
            beyond = [s for s in beyond if not _is_bare(listing, s, arguments)]
        else:  # an argument that is updated is held by nothing else
            roots = [s for s in beyond if listing.parents[s] in arguments and s in inside]
            within, beyond = within + roots, [s for s in beyond if s not in roots]
        if within and beyond:
            yield within[0], beyond[0]


def _is_node(listing: Listing, position: int) -> bool:
    return not listing.records[listing.target(position)].is_leaf


def _is_bare(listing: Listing, position: int, arguments: set[int]) -> bool:
    """Whether nothing but tuples is between an argument and what stands in it."""
    parent = listing.parents[position]
    while parent not in arguments and listing.records[parent].kind == "tuple":
        parent = listing.parents[parent]
    return parent in arguments


def _followed(listing: Listing, other: Listing, position: int) -> int | None:
    """The anchor of the node to which the way leads that leads to a position in another listing."""
    at = 0
    for step in other.way(position):
        found = by_entry(listing, at).get(Static(other.records[step].entry))
        if found is None:
            return None
        at = listing.target(found)
    return at
