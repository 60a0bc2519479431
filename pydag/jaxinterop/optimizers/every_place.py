# SPDX-License-Identifier: Apache-2.0
"""A model as a function that makes masks or labels sees it: each leaf at each of its paths."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import jax
from jax import tree_util

from pydag.jaxinterop.boundary.dag import Dag, rebuilt
from pydag.jaxinterop.static.untraced import Untraced
from pydag.ops.select import masks
from pydag.structure.listing import Listing, step_text
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf, Where

_PATHS = 1000  # of one leaf: there may be astronomically many


class Place(NamedTuple):
    """One of the paths to a leaf."""

    number: int  # of the leaf, among those that are traced
    path: str


def places_of(untraced: Untraced, leaves: Sequence[Leaf]) -> tuple[Place, ...]:
    """The places of those that JAX takes for leaves."""
    listing, found = Listing.of(untraced.spec), list[Place]()
    for number, position in enumerate(untraced.traced_positions()):
        if is_leaf(leaves[number]):
            for way in islice(listing.ways(listing.leaves[position]), _PATHS):
                path = "".join(step_text(listing.records[step]) for step in way)
                found.append(Place(number, path))
    return tuple(found)


def is_leaf(x: Any) -> bool:
    """Whether JAX takes an object for a leaf; None and optax's marks for masked leaves are none."""
    return bool(tree_util.all_leaves([x]))


class EveryPlace(Dag):
    """A `Dag` that JAX's functions open at every path, so that they give an answer for each."""

    __slots__ = ("answers", "places")
    places: tuple[Place, ...]
    answers: Sequence[Any]  # one for each place

    @classmethod
    def of(
        cls, untraced: Untraced, leaves: Sequence[Leaf], places: tuple[Place, ...]
    ) -> "EveryPlace":
        """The Dag of these leaves."""
        made = rebuilt(untraced, leaves, cls)
        made.places, made.answers = places, [leaves[place.number] for place in places]
        return made


class _Hidden:
    """Carries leaves that JAX isn't shown. All instances are equal, so JAX doesn't compare them."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self.leaves = leaves

    def __eq__(self, other: object) -> bool:
        return type(other) is _Hidden

    def __hash__(self) -> int:
        return 0


class _Aux(NamedTuple):
    """What JAX compares of two `EveryPlace`s."""

    untraced: Untraced
    places: tuple[Place, ...]
    hidden: _Hidden


def _open(dag: EveryPlace) -> tuple[list[tuple[Any, Any]], _Aux]:
    pairs = zip(dag.places, dag.answers, strict=True)
    keyed = [(tree_util.GetAttrKey(f"tree{place.path}"), answer) for place, answer in pairs]
    return keyed, _Aux(dag._untraced, dag.places, _Hidden(dag._leaves))


def _close(aux: _Aux, answers: Iterable[Any]) -> EveryPlace:
    leaves, found = list(aux.hidden.leaves), list(answers)
    for place, answer in zip(reversed(aux.places), reversed(found), strict=True):
        leaves[place.number] = answer  # that of the first path is the last to be written
    made = rebuilt(aux.untraced, leaves, EveryPlace)
    made.places, made.answers = aux.places, found
    return made


tree_util.register_pytree_with_keys(EveryPlace, _open, _close)


def _mask(dag: EveryPlace, where: Where) -> EveryPlace:
    found = masks[Dag](rebuilt(dag._untraced, dag._leaves), where)
    flags = [flag if is_leaf(x) else x for flag, x in zip(found._leaves, dag._leaves, strict=True)]
    return EveryPlace.of(dag._untraced, flags, dag.places)


masks[EveryPlace] = _mask


def as_function_sees(
    untraced: Untraced, leaves: Sequence[Leaf], places: tuple[Place, ...]
) -> AnyDag:
    """A model as it is given to a function that makes masks or labels.

    JAX's functions see every path in it. It is the model, with None for configuration, if JAX opens
    all of it; else a `Dag`.
    """
    if sum(Listing.of(untraced.spec).num_ways()) < _PATHS * (1 + len(leaves)):
        with contextlib.suppress(Exception):  # a class may refuse None
            model = untraced.without_statics().build(leaves)
            expected = Counter(id(leaves[place.number]) for place in places)
            if Counter(map(id, jax.tree.leaves(model))) == expected:
                return model
    return EveryPlace.of(untraced, leaves, places)
