# SPDX-License-Identifier: Apache-2.0
"""What JAX, or a map, put into instances of registered classes, kept beside the instances.

A number in a module is configuration, but one that stands where the module had an array is data:
a mask, a size. The instance itself doesn't tell. So what was put there is remembered for as long
as it is still there: for the tree as a whole, and for every registered object in it.
"""

from collections.abc import Sequence
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.static.untraced import Untraced
from pydag.registry.weak_table import WeakTable
from pydag.structure.listing import Listing
from pydag.typing import Dag, Leaf

from .remembered import Remembered, may_hide

Known = tuple[Untraced, Sequence[Leaf]]
"""A structure without its data, and the data."""

_REGISTERED = ("fields", "custom type")


class _Whole:
    """What is remembered of a tree, and so of all that is in it."""

    def __init__(self, remembered: Remembered) -> None:
        self.remembered = remembered
        self.untraced, self.leaves = remembered.untraced, remembered.leaves

    @cached_property
    def listing(self) -> Listing:
        return Listing.of(self.untraced.spec)

    def part(self, position: int) -> Known:
        """What is remembered of the object at a position of the listing."""
        below = self.listing.leaves_below(position)
        untraced, order = self.untraced.rearranged(self._spec_at(position), below)
        return untraced, [self.leaves[i] for i in order]

    def _spec_at(self, position: int) -> PyDagSpec:
        spec, parent = self.untraced.spec, 0
        for step in self.listing.way(position):
            spec = spec.child(self.listing.children(parent).index(step))
            parent = step
        return spec


class _Memory(NamedTuple):
    whole: _Whole
    position: int  # of the instance, in the listing of the whole


_remembered: WeakTable[_Memory] = WeakTable()


def _remember(node: Any, whole: _Whole, position: int) -> bool:
    """Whether the instance can have a weak reference, as all can but those of some `__slots__`."""
    try:
        _remembered.set(node, _Memory(whole, position))
    except TypeError:
        return False
    return True


def remember(tree: Dag, untraced: Untraced, leaves: Sequence[Leaf]) -> list[int]:
    """Remembers what a tree was built from, for each registered object in it, where that is needed.

    Returns:
        The objects of which nothing can be remembered: positions in the listing of the structure.
    """
    if not holds_registered(untraced.spec) or not may_hide(leaves):
        return []
    remembered = Remembered.of(tree, untraced, leaves)
    if remembered is None:
        return []
    whole = _Whole(remembered)
    records = whole.listing.records
    positions = [i for i, record in enumerate(records) if record.kind in _REGISTERED]
    nodes = _registered_in(tree, remembered, {id(records[i].type) for i in positions})
    if [type(node) for node in nodes] != [records[i].type for i in positions]:
        nodes = nodes[: positions[:1] == [0]]  # a class without identity: the root alone is sure
    kept = [_remember(node, whole, i) for node, i in zip(nodes, positions, strict=False)]
    kept += [False] * (len(positions) - len(kept))
    return [i for i, is_kept in zip(positions, kept, strict=True) if not is_kept]


# Whether structures hold some, of those that were looked at. Equal ones may come from many trees.
_holding: dict[PyDagSpec, bool] = {}
_MOST_KEPT = 256


def holds_registered(spec: PyDagSpec) -> bool:
    """Whether there are instances of registered classes in a structure."""
    try:
        known = _holding.get(spec)
    except Exception:  # keys that are compared may run code of their classes
        return True
    if known is None:
        if len(_holding) >= _MOST_KEPT:
            _holding.clear()
        known = any(row[0] in _REGISTERED for row in _core.nodes_of(spec)[0])
        _holding[spec] = known
    return known


def _registered_in(tree: Dag, remembered: Remembered, classes: set[int]) -> list[Any]:
    """The objects of some classes in a tree, each once, in first-visit order."""
    found: list[Any] = []
    put, options = set(map(id, remembered.leaves)), remembered.untraced.options

    def stops(x: Any) -> bool:
        if id(x) in put:
            return True
        if id(type(x)) in classes:
            found.append(x)
        return False

    _core.leaves(tree, is_leaf=stops, namespace=options.namespace, identity=options.identity)
    return found


def is_anything_remembered() -> bool:
    """Whether something is remembered of any instance."""
    return len(_remembered) > 0


def memory_of(node: Any) -> Known | None:
    """What an instance was built from, if nobody has changed it since."""
    known = _remembered.get(node, None)
    if known is None:
        return None
    if known.position == 0:
        if known.whole.remembered.holds(node):
            return known.whole.untraced, known.whole.leaves
    elif _holds(node, *(part := known.whole.part(known.position))):
        return part
    _remembered.discard(node)
    return None


def _holds(node: Any, untraced: Untraced, leaves: Sequence[Leaf]) -> bool:
    """Whether the same objects stand at the places of leaves."""
    try:
        found = untraced.spec.flatten_up_to(node)
    except ValueError:
        return False
    return all(map(is_, found, untraced.all_leaves(leaves)))
