# SPDX-License-Identifier: Apache-2.0
"""Paths of leaves as Python text, such as `args[0]['w']`: every caller gives how they begin."""

from collections.abc import Sequence

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.registry.weak_table import WeakTable
from pydag.structure.listing import Listing, shorten, step_text

Roots = str | tuple[str, ...]
"""What the user calls the tree that is walked, or each item of it where it is a tuple."""

CALL: Roots = ("args", "kwargs")

_LONGEST = 600  # characters of a path
_MOST_LEAVES = 20_000  # the texts of a larger structure aren't kept

# JAX asks for them at each call of a function that isn't compiled. Kept as long as the structure.
_known: WeakTable[dict[Roots, Sequence[str]]] = WeakTable()


def path_texts(spec: PyDagSpec, roots: Roots) -> Sequence[str]:
    """The path of each leaf."""
    texts = _known.get(spec, None)
    if texts is None:
        texts = {}
        if spec.num_leaves <= _MOST_LEAVES:
            _known.set(spec, texts)
    if roots not in texts:
        found = _core.path_texts(spec, roots)
        texts[roots] = [shorten(t, _LONGEST) if len(t) > _LONGEST else t for t in found]
    return texts[roots]


def path_text(spec: PyDagSpec, roots: Roots, leaf: int) -> str:
    """The path of one leaf."""
    return path_texts(spec, roots)[leaf]


def way_text(listing: Listing, way: Sequence[int], roots: Roots) -> str:
    """The path that leads along these positions in a listing."""
    steps = [listing.records[position] for position in way]
    if isinstance(roots, str):
        return shorten(roots + "".join(map(step_text, steps)), _LONGEST)
    if not steps:
        return "tree"
    return shorten(roots[steps[0].entry] + "".join(map(step_text, steps[1:])), _LONGEST)


MISSING = object()
"""What stands at a path that a structure doesn't have."""
