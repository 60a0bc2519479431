# SPDX-License-Identifier: Apache-2.0
"""Trees of booleans about the leaves of arguments, in which containers may be of other types."""

from typing import Any

from pydag.jaxinterop.messages.roots import shortened
from pydag.jaxinterop.static.untraced import Options
from pydag.structure.kinds import MAPPINGS
from pydag.structure.listing import Listing
from pydag.typing import Dag

from .treatments import one_level


def flags(name: str, prefix: Any, tree: Dag, options: Options) -> list[bool]:
    """What a prefix says about each distinct leaf of a tree: whether all its places are True.

    Containers are matched by their number of children, and dicts by their keys, so that tuples of
    booleans do for all of them.

    Args:
        name: Of the prefix.

    Raises:
        ValueError: It doesn't fit, or has other leaves than booleans.
    """
    leaves, spec = options.flatten(tree)
    listing, found = Listing.of(spec), [True] * len(leaves)
    waiting = [(prefix, 0, name)]
    while waiting:
        prefix, place, where = waiting.pop()
        if isinstance(prefix, bool):
            for number in listing.leaves_below(place):
                found[number] &= prefix
            continue
        entries, given, own = one_level(prefix, options)
        if own.is_leaf():
            raise ValueError(
                f"{name} must be a tree of booleans, but {where} is {shortened(repr(prefix))}"
            )
        place = listing.target(place)
        record, places = listing.records[place], listing.children(place)
        if isinstance(prefix, dict) and record.kind in MAPPINGS:
            children = {listing.records[child].entry: child for child in places}
            if prefix.keys() != children.keys():
                raise ValueError(
                    f"{where} has the keys {sorted(map(str, prefix))}, but the dict of the "
                    f"arguments has {sorted(map(str, children))}"
                )
            places = [children[entry[0].entry] for entry in entries]
        elif record.is_leaf or len(places) != len(given):
            count = "no children, it is a leaf" if record.is_leaf else len(places)
            raise ValueError(
                f"{where} has {len(given)} children, but the corresponding part of the "
                f"arguments has {count}"
            )
        texts = (entry.codify(where) for entry in entries)
        waiting.extend(zip(given, places, texts, strict=True))
    return found
