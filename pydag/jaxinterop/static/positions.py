# SPDX-License-Identifier: Apache-2.0
"""Which leaves of a tree are static: those that JAX can't trace, and what configures a module.

A module's configuration is the numbers and flags whose nearest registered owner, looked for upwards
through builtin containers, is a module.
"""

from collections.abc import Iterator, Sequence
from itertools import compress

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.messages.roots import Roots, way_text
from pydag.structure.listing import Listing
from pydag.typing import Leaf

from .leaves import is_number, untraced_among

_MOST_WAYS = 256  # to one leaf are looked through for two to name in an error


def are_data(leaves: Sequence[Leaf], static: Sequence[int]) -> bytearray:
    """For each leaf whether it is none of the static ones."""
    flags = bytearray(b"\1") * len(leaves)
    for i in static:
        flags[i] = 0
    return flags


def without_static(leaves: Sequence[Leaf], static: Sequence[int]) -> Sequence[Leaf]:
    """The leaves that aren't static."""
    return list(compress(leaves, are_data(leaves, static))) if static else leaves


def static_positions(
    leaves: Sequence[Leaf],
    spec: PyDagSpec,
    roots: Roots = "tree",
    selected: Sequence[int] = (),
) -> tuple[int, ...]:
    """Where the static leaves of a tree stand.

    Args:
        roots: What errors call the tree.
        selected: Those that `static=` selects.

    Raises:
        SharingError: A number is a module's by one path, and data by another.
    """
    numbers: Sequence[int] = ()
    examples = _core.one_of_each_class(leaves)
    classes = [cls for cls, example in examples.items() if is_number(example)]
    if classes:
        found = _core.positions_of_classes(leaves, classes)
        numbers = _numbers_of_modules(found, spec, roots)
    untraced = untraced_among(leaves)
    if untraced and (numbers or selected):
        return tuple(sorted({*numbers, *selected, *untraced}))
    if selected:
        return tuple(sorted({*numbers, *selected}))
    return tuple(untraced or numbers)


def _numbers_of_modules(numbers: list[int], spec: PyDagSpec, roots: Roots) -> list[int]:
    """Those of the positions of numbers at which a module owns the number."""
    owned, mixed = _core.module_leaves(spec)
    if mixed:
        for i in sorted(frozenset(mixed).intersection(numbers)):
            raise _two_treatments(spec, i, roots)
    if len(owned) == spec.num_leaves:
        return numbers
    is_owned = frozenset(owned)
    return [i for i in numbers if i in is_owned]


def _ways(spec: PyDagSpec, leaf: int, roots: Roots) -> Iterator[tuple[bool, str]]:
    """For some of the paths to a leaf whether a module owns it there, and the path as text."""
    listing = Listing.of(spec)
    for way, _ in zip(listing.ways(listing.leaves[leaf]), range(_MOST_WAYS), strict=False):
        owners = [listing.records[listing.target(step)] for step in way]
        registered = [o.type for o in owners if o.kind in ("fields", "custom type")]
        is_owned = bool(registered) and _core.is_module(registered[-1], spec.namespace)
        yield is_owned, way_text(listing, way, roots)


def _two_treatments(spec: PyDagSpec, leaf: int, roots: Roots) -> SharingError:
    found: dict[bool, str] = {}
    for is_owned, text in _ways(spec, leaf, roots):
        found.setdefault(is_owned, text)
    return SharingError(
        "one number is both a module's configuration and data\n"
        f"  {found.get(True, 'along one path')} is static: a module holds it\n"
        f"  {found.get(False, 'along another')} is traced: no module holds it there\n"
        "  The container that holds it is one object at both places: give one of them a copy."
    )
