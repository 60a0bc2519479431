# SPDX-License-Identifier: Apache-2.0
"""A tree as lines of text that are the same in every process which holds such a tree."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.roots import Roots, position_text
from pydag.structure.listing import Listing, Record, step_text
from pydag.typing import Leaf

from .leaves import is_traced

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

Line = list[str]
"""A path, and what stands there."""
_ORDERS = "the order of dicts and attributes"
"""What stands for a path in the last line."""


def lines_of(leaves: Sequence[Leaf], spec: PyDagSpec, roots: Roots) -> list[Line]:
    """Of each node its path and what stands there; at last the whole, with orders.

    They are the same text in every process that holds such a tree.
    """
    listing = Listing.of(spec)
    number = {position: i for i, position in enumerate(listing.leaves)}
    lines = []
    for position, record in enumerate(listing.records):
        at = number.get(position)
        text = _node(record) if at is None else _leaf(leaves[at])
        step = step_text(record) if position else ""
        lines.append([position_text(listing, position, roots), f"{step}: {text}"])
    orders = _ADDRESS.sub("", repr(_core.spec_key(spec)))
    return [*lines, [_ORDERS, orders]]


def _node(record: Record) -> str:
    if record.is_alias:
        return f"the shared object {record.number} again"
    name = getattr(record.type, "__qualname__", str(record.type))
    detail = "" if record.detail is None else f", {_static(record.detail)}"
    shared = f", shared object {record.number}" if record.number >= 0 else ""
    return f"{name} of {record.num_children}{shared}{detail}"


def _leaf(leaf: Leaf) -> str:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None or not is_traced(leaf):
        return _static(leaf)
    where = getattr(leaf, "sharding", None)
    spans = not getattr(leaf, "is_fully_addressable", True)
    spec = getattr(where, "spec", "") if spans else ""
    devices = sorted(device.id for device in getattr(where, "device_set", ())) if spans else ""
    return f"{dtype}{list(shape)} {spec} {devices}".rstrip()


def _static(value: Any) -> str:
    """A value as text that is the same in every process."""
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}{sorted(map(_static, value))}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(map(_static, value))})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{type(value).__name__} {_ADDRESS.sub('', repr(value))}"


def first_difference(first: list[Line], second: list[Line]) -> tuple[str, str, str] | None:
    """Where two listings differ first, and what they have there."""
    pairs = itertools.zip_longest(first, second, fillvalue=["its end", "nothing more"])
    for a, b in pairs:
        if a != b:
            where = a[0] if a[0] == b[0] else f"{a[0]}, and {b[0]}"
            return where, a[1].removeprefix(": "), b[1].removeprefix(": ")
    return None
