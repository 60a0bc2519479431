# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a structure whatever its leaves are, found once for each that lives."""

import functools
from typing import Any

from jax import tree_util

from pydag._core import PyDagSpec
from pydag.functools import partial
from pydag.jaxinterop.foreign.jax_private import function_in
from pydag.registry.class_table import inherits
from pydag.registry.weak_table import WeakTable
from pydag.structure.listing import Listing, Record

from .leaves import is_array
from .paths import Roots, way_text
from .values import check_value

# The nodes with which something may be wrong, by position; most structures have none.
_known: WeakTable[list[tuple[int, Record]]] = WeakTable()

_PARTIALS = (tree_util.Partial, partial)  # whose arguments are opened


def check_structure(spec: PyDagSpec, roots: Roots) -> None:
    """Checks what nodes hold besides children: it is no part of what JAX traces.

    Raises:
        TypeError: The function of a partial that JAX opens is no value, such as a method bound to a
            model; or a meta field holds an array.
    """
    known = _known.get(spec, None)
    if known is None:
        known = [
            (position, record)
            for position, record in enumerate(Listing.of(spec).records)
            if record.type in _PARTIALS or _meta_with_array(record)
        ]
        _known.set(spec, known)
    for position, record in known:
        if record.type in _PARTIALS:
            check_value(
                _function(record.detail), functools.partial(_place, spec, position, roots, "func")
            )
            continue
        place = _place(spec, position, roots, _meta_with_array(record))
        raise TypeError(
            f"{place} is a meta field of {record.type.__qualname__} and holds an array: it would "
            "be a constant, neither traced nor trained, and stale when it changes\n"
            "  Let it be a data field, or hold a tuple of numbers."
        )


def _function(detail: Any) -> Any:
    """The function of a partial whose arguments are opened; JAX and optree wrap a partial there."""
    if inherits(type(detail), functools.partial) or not hasattr(detail, "keywords"):
        return function_in(detail)
    return functools.partial(detail.func, *detail.args, **detail.keywords)


def _meta_with_array(record: Record) -> str:
    """The first meta field of a node that holds an array, in containers too; empty if none does."""
    if record.kind != "fields":
        return ""
    return next((name for name, value in record.detail or () if _holds_array(value)), "")


def _holds_array(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_array, value.values()))
    if isinstance(value, tuple | list | set | frozenset):
        return any(map(_holds_array, value))
    return is_array(value)


def _place(spec: PyDagSpec, position: int, roots: Roots, attribute: str) -> str:
    listing = Listing.of(spec)
    return f"{way_text(listing, listing.way(position), roots)}.{attribute}"
