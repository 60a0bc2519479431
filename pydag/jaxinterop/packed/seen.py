# SPDX-License-Identifier: Apache-2.0
"""What JAX saw of objects: the structure and the leaves that they were built from.

By the law of pytrees a tree that JAX built has the structure that it was built from, whatever the
leaves are: one array at all places, numbers, text, None, trees. The tree itself doesn't tell: a
number in a module is configuration, but one in the place of an array of the module is data. So what
a tree was built from is kept beside it, and beside every registered object in it, until
somebody changes the object.

A derivative, too, has another structure to JAX: that of the tree which it is for. The functions of
`pydag.jaxinterop.tree` look inside of it.
"""

import contextlib
from collections.abc import KeysView, Sequence
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec, SpecKey, one_of_each_class, spec_key
from pydag.errors import SharingError
from pydag.jaxinterop.static.leaves import is_number, untraced_among
from pydag.jaxinterop.static.positions import static_positions
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.registry.weak_table import WeakTable
from pydag.structure.known import KnownOfStructures
from pydag.structure.listing import Listing
from pydag.typing import Dag, Leaf


class _Look(NamedTuple):
    """What a tree looks like when it is flattened; no key where that fails."""

    spec_key: SpecKey | None
    leaves: Sequence[Leaf]

    @classmethod
    def at(cls, tree: Dag, options: Options) -> "_Look":
        try:
            leaves, spec = options.flatten(tree)
        except Exception:  # a new leaf can't be opened, or the code of a class refuses
            return cls(None, ())
        return cls(spec_key(spec), leaves)

    def is_like(self, other: "_Look") -> bool:
        """Whether the same objects are leaves of the same structure."""
        return (
            self.spec_key == other.spec_key
            and len(self.leaves) == len(other.leaves)
            and all(map(is_, self.leaves, other.leaves))
        )

    def static_positions(self, options: Options) -> tuple[int, ...] | None:
        """Where the static leaves are; None where that can't be told."""
        if self.spec_key is None:
            return None
        leaves, spec = self.leaves, self.spec_key.spec
        try:
            return static_positions(leaves, spec, selected=options.selected(leaves, spec, "tree"))
        except (SharingError, ValueError):
            return None


class Seen(NamedTuple):
    """The structure and the leaves of a tree, to JAX.

    Args:
        look: What the tree looked like then; None for a part of a tree.
    """

    untraced: Untraced
    leaves: Sequence[Leaf]
    look: _Look | None

    @classmethod
    def of(cls, tree: Dag, untraced: Untraced, leaves: Sequence[Leaf]) -> "Seen | None":
        """What a tree was built from; None if flattening it gives the same."""
        found = cls.now(tree, untraced, leaves)
        look, built = found.look, _Look(untraced.spec_key, untraced.all_leaves(leaves))
        options = untraced.options
        if look and look.is_like(built) and look.static_positions(options) == untraced.positions:
            return None
        return found

    @classmethod
    def now(cls, tree: Dag, untraced: Untraced, leaves: Sequence[Leaf]) -> "Seen":
        """That a tree, as it looks now, has this structure and these leaves."""
        return cls(untraced, leaves, _Look.at(tree, untraced.options))

    def holds(self, tree: Dag) -> bool:
        """Whether nobody has changed the tree since."""
        if self.look is not None:
            return self.look.is_like(_Look.at(tree, self.untraced.options))
        try:
            found = self.untraced.spec.flatten_up_to(tree)
        except ValueError:
            return False
        return all(map(is_, found, self.untraced.all_leaves(self.leaves)))


