# SPDX-License-Identifier: Apache-2.0
"""What a function changed in the tree that it was given.

The tree is flattened once before the function runs and once after it, and the two structures are
walked in step. This one answer serves updates of the caller's objects, and the warning about lost
changes.
"""

from collections.abc import Collection, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple, Optional

import pydag._core as _core
from pydag.jaxinterop.content.options import MISSING, Options, Roots, way_text
from pydag.jaxinterop.treatments.arguments import Spot
from pydag.structure.listing import Listing, Walk
from pydag.typing import Dag, Leaf, Path

VALUES = (tuple, type(None))  # have no identity


class Given(NamedTuple):
    """A tree as a function gets it, or as the function leaves it."""

    tree: Dag
    leaves: Sequence[Leaf]
    spec: _core.PyDagSpec
    objects: Sequence[Any]  # at each position of the structure
    options: Options
    roots: Roots

    @classmethod
    def of(cls, tree: Dag, options: Options, roots: Roots) -> "Given":
        """The tree as it is now: what a class does when it is built is not a change."""
        namespace, identity = options.namespace, options.identity
        parts = _core.flatten_with_objects(tree, roots, namespace=namespace, identity=identity)
        return cls(tree, *parts, options, roots)


class Place(NamedTuple):
    """A place in a tree, by its slots before and now; None where there is none."""

    before: int | None
    now: int | None
    around: Optional["Place"]


class Change(NamedTuple):
    """A leaf that was replaced, added or removed."""

    place: Place
    number: int | None  # of the leaf before; None where it was added
    old: Leaf  # MISSING where it was added
    new: Leaf  # MISSING where it was removed


