# SPDX-License-Identifier: Apache-2.0
"""What `wrt=` selects, and a warning if that is more than it seems to."""

import itertools
from collections.abc import Collection, Sequence

from pydag._core import PyDagSpec
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import Roots, path_texts
from pydag.jaxinterop.foreign.flax_private import is_module_class
from pydag.ops.select import is_prefix, select
from pydag.structure.listing import Listing
from pydag.structure.near import common_steps, pattern_of
from pydag.structure.reshared import apart
from pydag.typing import Leaf, Where

from .source import warn_at_call

_MOST_PLACES = 20_000  # there may be astronomically many


class SharedSelectionWarning(UserWarning):
    """All that a selection selects is at places, too, that it doesn't select.

    Such as `wrt="*policy*"` of `{"policy": model, "reference": model}`: the object is selected
    at all of its places. There is no warning if the other places are in the same module.
    """


def selected(
    wrt: Where,
    content: Content,
    leaves: Sequence[Leaf],
    able: Sequence[bool],
    roots: Roots,
    options: Options,
    is_one: bool = False,
) -> Sequence[bool]:
    """Whether `wrt` selects each traced leaf of a tree.

    Warns if it selects two leaves or more, and each is also at a place that it doesn't select, and
    that no module holds together with one that it selects.

    Args:
        able: Which of the traced leaves can be selected. Predicates are asked about these.
        is_one: Whether a prefix is one of the only item of the tree.

    Raises:
        ValueError: There are leaves, and no path matches a pattern.
    """
    spec, positions, namespace = content.spec, content.traced_positions(), options.namespace
    asked: list[Leaf] = [None] * spec.num_leaves
    for i, leaf, can_be in zip(positions, leaves, able, strict=True):
        asked[i] = leaf if can_be else None
    if is_one and is_prefix(wrt, namespace):
        return content.traced_among(select(wrt, spec.child(0), asked, namespace))
    depth, must_match = 0 if isinstance(roots, str) else 1, bool(leaves)
    flags = select(
        *(wrt, spec, asked, namespace),
        asked=_there,
        depth=depth,
        roots=roots,
        must_match=must_match,
    )
    chosen = [i for i, can_be in zip(positions, able, strict=True) if can_be and flags[i]]
    _warn(wrt, chosen, spec, asked, roots, depth)
    return content.traced_among(flags)


def _warn(
    where: Where,
    chosen: Collection[int],
    spec: PyDagSpec,
    leaves: Sequence[Leaf],
    roots: Roots,
    depth: int,
) -> None:
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
    flags = select(where, places.spec, each, spec.namespace, asked=_there, depth=depth)
    inside = Listing.of(places.spec)
    ways = [inside.way(position) for position in inside.leaves]
    # For each leaf the places that it has by the selection, and all others; with outermost modules.
    found: dict[bool, dict[int, list[tuple[int, int | None]]]] = {True: {}, False: {}}
    for place, (leaf, flag) in enumerate(zip(places.leaves, flags, strict=True)):
        steps = ((step, inside.records[step].type) for step in (0, *ways[place]))
        module = next((i for i, cls in steps if is_module_class(cls, spec.namespace)), None)
        found[flag].setdefault(leaf, []).append((place, module))
    pairs, parts = list[tuple[int, int]](), dict[tuple[int, ...], list[list[int]]]()
    for leaf in sorted(picked):
        modules = {module for _, module in found[True][leaf]} - {None}
        far = [place for place, module in found[False].get(leaf, ()) if module not in modules]
        if not far:
            return
        own = found[True][leaf][0][0]
        pairs.append((own, far[0]))
        for place in far:
            start = ways[place][: len(common_steps([ways[own], ways[place]])) + 1]
            parts.setdefault(tuple(start), []).append(ways[place][depth:])
    given = where if type(where) is list else [where]
    if not all(isinstance(item, str) for item in given):
        given = [pattern_of(inside, [ways[own][depth:] for own, _ in pairs])]
    both = [*given, *(pattern_of(inside, part) for part in parts.values())]
    texts, (one, other) = path_texts(places.spec, roots), pairs[0]
    warn_at_call(
        f"wrt selects {texts[one]}, and with it {texts[other]}, which is the same object; and so "
        "on for all that it selects\n  If the two only start equal, make one of them a copy: "
        f"pj.tree.copy(...). If both are meant, select both: wrt={both}.",
        SharedSelectionWarning,
    )


def _there(leaves: Sequence[Leaf], _: PyDagSpec) -> list[bool]:
    return [leaf is not None for leaf in leaves]
