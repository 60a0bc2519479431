# SPDX-License-Identifier: Apache-2.0
"""The tree that a wrapper builds for a function, and what the function has changed in it.

The function gets objects of its own, built from leaves, which it may change. Afterwards the tree is
flattened again: if the structure and the leaves are the same objects, nothing changed. That costs
nanoseconds a leaf.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple

from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.roots import CALL, Roots, shortened, with_roots
from pydag.jaxinterop.static.leaves import is_number, is_traced
from pydag.jaxinterop.static.positions import static_positions
from pydag.jaxinterop.static.untraced import Untraced
from pydag.jaxinterop.structure.pairing import Pairs, by_entry
from pydag.structure.listing import Listing, Record
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

_NODES_OF_CALL = 3  # (args, kwargs), and both of these
_REGISTERED = ("fields", "custom type")


class GivenTree:
    """A tree that a function gets.

    Args:
        untraced: Of the tree.
        traced: Its traced leaves.
        roots: What the user calls the tree.
    """

    __slots__ = ("leaves", "roots", "tree", "untraced")

    def __init__(self, untraced: Untraced, traced: Iterable[Leaf], roots: Roots) -> None:
        self.untraced, self.roots = untraced, roots
        self.leaves: Sequence[Leaf] = untraced.all_leaves(traced)
        self.tree: AnyDag = untraced.build_of(self.leaves)

    def changed(self, must_flatten: bool = False) -> "Changed | None":
        """What the function has changed; None if nothing.

        Args:
            must_flatten: Whether it is an error that the function put something there which can't
                be flattened, such as the tree itself.
        """
        known = self.untraced.spec_key.spec
        if known.num_nodes - known.num_leaves <= (_NODES_OF_CALL if self.roots is CALL else 0):
            return None  # no object that could be changed
        try:
            leaves, spec = self.untraced.options.flatten(self.tree, self.roots)
        except Exception:
            if must_flatten:
                raise
            return None
        if spec == known and all(map(is_, leaves, self.leaves)):
            return None
        changed = Changed(self, leaves, spec)
        return changed if changed.is_real() else None


class Written(NamedTuple):
    """A leaf that JAX traces, where another object stood before."""

    position: int  # in the listing of what the tree is now
    before: Any  # the leaf that stood there, or None
    leaf: Leaf


class Changed:
    """A tree that a function has changed.

    Args:
        given: The tree.
        leaves, spec: Of the tree as it is now.
    """

    def __init__(self, given: GivenTree, leaves: Sequence[Leaf], spec: PyDagSpec) -> None:
        self.given, self.leaves, self.spec = given, leaves, spec

    def is_real(self) -> bool:
        """False if all that differs is that one object was put for several leaves of the tree."""
        try:
            found = self.given.untraced.spec.flatten_up_to(self.given.tree)
        except ValueError:
            return True
        return not all(map(is_, found, self.given.leaves))

    @cached_property
    def listing(self) -> Listing:
        """The listing of the tree as it is now."""
        return Listing.of(self.spec)

    def path(self, position: int) -> str:
        """The path of a position in the listing, as Python text."""
        return shortened(with_roots(self.listing.path_text(position, "tree"), self.given.roots))

    def replaced(self) -> Iterator[Leaf]:
        """The new leaves of an unchanged structure, without numbers that were and are static."""
        static = frozenset(self.given.untraced.positions)
        for i, (old, new) in enumerate(zip(self.given.leaves, self.leaves, strict=True)):
            if old is not new and not (i in static and is_number(new)):
                yield new

    def written(self) -> Iterator[Written]:
        """What was written at places that existed before, and new arrays in registered objects.

        Static leaves, and items that were added to or removed from lists and dicts, are left out.
        """
        before, after = Listing.of(self.given.untraced.spec), self.listing
        old_leaves = dict(zip(before.leaves, self.given.leaves, strict=True))
        new_leaves = dict(zip(after.leaves, self.leaves, strict=True))
        static = frozenset(after.leaves[i] for i in self._static())
        pairs = Pairs(before, after)
        for old, new, (_, position) in pairs:
            one, other = before.records[old], after.records[new]
            if new in new_leaves:
                known = old_leaves.get(old)
                if known is not new_leaves[new] and new not in static:
                    yield Written(position, known, new_leaves[new])
            elif _is_like(one, other):
                was = by_entry(before, old)
                now = by_entry(after, new)
                pairs.add([pairs.at((was[entry], now[entry])) for entry in now if entry in was])
                if other.kind in _REGISTERED:
                    for entry in now.keys() - was.keys():
                        yield from _arrays_below(after, now[entry], new_leaves, static)
            elif position and after.records[after.parents[position]].kind in _REGISTERED:
                yield from _arrays_below(after, position, new_leaves, static)

    def _static(self) -> Sequence[int]:
        options, roots = self.given.untraced.options, self.given.roots
        try:
            selected = options.selected(self.leaves, self.spec, roots, is_returned=True)
            return static_positions(self.leaves, self.spec, roots, selected)
        except ValueError:
            return [i for i, leaf in enumerate(self.leaves) if not is_traced(leaf)]


def _is_like(one: Record, other: Record) -> bool:
    return one.kind == other.kind and one.type is other.type


def _arrays_below(
    listing: Listing, position: int, leaves: dict[int, Leaf], static: Container[int]
) -> Iterator[Written]:
    """The traced leaves of what was written into an attribute."""
    for at in range(position, listing.ends[position]):
        if at in leaves and at not in static:
            yield Written(at, None, leaves[at])
