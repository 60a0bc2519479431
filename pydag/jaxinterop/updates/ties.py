# SPDX-License-Identifier: Apache-2.0
"""Ties between arguments of a call that are updated and the others: they must stay as they were."""

import itertools
from collections.abc import Collection, Sequence
from typing import Any

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.content.content import with_variables
from pydag.jaxinterop.content.paths import CALL, path_texts, way_text
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.treatments.arguments import Spot, leaves_of, pick, positions_of, spot_text
from pydag.structure.listing import Listing
from pydag.typing import Dag, Leaf, PyTreeAccessor

from .changes import Given, nodes_of

_MOST_WAYS = 64  # to a leaf are looked at


class Part:
    """Some arguments of a call."""

    def __init__(self, given: Given, spots: Sequence[Spot]) -> None:
        self.spots, self._options = spots, given.options
        self.tree, self.roots = pick(given.tree, spots), tuple(map(spot_text, spots))
        self.numbers = leaves_of(given.spec, spots)

    def nodes(self) -> dict[int, Any]:
        """The objects in them as they are now, by their ids."""
        return nodes_of(self.tree, self._options)

    def way(self, nodes: Collection[int]) -> str:
        """The path of the first of some nodes."""
        way = next(iter(ways_to(self.tree, nodes, self._options.namespace).values()))
        text: str = way[1:].codify(self.roots[way[0].entry])
        return text


class Ties:
    """The ties between two parts of the arguments.

    Args:
        given: The call.
        own: The arguments that are updated.
    """

    def __init__(self, given: Given, own: Part, others: Part) -> None:
        self._given, self._own, self._others = given, own, others
        self._common = own.nodes().keys() & others.nodes().keys() if others.spots else set()

    def check(self, written: dict[int, Leaf], nodes: dict[int, Any]) -> None:
        """Checks that none is made or cut.

        Args:
            written: By position, the new leaves of the updated arguments.
            nodes: The objects in the updated arguments.

        Raises:
            SharingError: One is.
        """
        given, others = self._given, self._others
        if not others.spots:
            return
        if made := (nodes.keys() & others.nodes().keys()) - self._common:
            raise _made_tie(self._own.way(made), others.way(made))
        # What tuples alone lead to is a value, as is what a Variable of NNX holds.
        now = tuple(with_variables(x, given.options.namespace) for x in others.tree)
        leaves, spec = given.options.flatten(now, others.roots)
        kept = dict(zip(map(id, leaves), path_texts(spec, others.roots), strict=True))
        for i in _core.value_leaves(spec):
            kept.pop(id(leaves[i]), None)
        theirs = frozenset(others.numbers)
        for number, leaf in written.items():
            if number in theirs and id(leaf) not in kept:
                self._check_not_cut(number)
            if number not in theirs and id(leaf) in kept and not jax_private.is_ref(leaf):
                raise _made_tie(path_texts(given.spec, CALL)[number], kept[id(leaf)])

    def _check_not_cut(self, number: int) -> None:
        """Checks that no object of another argument, other than tuples, holds a leaf."""
        listing = Listing.of(self._given.spec)
        own = positions_of(listing, self._own.spots)
        if number in _core.value_leaves(self._given.spec):
            return
        ways = list(itertools.islice(listing.ways(listing.leaves[number]), _MOST_WAYS))
        kept = [way for way in ways if way[1] not in own]
        kinds = {listing.records[position].kind for way in kept for position in way[1:-1]}
        if kinds <= {"tuple", "namedtuple"}:
            return
        way = next(way for way in listing.ways(listing.leaves[number]) if way[1] in own)
        written = way_text(listing, way, CALL)
        raise SharingError(
            "the function cuts a tie of what it updates\n"
            f"  given: {written} and {way_text(listing, kept[0], CALL)} are one object\n"
            f"  now: another one stands at {written} alone\n"
            "  Write it at both places; or give one of them a copy before the call "
            '(pj.tree.copy(...)), or say identity="nodes".'
        )


def _made_tie(one: str, other: str) -> SharingError:
    return SharingError(
        "the function makes a tie between an argument that is updated and one that isn't\n"
        f"  given: {one} and {other} are two objects\n"
        "  now: they are one\n  Inside the function, write jnp.copy(x) for an array, and "
        "pj.tree.copy(x) for what holds arrays; or update both arguments (update_argnums), and "
        "give them one object before the call."
    )


def ways_to(tree: Dag, wanted: Collection[int], namespace: str) -> dict[int, Any]:
    """For each of the wanted nodes, by its id, a function that gets it of the tree."""
    found: dict[int, Any] = {}
    waiting = [(PyTreeAccessor(), tree)]
    for way, root in waiting:

        def is_wanted(node: Any, root: Any = root) -> bool:
            return node is not root and id(node) in wanted

        accessors, nodes, _ = _core.flatten_with_accessor(
            root, is_leaf=is_wanted, namespace=namespace
        )
        for step, node in zip(accessors, nodes, strict=True):
            if is_wanted(node) and id(node) not in found:
                found[id(node)] = way + step
                waiting.append((found[id(node)], node))
    return found
