# SPDX-License-Identifier: Apache-2.0
"""Tree prefixes of booleans, as selections of leaves."""

from collections.abc import Sequence
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec, SharingError
from pydag.arrays.kinds import is_class_of
from pydag.structure.listing import NAMED, Listing, Record, shorten, step_text
from pydag.structure.text import short_repr
from pydag.typing import Leaf

_Link = tuple[int, Any]  # a step, and the link of the steps before it; None at the root


def by_prefix(flags: Sequence[bool], prefix: Listing, listing: Listing) -> list[bool]:
    """The flag of each leaf. Walks both structures together, and visits each pair of nodes once."""
    flag_at = dict(zip(prefix.leaves, flags, strict=True))
    # The flags that each node got, and for each flag the way that led to it.
    answers: list[dict[bool, _Link | None]] = [{} for _ in listing.records]
    visited = set()
    pending: list[tuple[int, int, _Link | None]] = [(0, 0, None)]
    while pending:
        inner, outer, link = pending.pop()
        inner, outer = prefix.target(inner), listing.target(outer)
        if inner in flag_at:
            below: list[tuple[int, int]] = []
            if flag_at[inner] not in answers[outer]:
                answers[outer][flag_at[inner]] = link
                below = [(inner, child) for child in listing.children(outer)]
        elif (inner, outer) in visited:
            continue
        else:
            visited.add((inner, outer))
            below = _pairs(prefix, inner, listing, outer, link)
        pending += [(a, b, (b, link)) for a, b in reversed(below)]
    for leaf in listing.leaves:
        if len(answers[leaf]) == 2:
            raise SharingError(
                "the prefix of booleans gives one object two answers\n"
                f"  {_text(listing, answers[leaf][True])}: True\n"
                f"  {_text(listing, answers[leaf][False])}: False\n"
                "  Both paths lead to one object: give them one answer."
            )
    return [True in answers[leaf] for leaf in listing.leaves]


def _pairs(
    prefix: Listing, inner: int, listing: Listing, outer: int, link: _Link | None
) -> list[tuple[int, int]]:
    """The children of two nodes, in pairs."""
    record, node = prefix.records[inner], listing.records[outer]
    own, others = prefix.named_children(inner), listing.named_children(outer)
    if not record.fits(node) or own.keys() != others.keys():
        raise ValueError(
            "the prefix of booleans doesn't fit the tree\n"
            f"  at {_text(listing, link)}\n"
            f"  prefix: {_outline(record, own)}\n"
            f"  tree:   {_outline(node, others)}"
        )
    if own:
        return [(own[entry], others[entry]) for entry in own]
    return list(zip(prefix.children(inner), listing.children(outer), strict=True))


def _text(listing: Listing, link: _Link | None) -> str:
    steps: list[str] = []
    while link is not None:
        step, link = link
        steps.append(step_text(listing.records[step]))
    return shorten("tree" + "".join(reversed(steps)))


def _outline(record: Record, entries: dict[Any, int]) -> str:
    if record.type is None:
        return "a leaf"
    name = getattr(record.type, "__qualname__", str(record.type))
    if record.kind in NAMED:
        return f"{name} with {short_repr(list(entries))}"
    return f"{name} of {record.num_children}"


def is_bool(x: Any) -> bool:
    """Whether it is a flag: True, False, or NumPy's."""
    return type(x) is bool or is_class_of(type(x), "numpy", "bool_") or _is_bool_array(x)


def _is_bool_array(x: Any) -> bool:
    """Whether it is an array that replaces True or False in a module that JAX mapped."""
    return is_class_of(type(x), "numpy", "ndarray") and x.ndim == 0 and x.dtype.kind == "b"


def prefix_flags(leaves: Sequence[Leaf], spec: PyDagSpec) -> list[bool] | None:
    """The flags of a prefix of booleans; None if it is something else.

    In a mask that was mapped from a module, only the places of the module's arrays are flags.
    """
    if all(map(is_bool, leaves)):
        return list(map(bool, leaves))
    if not any(map(_is_bool_array, leaves)):
        return None
    owned = frozenset().union(*_core.module_leaves(spec))
    flags = [_is_bool_array(x) if i in owned else is_bool(x) for i, x in enumerate(leaves)]
    if not all(flag or i in owned for i, flag in enumerate(flags)):
        return None
    return [flag and bool(x) for flag, x in zip(flags, leaves, strict=True)]
