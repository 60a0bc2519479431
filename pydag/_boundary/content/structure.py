# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a structure whatever its leaves are, found once for each that lives."""

import functools
from typing import Any

from jax import tree_util

from pydag._core import PyDagSpec
from pydag.registry.weak_table import WeakTable
from pydag.structure.listing import Listing

from .paths import Roots, way_text
from .values import check_value

# The positions of the partials of JAX's in a structure; nearly all have none.
_partials: WeakTable[list[tuple[int, Any]]] = WeakTable()


def check_structure(spec: PyDagSpec, roots: Roots) -> None:
    """Checks the functions of partials that JAX opens: they are static values.

    Raises:
        TypeError: One is no value, such as a method bound to a model.
    """
    known = _partials.get(spec, None)
    if known is None:
        known = [
            (position, record.detail)
            for position, record in enumerate(Listing.of(spec).records)
            if record.type is tree_util.Partial
        ]
        _partials.set(spec, known)
    for position, function in known:
        check_value(function, functools.partial(_place, spec, position, roots))


def _place(spec: PyDagSpec, position: int, roots: Roots) -> str:
    listing = Listing.of(spec)
    return f"{way_text(listing, listing.way(position), roots)}.func"
