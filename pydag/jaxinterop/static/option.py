# SPDX-License-Identifier: Apache-2.0
"""What `static=` says: which leaves are static, beside those that have to be."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import numpy as np

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.ops.select import is_prefix, select
from pydag.structure.text import bounded_repr
from pydag.typing import Leaf, Where

from .leaves import Static

Shape = str
"""What a tree is to its owner: "call", the pair of args and kwargs; "trees", a tuple of trees, each
with a name of its own; or "tree"."""

_DEPTHS = {"tree": 0, "trees": 1, "call": 2}

_MOST_KNOWN = 64  # structures

_ARRAYS = (jax.Array, np.ndarray, jax.core.Tracer)


def is_array(leaf: Leaf) -> bool:
    """Whether a leaf is an array that can't be a part of a key."""
    return isinstance(leaf, _ARRAYS)


class StaticOption:
    """What was given as `static=`, as part of a key: two are equal if equal things were given."""

    __slots__ = ("_key", "_known", "asks", "where")

    def __init__(self, where: Where) -> None:
        if any(map(is_prefix, _items(where))):
            raise TypeError(
                "static= takes a class, a predicate, a pattern of the path, or a list of them, not "
                f"a tree of booleans: {bounded_repr(where)}\n"
                "  Name a whole argument by static_argnums, and a part of one by its path, as in "
                "static='layers[0]*'."
            )
        self.where = where
        self.asks = any(callable(item) and not isinstance(item, type) for item in _items(where))
        self._key = _key(where)
        # Without predicates the structure and the classes of the leaves decide.
        self._known: dict[Any, tuple[tuple[type, ...], list[int]]] = {}

    @classmethod
    def of(cls, where: "Where | StaticOption | None") -> "StaticOption | None":
        return where if where is None or isinstance(where, StaticOption) else cls(where)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticOption) and self._key == other._key

    def __reduce__(self) -> tuple[Any, ...]:
        return StaticOption, (self.where,)

    def __repr__(self) -> str:
        return f"static={bounded_repr(self.where)}"

    def given(
        self, leaves: Sequence[Leaf], spec: PyDagSpec, shape: Shape, must_match: bool = False
    ) -> list[int]:
        """Which leaves of a tree that a user gave are selected.

        Args:
            must_match: Whether it is an error if a pattern matches no path, or nothing is selected.

        Raises:
            ValueError: Nothing is selected, and something must be.
        """
        key = spec, shape, must_match
        classes, known = self._known.get(key, ((), None))
        if known is not None and _core.have_classes(leaves, classes):
            return known
        found = self._search(leaves, spec, shape, must_match)
        if not self.asks:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = tuple(map(type, leaves)), found
        return found

    def _search(
        self, leaves: Sequence[Leaf], spec: PyDagSpec, shape: Shape, must_match: bool
    ) -> list[int]:
        where = _without(self.where, lambda _: False)
        found = _chosen(where, leaves, spec, shape, must_match)
        if must_match and not found:
            raise ValueError(
                f"static= selects nothing: there are {len(leaves)} leaves, and none is meant\n"
                "  Leave it out, or select what there is: a predicate is asked about each leaf; a "
                "class is that of leaves, or of what holds them."
            )
        return found

    def returned(self, leaves: Sequence[Leaf], spec: PyDagSpec, shape: Shape) -> list[int]:
        """Which leaves of a result are selected. Arrays are not: they were computed."""
        if all(map(is_array, leaves)):
            return []
        found = _chosen(_without(self.where, is_array), leaves, spec, shape, False)
        return [i for i in found if not is_array(leaves[i])]


def _chosen(
    where: Where, leaves: Sequence[Leaf], spec: PyDagSpec, shape: Shape, must_match: bool
) -> list[int]:
    depth = _DEPTHS[shape]
    chosen = select(where, spec, leaves, spec.namespace, depth=depth, must_match=must_match)
    return [i for i, is_chosen in enumerate(chosen) if is_chosen]


def _items(where: Where) -> list[Where]:
    """The classes, predicates and patterns of a selection, however deep its lists."""
    if type(where) is not list or is_prefix(where):
        return [where]
    return [item for inner in where for item in _items(inner)]


def _key(where: Where) -> Hashable:
    try:
        hash(where)
    except TypeError:
        leaves, spec = _core.flatten(where, identity="nodes")
        return spec, tuple(type(leaf) for leaf in leaves), tuple(map(_leaf_key, leaves))
    return type(where), where


def _leaf_key(leaf: Any) -> Hashable:
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return leaf  # type: ignore[no-any-return]  # hashable, as was just tried


def _without(where: Where, skips: Callable[[Leaf], bool]) -> Where:
    """The selection; its predicates aren't asked about some leaves, nor about static arguments."""
    if type(where) is list:
        return [_without(item, skips) for item in where]
    if not callable(where) or isinstance(where, type):
        return where
    return lambda leaf: not (type(leaf) is Static or skips(leaf)) and where(leaf)