class Changes:
    """A tree before and now.

    Args:
        spots: The arguments that are updated, where the tree is a call.
        copies: Equal numbers, below 0, for objects that are one to the caller, by their ids.

    Attributes:
        own: What has changed in arguments that are updated.
        others: What has changed elsewhere, in objects that no such argument holds.
        structures: Updated arguments whose structure is another one: which, before and now.
        ties: Pairs of places that are no longer one object, or are one now; and whether they were.
        untouched: Updated arguments in which nothing has changed.
        leaves: The leaves of updated arguments as they are now, by their numbers before.
        objects: The objects with identity in updated arguments now: by id, the position before.
    """

    def __init__(
        self, before: Given, spots: Collection[Spot] = (), copies: Mapping[int, int] | None = None
    ) -> None:
        try:
            now = Given.of(before.tree, before.options, before.roots)
        except (TypeError, ValueError):
            now = before  # such as a cycle: the next flatten raises it
            if spots:
                raise
        self.before, self._now, self._copies = before, now, copies or {}
        self.own: list[Change] = []
        self.others: list[Change] = []
        self.structures: list[tuple[Spot, _core.PyDagSpec, _core.PyDagSpec]] = []
        self.ties: list[tuple[Place, Place, bool]] = []
        self.untouched: list[Spot] = []
        self.leaves: dict[int, Leaf] = {}
        self.objects: dict[int, int] = {}
        if not spots and now.spec == before.spec and all(map(is_, now.leaves, before.leaves)):
            return
        self._old, self._new = Listing.of(before.spec), Listing.of(now.spec)
        self._met: tuple[dict[int, Place], dict[int, Place]] = {}, {}
        self._written = dict[tuple[int, Any], Change]()
        root = Place(0, 0, None)
        if not spots:
            self._walk([root], self.others, is_own=False)
            return
        for old, new in zip(before.spec.children(), now.spec.children(), strict=True):
            trios = zip(old.entries(), old.children(), new.children(), strict=True)
            self.structures += (x for x in trios if x[0] in spots and x[1] != x[2])
        places = [place for part in self._below(root) for place in self._below(part)]
        calls = {self._old.records[x.before or 0].entry: self._holders(x) for x in places}
        for spot in spots:
            count = len(self.own)
            self._walk(calls.pop(spot), self.own, is_own=True)
            if len(self.own) == count:
                self.untouched.append(spot)
        self._walk([x for others in calls.values() for x in others], self.others, is_own=False)

    def _holders(self, place: Place) -> list[Place]:
        """A place, or those below tuples: what tuples alone lead to can't be written or tied."""
        record = self._old.records[self._targets(place)[0]]
        if record.kind not in ("tuple", "namedtuple"):
            return [] if record.is_leaf else [place]
        return [x for below in self._below(place) for x in self._holders(below)]

    def _walk(self, places: Sequence[Place], found: list[Change], *, is_own: bool) -> None:
        walk = Walk(places, self._targets)
        for place in walk:
            i, j = self._targets(place)
            number, new_number = self._old.leaf_numbers.get(i), self._new.leaf_numbers.get(j)
            old = MISSING if number is None else self.before.leaves[number]
            new = MISSING if new_number is None else self._now.leaves[new_number]
            if i >= 0 and j >= 0:
                keys = self._identity(self.before, i), self._identity(self._now, j)
                one, other = (met.get(key) for met, key in zip(self._met, keys, strict=True))
                if one is not other:
                    self.ties.append((one or other or place, place, one is not None))
                elif one is not None and not is_own:
                    continue  # what is below is the updated argument's
                elif is_own:
                    self._met[0][keys[0]] = self._met[1][keys[1]] = place
                    if number is not None:
                        self.leaves[number] = new
                    elif not isinstance(node := self._now.objects[j], VALUES):
                        self.objects[id(node)] = i
            if old is not new:
                found.append(Change(place, number, old, new))
                if is_own and self._copies:  # two copies of one object of the caller's?
                    holder = self._targets(_way(place)[-2])[0]
                    home = self._identity(self.before, holder), self.path(place)[-1]
                    first = self._written.setdefault(home, found[-1])
                    if first.new is not new:
                        self.ties.append((first.place, place, True))
            walk.add(self._below(place))

    def _identity(self, given: Given, position: int) -> int:
        """What is equal for two positions if they have one object."""
        return self._copies.get(id(given.objects[position]), position)

    def _targets(self, place: Place) -> tuple[int, int]:
        """The positions of the object at a place before and now; -1 where there is none."""
        i, j = place.before, place.now
        return -1 if i is None else self._old.target(i), -1 if j is None else self._new.target(j)

    def _below(self, place: Place) -> list[Place]:
        """The places below; those that are gone come last."""
        i, j = self._targets(place)
        olds = {self._old.records[x].entry: x for x in self._old.children(i)} if i >= 0 else {}
        news = {self._new.records[x].entry: x for x in self._new.children(j)} if j >= 0 else {}
        return [Place(olds.get(x), news.get(x), place) for x in dict.fromkeys([*news, *olds])]

    def _slots(self, place: Place) -> tuple[Listing, list[int]]:
        """The slots that lead to a place now, or before where it is gone."""
        is_gone = place.now is None
        slots = [x.before if is_gone else x.now for x in _way(place)[1:]]
        return self._old if is_gone else self._new, [x for x in slots if x is not None]

    def path(self, place: Place) -> Path:
        """The path to a place."""
        listing, slots = self._slots(place)
        return tuple(listing.records[slot].entry for slot in slots)

    def text(self, place: Place) -> str:
        """This path as Python text."""
        return way_text(*self._slots(place), self.before.roots)

    def holders(self, place: Place) -> tuple[list[Any], list[Any]]:
        """The objects on the way, outermost first, as they are now, and those that were there."""
        around = list(map(self._targets, _way(place)[:-1]))
        now, before = self._now.objects, self.before.objects
        return [now[j] for _, j in around if j >= 0], [before[i] for i, _ in around if i >= 0]


def _way(place: Place | None) -> list[Place]:
    """The places on the way to one, the root first."""
    found = []
    while place is not None:
        found.append(place)
        place = place.around
    return found[::-1]
