# SPDX-License-Identifier: Apache-2.0
"""The sharing that two DAGs have in common: what is one object in both stays one."""

import itertools
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import pydag._core as _core
from pydag.jaxinterop.packed.dag import Dag, InnerDag, rebuilt
from pydag.jaxinterop.static.untraced import Untraced
from pydag.jaxinterop.structure.pairing import Pair, Pairs
from pydag.structure.apart import apart
from pydag.structure.listing import Listing
from pydag.typing import Leaf


class CommonSharing(NamedTuple):
    """A structure that shares what two structures share.

    Args:
        untraced: The structure, with all else as the first has it.
        order: Which leaf of the first stands at the place of each traced leaf.
        has_modules: Whether a module came apart, or what a module holds.
    """

    untraced: Untraced
    order: Sequence[int]
    has_modules: bool

    def dag(self, leaves: Sequence[Leaf]) -> InnerDag:
        """A Dag of this structure with the leaves of the first one, some of them several times."""
        return rebuilt(self.untraced, [leaves[i] for i in self.order], InnerDag)

    def match(self, dag: Dag) -> InnerDag:
        """A Dag of this structure with the leaves of another Dag."""
        return rebuilt(self.untraced, self.untraced.match(dag.tree, "", ""), InnerDag)


def common_sharing(one: Untraced, other: Untraced, is_last: bool = False) -> CommonSharing:
    """The sharing that holds in both of two structures, which are alike but for it.

    Args:
        is_last: Whether an object that comes apart does so at each of its places.
    """
    first, second = Listing.of(one.spec), Listing.of(other.spec)
    split, has_modules = _split(first, second, one.options.namespace)
    at_each_place = split if is_last else frozenset[int]()
    copies, pairs = itertools.count(1), Pairs(first, second)

    def states(position: int, state: tuple[int, int], _: Any) -> list[tuple[int, int]]:
        """What stands there in the second structure; and in which of several copies it is."""
        below = pairs.below(Pair(position, state[0], (position, state[0])))
        return [(p.other, next(copies) if p.one in at_each_place else state[1]) for p in below]

    found = apart(first, one.spec, (0, 0), states)
    return CommonSharing(*one.rearranged(found.spec, found.leaves), has_modules)


def _split(first: Listing, second: Listing, namespace: str) -> tuple[AbstractSet[int], bool]:
    """The objects of the first that stand for several of the second; whether a module is one.

    An object counts as the module's that holds it.
    """
    partners: dict[int, int] = {}
    split: set[int] = set()
    has_modules = False
    pairs = Pairs(first, second)
    for pair in pairs:
        if partners.setdefault(pair.one, pair.other) != pair.other:
            split.add(pair.one)
            classes = [first.records[p].type for p in (0, *first.way(pair.slots[0]), pair.one)]
            has_modules |= any(
                isinstance(c, type) and _core.is_module(c, namespace) for c in classes
            )
        pairs.add(pairs.below(pair))
    return split, has_modules
