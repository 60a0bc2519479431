# SPDX-License-Identifier: Apache-2.0
"""What comes apart: one object in a tree that is two in another tree."""

from collections.abc import Iterable, Sequence
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec, SpecKey
from pydag.structure.listing import Listing
from pydag.structure.reshared import apart

from .content import Content


def shared_by_all(content: Content, others: Sequence[PyDagSpec]) -> tuple[Content, Sequence[int]]:
    """A content in which one object is what is one in a content and in all others.

    Returns:
        The content, `content` itself if nothing comes apart; and for each of its traced leaves,
        which traced leaf of `content` it was.
    """
    own, listings = Listing.of(content.spec), [Listing.of(spec) for spec in others]

    def below(position: int, state: Any, children: Sequence[int]) -> Sequence[Any]:
        keys: Iterable[Any] = own.named_children(position) or range(len(children))
        found = [_children(*at) for at in zip(listings, state, strict=True)]
        return [tuple(others.get(key) for others in found) for key in keys]

    made = apart(own, content.spec, (0,) * len(listings), below)
    numbers = {position: i for i, position in enumerate(content.traced_positions())}
    picked = [numbers[leaf] for leaf in made.leaves if leaf in numbers]
    if made.spec == content.spec:
        return content, picked
    values = dict(zip(content.positions, content.values, strict=True))
    positions = tuple(i for i, leaf in enumerate(made.leaves) if leaf in values)
    key = _core.spec_key(made.spec) if type(content.key) is SpecKey else made.spec
    return Content(key, positions, tuple(values[made.leaves[i]] for i in positions)), picked


def _children(listing: Listing, position: int | None) -> dict[Any, int]:
    """The children of a node, by key or number; none where the other tree has another node."""
    if position is None:
        return {}
    found = listing.named_children(position) or dict(enumerate(listing.children(position)))
    return {key: listing.target(child) for key, child in found.items()}
