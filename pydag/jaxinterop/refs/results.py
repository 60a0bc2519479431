# SPDX-License-Identifier: Apache-2.0
"""Refs in what a compiled function returns: the caller's own objects, and fresh ones.

JAX returns no refs. A ref that came in through the arguments is known by its place there, and the
caller gets the very object back. Of one that the function made the content is returned.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.static.differentiable import holds_ref, is_ref
from pydag.jaxinterop.static.untraced import Untraced
from pydag.typing import Leaf

from .access import new_ref

ARRAY, NEW_REF = -1, -2  # as in the core

Given = Mapping[int, int]
"""Where each ref stands among all leaves of the arguments, by its id."""

NO_REFS: Given = {}

Sources = tuple[int, ...]
"""For each leaf where it comes from: a place among the caller's leaves, `ARRAY` or `NEW_REF`."""


def given_refs(untraced: Untraced, leaves: Sequence[Leaf]) -> Given:
    """The refs among the traced leaves of arguments, which are alive as long as this is used."""
    if not holds_ref(leaves):
        return NO_REFS
    pairs = zip(untraced.traced_positions(), leaves, strict=True)
    return {id(leaf): position for position, leaf in pairs if is_ref(leaf)}


class Placed(NamedTuple):
    """Leaves of a result, for JAX, without refs."""

    leaves: list[Leaf]
    sources: Sources | None  # of all; None where there are no refs


def without_refs(leaves: Sequence[Leaf], given: Given) -> Placed:
    """The leaves of a result without refs.

    One that is neither an argument's nor made by the function stays: JAX refuses it.
    """
    if not holds_ref(leaves):
        return Placed(list(leaves), None)
    found: list[Leaf] = []
    sources: list[int] = []
    for leaf in leaves:
        position = given.get(id(leaf))
        is_made = position is None and is_ref(leaf) and is_fresh(leaf)
        sources.append(position if position is not None else NEW_REF if is_made else ARRAY)
        if position is None:
            found.append(leaf[...] if is_made else leaf)
    return Placed(found, tuple(sources))


def is_fresh(ref: Any) -> bool:
    """Whether the function that is being traced has made this ref."""
    return isinstance(ref, jax.core.Tracer) and jax_private.is_of_this_trace(ref)


def with_refs(
    leaves: Sequence[Leaf],
    sources: Sources | None,
    given: Sequence[Leaf],
    make: Callable[[Any], Any] = new_ref,
) -> list[Leaf]:
    """The leaves of a result with refs at their places.

    Args:
        given: All leaves of the arguments.
        make: Makes a ref of a content.
    """
    if sources is None:
        return list(leaves)
    rest, found = iter(leaves), []
    for source in sources:
        if source >= 0:
            found.append(given[source])
        else:
            found.append(make(next(rest)) if source == NEW_REF else next(rest))
    return found
