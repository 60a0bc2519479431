# SPDX-License-Identifier: Apache-2.0
"""Gradients, cotangents, tangents and updates as trees: None at every leaf that has none.

A derivative holds no leaf of the tree that it belongs to. An instance of a class registered by
`pydag.jaxinterop.register` has, to JAX, the same structure in the derivative as in that tree: so
`jax.tree.map` takes the two together.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.prefixes.own_nodes import build
from pydag.jaxinterop.static.differentiable import is_differentiable
from pydag.jaxinterop.static.untraced import Options, Untraced, take_apart
from pydag.registry.weak_table import WeakTable
from pydag.structure.copies import copy_listeners
from pydag.structure.known import KnownOfStructures
from pydag.structure.listing import Listing
from pydag.structure.walk import Walk
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .seen import is_any_derivative_seen, see_derivative, seen_in_derivative

# The classes whose instances JAX opens as pydag does, and by which options.
_nodes_of_jax: WeakTable[Callable[[], Options]] = WeakTable()


def opens_as_pydag(cls: type, options: Callable[[], Options]) -> None:
    """Says that JAX sees the instances of a class as it sees a `Dag` of them.

    Args:
        options: Gives the options by which they are flattened.
    """
    _nodes_of_jax.set(cls, options)


def _is_node_of_jax(cls: type) -> bool:
    return _nodes_of_jax.get(cls, None) is not None


def _outermost(tree: AnyDag, options: Options) -> list[tuple[Any, Options]]:
    """The outermost instances of classes that JAX opens as pydag does, in first-visit order."""
    found: list[tuple[Any, Options]] = []

    def is_one(node: Any) -> bool:
        known = _nodes_of_jax.get(type(node), None)
        if known is not None:
            found.append((node, known()))
        return known is not None

    if len(_nodes_of_jax) > 0:
        _core.leaves(tree, is_leaf=is_one, namespace=options.namespace, identity=options.identity)
    return found


class Structures(NamedTuple):
    """What JAX sees of a tree: the structures of the outermost nodes that it opens as pydag.

    None stands for a node whose structure JAX can see from the node itself.
    """

    parts: tuple[Untraced | None, ...]

    @classmethod
    def of(cls, tree: AnyDag, untraced: Untraced) -> "Structures":
        """The structures in a tree that has this untraced part."""
        if not any(_core.leaves_below(untraced.spec, _is_node_of_jax)):
            return NO_STRUCTURES
        found = _outermost(tree, untraced.options)
        known = [seen_in_derivative(node) for node, _ in found]
        pairs = zip(known, found, strict=True)
        return cls(tuple(x.untraced if x else take_apart(*pair)[0] for x, pair in pairs))

    @classmethod
    def seen_in(cls, tree: AnyDag, options: Options) -> "Structures | None":
        """The structures that JAX alone sees for nodes of a tree; None if there are none."""
        known = [seen_in_derivative(node) for node, _ in _outermost(tree, options)]
        return cls(tuple(x and x.untraced for x in known)) if any(known) else None

    def note(self, tree: AnyDag, options: Options) -> None:
        """Notes these structures for the nodes of another tree, whose nodes match them."""
        if not self.parts:
            return
        found = _outermost(tree, options)
        if len(found) != len(self.parts):
            return
        for (node, _), untraced in zip(found, self.parts, strict=True):
            if untraced is not None:
                _see(node, untraced)


NO_STRUCTURES = Structures(())
_OPTIONS = Options()

# Whether there may be a derivative in a tree: by the structure, the positions of static leaves, and
# how many classes were known when that was found out.
_may_hold_some: KnownOfStructures[bool] = KnownOfStructures()


def _hand_on(tree: AnyDag, made: AnyDag) -> None:
    """Notes for what was made of a tree what JAX sees of the derivatives in that."""
    if not is_any_derivative_seen():
        with contextlib.suppress(ValueError):  # another thread has removed it
            copy_listeners.remove(_hand_on)
        return
    known = Structures.seen_in(tree, _OPTIONS)
    if known is not None:
        known.note(made, _OPTIONS)


def _see(node: Any, untraced: Untraced) -> None:
    see_derivative(node, untraced)
    if _hand_on not in copy_listeners:
        copy_listeners.append(_hand_on)


def with_seen(untraced: Untraced, tree: AnyDag) -> Untraced:
    """The untraced part of a tree, with what JAX sees of the derivatives in it."""
    if not is_any_derivative_seen():
        return untraced
    more = untraced.positions, len(_nodes_of_jax)
    may_hold_some = _may_hold_some.get(untraced.spec, more)
    if may_hold_some is None:
        may_hold_some = _may_be_derivatives(untraced)
        _may_hold_some.set(untraced.spec, may_hold_some, more)
    if not may_hold_some:
        return untraced
    return untraced._replace(seen=Structures.seen_in(tree, untraced.options))


def _may_be_derivatives(untraced: Untraced) -> bool:
    """Whether an outermost node has None somewhere, and no static leaf, as derivatives have."""
    listing = Listing.of(untraced.spec)
    static = {listing.leaves[i] for i in untraced.positions}
    walk = Walk([0], key=listing.target)
    for position in map(listing.target, walk):
        if not _is_node_of_jax(listing.records[position].type):
            walk.add(listing.children(position))
            continue
        below = listing.below(position)
        if static.isdisjoint(below) and any(listing.records[p].kind == "None" for p in below):
            return True
    return False


def derivative(
    untraced: Untraced, leaves: Iterable[Leaf], structures: Structures = NO_STRUCTURES
) -> AnyDag:
    """A tree with these leaves, None where there is none, and None for what JAX doesn't trace.

    Args:
        untraced: The untraced part of the tree that it is for.
        leaves: One for each traced leaf of that tree; None for a leaf without a derivative.
        structures: What JAX sees of that tree.
    """
    found = list(leaves)
    shown = untraced.without_statics()
    tree = build(shown.spec, shown.all_leaves(found))
    if untraced.positions or any(leaf is None for leaf in found):
        structures.note(tree, untraced.options)
    return tree


def tree_of_descriptions(untraced: Untraced, marks: Iterable[Any]) -> AnyDag:
    """A tree with what JAX says of each traced leaf; None for an object whose class refuses it."""
    shown = untraced.without_statics()
    return build(shown.spec, shown.all_leaves(marks), are_marks=True)


def without_float0(leaves: Iterable[Leaf]) -> list[Leaf]:
    """Tangents or cotangents of JAX's, with None for those of what has no derivative."""
    return [None if _is_float0(leaf) else leaf for leaf in leaves]


def _is_float0(leaf: Leaf) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.dtype == jax.dtypes.float0


def tangents_for(types: Sequence[Any], leaves: Sequence[Leaf]) -> list[Leaf]:
    """Tangents in JAX's form: its zeros for leaves without a derivative, whatever was given there.

    Args:
        types: The types of the primals, or the primals themselves.
    """
    return [
        leaf if is_differentiable(aval) else np.zeros(np.shape(aval), jax.dtypes.float0)
        for aval, leaf in zip(types, leaves, strict=True)
    ]
