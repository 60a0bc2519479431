# SPDX-License-Identifier: Apache-2.0
"""A warning about ties that a function was given, and that its result has lost.

A result, or a part of it, has the structure of an argument when sharing is ignored; and one object
of the argument is two objects in it.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag.errors import LostTieWarning
from pydag.jaxinterop.content.leaves import is_number, is_traced
from pydag.jaxinterop.content.options import CALL
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.foreign.flax_private import is_module_class
from pydag.jaxinterop.naming import Source
from pydag.jaxinterop.treatments.arguments import spot_text
from pydag.jaxinterop.updates.changes import Given
from pydag.structure.listing import Listing
from pydag.structure.reshared import matched
from pydag.typing import Dag, Leaf, Path

_MOST_PARTS = 200  # of a result are compared with an argument

StartsEqual = Callable[[Leaf], bool]
"""Whether a leaf that a function gets had one value everywhere when a caller passed it."""


def started_equal(arrays: dict[int, Any], inside: Sequence[Leaf], leaf: Leaf) -> bool:
    """Whether one of the leaves that a function gets had one value everywhere at the first call.

    Args:
        arrays: What was passed for them, by place: weak references. Answers, which serve all
            traces, replace them.
    """
    place = next((i for i, x in enumerate(inside) if x is leaf), -1)
    known = arrays.get(place)
    if known is None:
        return has_one_value(leaf)
    if not isinstance(known, bool):
        known = arrays[place] = has_one_value(known())
    return known


@jax.jit
def _are_equal(array: Any) -> Any:
    return (array == array[(0,) * array.ndim]).all()


def has_one_value(array: Leaf) -> bool:
    """Whether all elements are equal; False if they can't be read here, as those of tracers."""
    is_array = isinstance(array, jax_private.ArrayImpl | np.ndarray)
    if not is_array or not getattr(array, "is_fully_addressable", True):
        return False
    if getattr(array, "is_deleted", bool)():  # such as a donated one
        return False
    with jax.transfer_guard("allow"), jax.ensure_compile_time_eval():
        return array.size < 2 or bool(_are_equal(array))


def warn_of_lost_ties(given: Given, result: Dag, source: Source, starts_equal: StartsEqual) -> None:
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
        lost = _lost_tie(spec, given, position, result, starts_equal) if spec.num_shared else None
        if lost is not None:
            root, one, other = lost
            source.warn(
                f"{source.text} returns what it was given, but with a tie lost\n  given: "
                f"{name}{one} and {name}{other} are one object\n  returned: result{root}{one} and "
                f"result{root}{other} are two\n  Map a model with pj.tree.map in the place of "
                "jax.tree.map, and use pydag's grad, optimizer and apply_updates. If the two only "
                "start equal, copy one before (pj.tree.copy), or untie them (pydag.untie).",
                LostTieWarning,
            )
            return


def _lost_tie(
    spec: _core.PyDagSpec, given: Given, position: int, result: Dag, starts_equal: StartsEqual
) -> tuple[str, str, str] | None:
    """The part of the result that lacks a tie of the argument at a position, and two places."""
    for root, part in _parts(result):
        if type(part) is not spec.type:
            continue
        found, own = given.options.flatten(part)
        if own == spec or own.num_paths != spec.num_paths:
            continue
        a, b = Listing.of(spec), Listing.of(own)
        if (pairs := matched(a, b)) is None:
            continue
        leaves = [given.leaves[i] for i in Listing.of(given.spec).leaves_below(position)]
        ours = ((leaves[a.leaf_numbers[i]], j) for i, j in pairs if i in a.leaf_numbers)
        same = (_have_one_type(leaf, found[b.leaf_numbers[j]]) for leaf, j in ours)
        kept = set(map(id, found))
        is_another = kept <= set(map(id, given.leaves)) and not kept <= set(map(id, leaves))
        if is_another or not all(same):  # another argument, as it was given
            continue
        places = defaultdict[int, list[int]](list)  # for each object what it is in the result
        for i, j in sorted(pairs):
            if a.records[i].number >= 0:
                places[i].append(j)
        for i, matches in places.items():
            for one, other in itertools.pairwise(matches):
                below = (leaves[leaf] for leaf in a.leaves_below(i))
                if _is_meant(a, spec.namespace, b.path(one), b.path(other)) and not all(
                    _is_plain(leaf) or starts_equal(leaf) for leaf in below
                ):
                    return root, b.path_text(one), b.path_text(other)
    return None


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
    if not (is_traced(one) and is_traced(other)):
        return _core.is_same_value(one, other)
    if jax_private.is_ref(one) or jax_private.is_ref(other):
        return jax_private.is_ref(one) and jax_private.is_ref(other)
    same_shape = jnp.shape(one) == jnp.shape(other)
    return same_shape and jnp.result_type(one) == jnp.result_type(other)


def _is_meant(listing: Listing, namespace: str, one: Path, other: Path) -> bool:
    """Whether one object at two paths is a tie: what modules hold, or layers of several leaves.

    It isn't for items of tuples, for parts that are copies of each other (but for a module that is
    in a module twice), and for the only leaf that two parts outside of modules have in common.
    """
    first, second = ways = listing.follow(one), listing.follow(other)
    depth = next(i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x != y)
    records = [listing.records[position] for position in first[: depth + 1]]
    holders = [listing.records[way[-2]] for way in ways]
    if any(record.kind in ("tuple", "namedtuple") for record in (records[-1], *holders)):
        return False
    in_module = any(
        r.kind in ("fields", "custom type") and not issubclass(r.type, Mapping) for r in records
    )
    at, parts = records[-1], (first[depth + 1], second[depth + 1])
    ours, theirs = (set(listing.leaves_below(part)) for part in parts)
    if len(ours & theirs) == 1:
        return in_module
    classes = at.type, listing.records[first[-1]].type
    is_layer = all(is_module_class(cls, namespace) for cls in classes)
    return ours != theirs or is_layer or at.kind in ("list", "deque")


def _is_plain(leaf: Leaf) -> bool:
    """Whether a leaf is one by chance: no array, an integer or a key."""
    dtype = getattr(leaf, "dtype", None)
    return dtype is None or not jnp.issubdtype(dtype, np.inexact)
