# SPDX-License-Identifier: Apache-2.0
"""A warning about ties that a function was given, and that its result has lost.

A result, or a part of it, has the structure of an argument when sharing is ignored; and one object
of the argument is two objects in it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import LostTieWarning
from pydag.jaxinterop.content.leaves import is_number, is_traced
from pydag.jaxinterop.content.paths import CALL, LeavesByPath
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.treatments.arguments import spot_text
from pydag.jaxinterop.updates.changes import Given
from pydag.structure.listing import Listing
from pydag.structure.walk import Walk
from pydag.typing import Dag, Leaf, Path

from .source import Source

_MOST_PARTS = 200  # of a result are compared with an argument
_MOST_ELEMENTS = 1 << 20  # of an array are read


def warn_of_lost_ties(given: Given, result: Dag, source: Source) -> None:
    """Warns of the first argument that comes back without a tie that it had when it was given."""
    listing = Listing.of(given.spec)
    arguments = list(zip(given.spec.children(), listing.children(0), strict=True))
    names = given.roots
    if names == CALL:
        calls, arguments, names = arguments, [], ()
        for part, position in calls:
            names += tuple(map(spot_text, part.entries()))
            arguments += zip(part.children(), listing.children(position), strict=True)
    for name, (spec, position) in zip(names, arguments, strict=True):
        if not spec.num_shared:
            continue
        lost = _lost_tie(spec, given, position, result)
        if lost is not None:
            root, one, other = lost
            source.warn(
                f"{source.text} returns what it was given, but with a tie lost\n"
                f"  given: {name}{one} and {name}{other} are one object\n"
                f"  returned: result{root}{one} and result{root}{other} are two\n"
                "  Map a model with pj.tree.map in the place of jax.tree.map, and use pydag's "
                "grad, optimizer and apply_updates. If the two only start equal, copy one before "
                "(pj.tree.copy), or untie them (pydag.untie).",
                LostTieWarning,
            )
            return


def _lost_tie(
    spec: PyDagSpec, given: Given, position: int, result: Dag
) -> tuple[str, str, str] | None:
    """The part of the result that lacks a tie of the argument at a position, and two places."""
    for root, part in _parts(result):
        if type(part) is not spec.type:
            continue
        found, own = given.options.flatten(part)
        if own == spec or own.num_paths != spec.num_paths:
            continue
        # It is a prefix where it shares less, and nothing else differs.
        if not (own.is_prefix(spec) or unfold_alike(own, spec)):
            continue
        below = Listing.of(given.spec).leaves_below(position)
        leaves = [given.leaves[i] for i in below]
        by_path = LeavesByPath(spec, range(spec.num_leaves))
        numbers = [by_path.at(path) for path in own.paths()]
        pairs = zip(numbers, found, strict=True)
        if all(_have_one_type(leaves[number], leaf) for number, leaf in pairs):
            kept = set(map(id, found))
            if kept <= set(map(id, given.leaves)) and not kept <= set(map(id, leaves)):
                continue  # another argument, as it was given
            lost = _two_of_one(spec, leaves, own, numbers, found) or _two_nodes(spec, own)
            if lost is not None:
                return root, *lost
    return None


def unfold_alike(one: PyDagSpec, other: PyDagSpec) -> bool:
    """Whether two structures differ in sharing alone."""
    a, b = Listing.of(one), Listing.of(other)
    walk = Walk([(0, 0)])
    for i, j in walk:
        x, y = a.records[i], b.records[j]
        if not x.fits(y) or x.detail != y.detail:
            return False
        for child, match in zip(a.children(i), b.children(j), strict=True):
            if a.records[child].entry != b.records[match].entry:
                return False
            walk.add([(a.target(child), b.target(match))])
    return True


def _parts(result: Dag) -> Iterator[tuple[str, Dag]]:
    """The result and its parts, through builtin containers, with their paths."""
    waiting = [("", result)]
    for root, part in waiting:
        yield root, part
        items: Iterable[tuple[Any, Dag]] = ()
        if isinstance(part, dict | list | tuple):
            items = part.items() if isinstance(part, dict) else enumerate(part)
        if len(waiting) < _MOST_PARTS:
            waiting += [(f"{root}[{key!r}]", item) for key, item in items]


def _have_one_type(one: Leaf, other: Leaf) -> bool:
    if is_number(one) and is_number(other):  # `jax.tree.map` changes those of modules, too
        return True
    if is_traced(one) and is_traced(other):
        if jax_private.is_ref(one) or jax_private.is_ref(other):
            return jax_private.is_ref(one) and jax_private.is_ref(other)
        same_shape = jnp.shape(one) == jnp.shape(other)
        return same_shape and jnp.result_type(one) == jnp.result_type(other)
    return _core.is_same_value(one, other)


def _two_of_one(
    spec: PyDagSpec,
    leaves: Sequence[Leaf],
    own: PyDagSpec,
    numbers: Sequence[int],
    found: Sequence[Leaf],
) -> tuple[str, str] | None:
    """Two places of one leaf of the argument that hold two objects in the result.

    None if the two were probably not tied on purpose, or are in copies, which may become two.
    """
    texts, listing = _core.path_texts(own, ""), Listing.of(spec)
    copies = parallel_copies(listing)
    met: dict[int, dict[int | None, int]] = {}  # for each leaf, its first place in each copy
    for place, (number, path) in enumerate(zip(numbers, own.paths(), strict=True)):
        copy = _copy_of(listing, path, copies)
        before = [
            p
            for c, p in met.setdefault(number, {}).items()
            if (c == copy or None in (c, copy)) and found[p] is not found[place]
        ]
        met[number].setdefault(copy, place)
        if not before or _starts_equal(leaves[number]):
            continue
        slots = listing.slots_of(listing.leaves[number])
        kinds = {listing.records[listing.parents[slot]].kind for slot in slots}
        if kinds.isdisjoint(("tuple", "namedtuple")):
            return texts[before[0]], texts[place]
    return None


def _two_nodes(spec: PyDagSpec, own: PyDagSpec) -> tuple[str, str] | None:
    """Two places of one node of the argument that hold two nodes, while all leaves are shared."""
    a, b = Listing.of(spec), Listing.of(own)
    if parallel_copies(a):
        return None
    met: dict[int, tuple[int, int]] = {}  # for each object its first match, and where that stands
    walk = Walk([(0, 0)])
    for i, j in walk:
        if a.records[i].kind in ("tuple", "namedtuple"):
            continue
        for child, match in zip(a.children(i), b.children(j), strict=True):
            if a.records[child].entry != b.records[match].entry:
                return None
            target = a.target(child), b.target(match)
            known, place = met.setdefault(target[0], (target[1], match))
            if known != target[1] and not a.records[target[0]].is_leaf:
                return b.path_text(place), b.path_text(match)
            walk.add([target])
    return None


def _copy_of(listing: Listing, path: Path, copies: frozenset[int]) -> int | None:
    """Which of the copies a place is in."""
    position = 0
    for entry in path if copies else ():
        children = listing.children(position)
        position = next(child for child in children if listing.records[child].entry == entry)
        if position in copies:
            return position
        position = listing.target(position)
    return None


def _starts_equal(leaf: Leaf) -> bool:
    """Whether an array is one by chance: integers, keys, and what has one value everywhere."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, np.inexact):
        return True
    if isinstance(leaf, jax.core.Tracer | jax.ShapeDtypeStruct) or jax_private.is_ref(leaf):
        return False
    if leaf.size > _MOST_ELEMENTS or not getattr(leaf, "is_fully_addressable", True):
        return False
    values = np.asarray(leaf)
    return bool((values == values.flat[0]).all()) if values.size else True


def parallel_copies(listing: Listing) -> frozenset[int]:
    """Children of one node that hold the very same leaves, two or more: copies that start equal.

    Such as in `{"params": m, "average": m}`. A module that is in a module twice is a layer.
    """
    found: set[int] = set()
    for position, record in enumerate(listing.records):
        if record.is_leaf or record.is_alias or record.kind in ("list", "deque"):
            continue
        groups: dict[tuple[int, ...], list[int]] = {}
        for child in listing.children(position):
            below = tuple(listing.leaves_below(child))
            if len(below) > 1 or record.kind in ("tuple", "namedtuple"):
                groups.setdefault(below, []).append(child)
        for group in groups.values():
            if len(group) > 1 and not _is_layer(listing, position, group):
                found.update(group)
    return frozenset(found)


def _is_layer(listing: Listing, position: int, group: Sequence[int]) -> bool:
    targets = {listing.target(child) for child in group}
    if len(targets) > 1:
        return False
    classes = [listing.records[p].type for p in (position, *targets)]
    return all(isinstance(c, type) and _core.is_module(c, "") for c in classes)
