# SPDX-License-Identifier: Apache-2.0
"""A warning about a selection that selects more than it seems to."""

import itertools
from collections.abc import Collection, Sequence

from pydag._core import PyDagSpec
from pydag.jaxinterop.content.paths import Roots, path_texts
from pydag.ops.select import is_prefix, select, where_there
from pydag.structure.listing import Listing
from pydag.structure.reshared import apart
from pydag.typing import Leaf, Where

from .source import warn_at_call

_MOST_PLACES = 20_000  # there may be astronomically many


class SharedSelectionWarning(UserWarning):
    """All that a selection selects is at places, too, that it doesn't select.

    Such as `wrt="*policy*"` of `{"policy": model, "reference": model}`: what is selected is an
    object, at all of its places.
    """


def warn_of_shared_selection(
    where: Where,
    chosen: Collection[int],
    spec: PyDagSpec,
    leaves: Sequence[Leaf],
    roots: Roots,
    *,
    depth: int = 0,
) -> None:
    """Warns if two leaves or more were chosen, and all are at other places, too, by no path chosen.

    Args:
        chosen: The positions of the leaves that were chosen by `where`.
        depth: As in `pydag.ops.select.select`.
    """
    if len(chosen) < 2 or not spec.num_shared or is_prefix(where, spec.namespace):
        return
    if callable(where) and not isinstance(where, type):
        return  # a predicate is asked about leaves
    listing = Listing.of(spec)
    if sum(listing.num_ways()) > _MOST_PLACES:
        return
    numbers = itertools.count(1)
    places = apart(listing, spec, 0, lambda _, __, below: [next(numbers) for _ in below])
    picked = frozenset(chosen)
    each = [leaves[i] if i in picked else None for i in places.leaves]
    flags = select(where_there(where), places.spec, each, spec.namespace, depth=depth)
    found: dict[bool, dict[int, int]] = {True: {}, False: {}}
    for place, (leaf, flag) in enumerate(zip(places.leaves, flags, strict=True)):
        found[flag].setdefault(leaf, place)
    if not found[False].keys() >= picked:
        return
    texts, first = path_texts(places.spec, roots), min(picked)
    warn_at_call(
        f"wrt selects {texts[found[True][first]]}, and with it {texts[found[False][first]]}, which "
        "is the same object; and so on for all that it selects\n  If the two only start equal, "
        "make one of them a copy: pj.tree.copy(...).",
        SharedSelectionWarning,
    )
