# SPDX-License-Identifier: Apache-2.0
"""Arrays in meta fields: refused, since structures are compared by `==` and hashed."""

import types
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.roots import Roots, position_text, shortened
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr

from .option import is_array

# The classes of most values in meta fields; looked up by class, since each call asks.
_PLAIN = frozenset(map(id, (type(None), bool, int, float, str, bytes, type, types.FunctionType)))

# Structures without meta fields that were looked at, such as those of dicts with many keys.
_without_values: set[PyDagSpec] = set()
_MOST_KEPT = 256


def _holds_array(value: Any) -> bool:
    if type(value) is not tuple:
        return is_array(value)
    if _PLAIN.issuperset(map(id, map(type, value))):
        return False
    return any(id(type(item)) not in _PLAIN and _holds_array(item) for item in value)


def _values(spec: PyDagSpec) -> list[Any]:
    """The values of the meta fields: a tuple for each record that has some."""
    rows, refs = _core.nodes_of(spec)
    found = {row[-1] for row in rows if row[0] == "fields"}
    return [refs[i] for i in found if refs[i] != ()]


def check_meta_fields(spec: PyDagSpec, roots: Roots) -> None:
    """Checks that no meta field holds an array, or a tuple with one.

    Raises:
        TypeError: One does. The message names the field, its class and its path.
    """
    try:
        if spec in _without_values:
            return
    except Exception:  # values that are compared may run code of their classes
        pass
    values = _values(spec)
    if not values:
        if len(_without_values) >= _MOST_KEPT:
            _without_values.clear()
        _without_values.add(spec)
    if not any(map(_holds_array, values)):
        return
    listing = Listing.of(spec)
    for position, record in enumerate(listing.records):
        for name, value in record.detail if record.kind == "fields" else ():
            if _holds_array(value):
                where = f"{position_text(listing, position, roots)}.{name}"
                raise TypeError(
                    f"{shortened(where)} is a meta field of {record.type!r}, and holds an array: "
                    f"{short_repr(value)}\n"
                    "  Meta fields are part of the structure, which is compared by == and hashed. "
                    "Make the field a data field; or keep the numbers there as a tuple."
                )
