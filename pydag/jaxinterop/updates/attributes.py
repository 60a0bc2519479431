# SPDX-License-Identifier: Apache-2.0
"""What is static and part of a structure: where two structures differ in it.

These are meta fields, and what is static in a module of NNX.
"""

from typing import Any

from pydag._core import PyDagSpec
from pydag.jaxinterop.foreign.flax_private import static_attributes
from pydag.jaxinterop.messages.roots import Roots, position_text
from pydag.jaxinterop.packed.changed import static_fields
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.untraced import Untraced
from pydag.structure.listing import Listing, Record


def changed_attribute(
    old: PyDagSpec, new: PyDagSpec, roots: Roots
) -> "tuple[str, Any, Any] | None":
    """The first static attribute that differs between two structures: its path, and both values.

    None where they differ in anything else, too.
    """
    before, after = Listing.of(old), Listing.of(new)
    if len(before.records) != len(after.records):
        return None
    found: list[tuple[str, Any, Any]] = []
    for position, (one, other) in enumerate(zip(before.records, after.records, strict=True)):
        if _shape(one) != _shape(other):
            return None
        if Static(one.detail) == Static(other.detail):
            continue
        were, now = static_fields(one), static_fields(other)
        if were is None or now is None or were.keys() != now.keys():
            return None
        where = position_text(before, position, roots)
        found += [
            (f"{where}.{name}", were[name], value)
            for name, value in now.items()
            if Static(value) != Static(were[name])
        ]
    return found[0] if found else None


def differ_in_orders_alone(old: PyDagSpec, new: PyDagSpec) -> bool:
    """Whether the dicts in Dags were filled in other orders, and nothing else differs."""
    before, after = Listing.of(old).records, Listing.of(new).records
    return len(before) == len(after) and all(
        _shape(one) == _shape(other)
        and (
            one.detail.content == other.detail.content
            if type(one.detail) is Untraced and type(other.detail) is Untraced
            else Static(one.detail) == Static(other.detail)
        )
        for one, other in zip(before, after, strict=True)
    )


def _shape(record: Record) -> tuple[Any, ...]:
    return record.kind, record.number, record.num_children, Static(record.entry), record.type


def other_attributes(old: PyDagSpec, new: PyDagSpec, roots: Roots) -> str | None:
    """Which attributes a module of NNX has in one of two structures alone, where they differ first.

    None where something else differs. `explain` would show all that is static in the module.
    """
    before, after = Listing.of(old), Listing.of(new)
    for position, (one, other) in enumerate(zip(before.records, after.records, strict=False)):
        had, has = _names(before, position), _names(after, position)
        if one.type is other.type and had and has and had != has:
            name = f"{one.type.__module__}.{one.type.__qualname__}"
            where = position_text(before, position, roots)
            first, second = _only_here(had - has), _only_here(has - had)
            return f"{where}\n  first:  {name}{first}\n  second: {name}{second}"
        if _shape(one) != _shape(other):
            return None
    return None


def _names(listing: Listing, position: int) -> set[str]:
    """The attributes of a module of NNX; empty for other nodes."""
    record = listing.records[position]
    static = static_attributes(record.detail) if record.kind == "custom type" else None
    if static is None:
        return set()
    return {*static, *(str(listing.records[child].entry) for child in listing.children(position))}


def _only_here(names: set[str]) -> str:
    return f", only here: {', '.join(f'.{name}' for name in sorted(names))}" if names else ""
