# SPDX-License-Identifier: Apache-2.0
"""Paths as Python text, such as `args[0]['w']`: every caller gives the name that it begins with."""

from collections.abc import Sequence

import optree

from pydag.structure.listing import Listing, shorten, step_text

Roots = str | tuple[str, ...]
"""What the user calls the tree that is walked, or each item of it where it is a tuple."""

CALL: Roots = ("args", "kwargs")

LONGEST = 600  # characters of a path


def place_text(accessor: optree.PyTreeAccessor, roots: Roots) -> str:
    """The path to a leaf."""
    root, skipped = _beginning([entry.entry for entry in accessor[:2]], roots)
    return shortened(accessor[skipped:].codify(root))


def position_text(listing: Listing, position: int, roots: Roots) -> str:
    """The path to a position in a listing."""
    return way_text(listing, listing.way(position), roots)


def way_text(listing: Listing, way: Sequence[int], roots: Roots) -> str:
    """The path that leads along these positions in a listing."""
    steps = [listing.records[position] for position in way]
    root, skipped = _beginning([step.entry for step in steps[:2]], roots)
    return shortened(root + "".join(map(step_text, steps[skipped:])))


def _beginning(entries: Sequence[object], roots: Roots) -> tuple[str, int]:
    """How a path begins, and how many of its steps that stands for."""
    if isinstance(roots, str):
        return roots, 0
    if not entries:
        return "tree", 0
    child = entries[0]
    assert isinstance(child, int)  # in a tuple
    return roots[child], 1


def shortened(text: str, limit: int = LONGEST) -> str:
    """A text of readable length: the middle of a very long one is left out."""
    return shorten(text, limit)