class _Whole:
    """What was seen of a tree, and so of all that is in it."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    @cached_property
    def listing(self) -> Listing:
        return Listing.of(self.seen.untraced.spec)

    def part(self, position: int) -> Seen:
        """What was seen of the object at a position of the listing."""
        if position == 0:
            return self.seen
        spec, parent = self.seen.untraced.spec, 0
        for step in self.listing.way(position):
            spec = spec.child(self.listing.children(parent).index(step))
            parent = step
        below = self.listing.leaves_below(position)
        untraced, order = self.seen.untraced.rearranged(spec, below)
        return Seen(untraced, [self.seen.leaves[i] for i in order], None)


# What registered objects were built from: the tree, and the object's position in its listing.
_built: WeakTable[tuple[_Whole, int]] = WeakTable()
# What JAX alone sees of an object, beside its class's functions: that of a derivative.
_derivatives: WeakTable[Seen] = WeakTable()

_REGISTERED = ("fields", "custom type")


def may_hide(leaves: Sequence[Leaf]) -> bool:
    """Whether a tree with these leaves may flatten to others: not if they are distinct arrays."""
    if len(set(map(id, leaves))) < len(leaves):
        return True
    return any(map(is_number, one_of_each_class(leaves).values())) or bool(untraced_among(leaves))


def see(tree: Dag, untraced: Untraced, leaves: Sequence[Leaf]) -> list[int]:
    """Notes what each registered object in a tree was built from, where its look doesn't tell.

    Returns:
        The objects that can't have a note: positions in the listing of the structure.
    """
    if not holds_registered(untraced.spec) or not may_hide(leaves):
        return []
    found = Seen.of(tree, untraced, leaves)
    if found is None:
        return []
    whole = _Whole(found)
    records = whole.listing.records
    positions = [i for i, record in enumerate(records) if record.kind in _REGISTERED]
    nodes = _registered_in(tree, found, {id(records[i].type) for i in positions})
    if [type(node) for node in nodes] != [records[i].type for i in positions]:
        nodes = nodes[: positions[:1] == [0]]  # a class without identity: the root alone is sure
    without = positions[len(nodes) :]
    for node, position in zip(nodes, positions, strict=False):
        try:
            _built.set(node, (whole, position))
        except TypeError:  # it has `__slots__` without `__weakref__`
            without.append(position)
    return without


def see_derivative(node: Any, untraced: Untraced) -> None:
    """Lets JAX see this structure in an instance of a class that it opens as pydag does.

    An instance of another structure, or one without weak references, stays what it is.
    """
    try:
        leaves = untraced.match(node, "the derivative", "tree")
    except ValueError:
        return
    with contextlib.suppress(TypeError):
        _derivatives.set(node, Seen.now(node, untraced, leaves))


def seen(node: Any) -> Seen | None:
    """What an instance was built from; None where its look tells, or somebody has changed it."""
    known = _built.get(node, None)
    if known is None:
        return None
    whole, position = known
    found = whole.part(position)
    if found.holds(node):
        return found
    _built.discard(node)
    return None


def seen_in_derivative(node: Any) -> Seen | None:
    """What JAX alone sees of an instance that is, or is in, a derivative."""
    found = _derivatives.get(node, None)
    if found is None or found.holds(node):
        return found
    _derivatives.discard(node)
    return None


def is_any_seen() -> bool:
    """Whether it was noted of any instance what it was built from."""
    return len(_built) > 0


def may_hold_seen(spec: PyDagSpec) -> bool:
    """Whether such an instance may be in a tree of this structure."""
    return is_any_seen() and holds_registered(spec)


def seen_addresses() -> KeysView[int]:
    """The ids of all instances that `seen` knows, and perhaps of some that are gone."""
    return _built.addresses()


def is_any_derivative_seen() -> bool:
    """Whether JAX sees another structure of any derivative."""
    return len(_derivatives) > 0


# Whether structures hold some, of those that were looked at.
_holding: KnownOfStructures[bool] = KnownOfStructures()


def holds_registered(spec: PyDagSpec) -> bool:
    """Whether there are instances of registered classes in a structure."""
    known = _holding.get(spec)
    if known is None:
        known = any(row[0] in _REGISTERED for row in _core.nodes_of(spec)[0])
        _holding.set(spec, known)
    return known


def _registered_in(tree: Dag, whole: Seen, classes: set[int]) -> list[Any]:
    """The objects of some classes in a tree, each once, in first-visit order."""
    found: list[Any] = []
    put, options = set(map(id, whole.leaves)), whole.untraced.options

    def stops(x: Any) -> bool:
        if id(x) in put:
            return True
        if id(type(x)) in classes:
            found.append(x)
        return False

    _core.leaves(tree, is_leaf=stops, namespace=options.namespace, identity=options.identity)
    return found
