# SPDX-License-Identifier: Apache-2.0
"""A DAG taken apart into data and structure, with what was seen of the objects in it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.messages.roots import place_text
from pydag.jaxinterop.packed.derivatives import with_seen
from pydag.jaxinterop.packed.seen import (
    Seen,
    holds_registered,
    is_any_derivative_seen,
    is_any_seen,
    may_hide,
    may_hold_seen,
    see,
    seen,
    seen_addresses,
)
from pydag.jaxinterop.static.leaves import Static, is_number
from pydag.jaxinterop.static.parted import Parting
from pydag.jaxinterop.static.positions import static_positions, without_static
from pydag.jaxinterop.static.untraced import (
    Options,
    Untraced,
    parting_of,
    take_apart,
    untraced_of,
)
from pydag.ops.select import made_masks
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr
from pydag.typing import Dag, IsLeaf, Leaf

OPTIONS = Options()


class _Parts(NamedTuple):
    """A structure, all of its leaves, and where those stand that are no data."""

    spec: PyDagSpec
    leaves: list[Leaf]
    static: list[int]


def _told_apart(tree: Dag) -> tuple[list[Leaf], PyDagSpec, Parting | None]:
    """As `told_apart`; no parting where instances may be known by what they were built from."""
    leaves, spec = OPTIONS.flatten(tree, "tree")
    return leaves, spec, None if may_hold_seen(spec) else parting_of(leaves, spec, OPTIONS)


def data_of(tree: Dag, is_leaf: IsLeaf | None = None) -> Sequence[Leaf]:
    """The distinct data of a tree; as `opened`."""
    if is_leaf is None:
        leaves, _, parting = _told_apart(tree)
        if parting is not None:
            return parting.data(leaves)
    return opened(tree, is_leaf)[1]


def mapped(f: Callable[[Leaf], Any], tree: Dag) -> Dag:
    """A tree with what a function gives for each piece of data."""
    if not is_any_derivative_seen():
        leaves, spec, parting = _told_apart(tree)
        if parting is not None:
            found = [f(leaf) for leaf in parting.data(leaves)]
            if not (holds_registered(spec) and may_hide(found)):
                return _core.unflatten(spec, parting.with_data(leaves, found))
            return tree_of(untraced_of(leaves, spec, parting.static, OPTIONS, "tree"), found)
    untraced, data = opened(tree)
    return tree_of(untraced, [f(leaf) for leaf in data])


def opened(tree: Dag, is_leaf: IsLeaf | None = None) -> tuple[Untraced, Sequence[Leaf]]:
    """The structure of a tree and its distinct data.

    Args:
        is_leaf: Asked once per distinct object before it is opened. What it keeps whole is data.

    Raises:
        CycleError: An object contains itself.
        TypeError: A leaf is an object of a class that is not registered, and holds arrays.
    """
    if is_leaf is None and not (is_any_seen() and may_hold_seen(OPTIONS.flatten(tree, "tree")[1])):
        untraced, data = take_apart(tree, OPTIONS)
        return with_seen(untraced, tree), data
    spec, leaves, static = _taken_apart(tree, is_leaf)
    untraced = untraced_of(leaves, spec, tuple(static), OPTIONS, "tree")
    if is_leaf is None:
        untraced = with_seen(untraced, tree)
    return untraced, without_static(leaves, static)


def _is_node(x: Any) -> bool:
    return not _core.is_leaf(x)


def _taken_apart(tree: Dag, is_leaf: IsLeaf | None) -> _Parts:
    whole: dict[int, Any] = {}
    known: dict[int, Seen] = {}
    addresses = seen_addresses()

    def stops(x: Any) -> bool:
        if is_leaf is not None and is_leaf(x):
            if _is_node(x):
                whole[id(x)] = x
            return True
        found = seen(x) if id(x) in addresses else None
        if found is not None:
            known[id(x)] = found
        return found is not None

    leaves, spec = _core.flatten(
        tree, is_leaf=stops, namespace=OPTIONS.namespace, identity=OPTIONS.identity
    )
    positions = static_positions(leaves, spec) if leaves else ()
    if not known and not whole:
        return _Parts(spec, leaves, list(positions))
    parts, static = [], frozenset(positions)
    for i, leaf in enumerate(leaves):
        if id(leaf) in known:
            parts.append(_parts_of(known[id(leaf)], is_leaf))
        else:
            is_data = i not in static or id(leaf) in whole
            parts.append(_of_leaf(leaf, is_data))
    return _joined(spec, parts)


def _of_leaf(leaf: Leaf, is_data: bool) -> _Parts:
    return _Parts(_core.leaf_spec(False, OPTIONS.namespace), [leaf], [] if is_data else [0])


def _parts_of(known: Seen, is_leaf: IsLeaf | None) -> _Parts:
    """What an object was built from; trees that were put for leaves are opened, too."""
    untraced, data, _ = known
    static = frozenset(untraced.positions)
    parts = []
    for i, leaf in enumerate(untraced.all_leaves(data)):
        is_opened = i not in static and _is_node(leaf) and not (is_leaf and is_leaf(leaf))
        parts.append(_taken_apart(leaf, is_leaf) if is_opened else _of_leaf(leaf, i not in static))
    return _joined(untraced.spec, parts)


def _joined(spec: PyDagSpec, parts: Sequence[_Parts]) -> _Parts:
    """A structure with others in the place of its leaves."""
    if not all(part.spec.is_leaf() for part in parts):
        rest = iter(parts)
        spec = spec.transform(None, lambda _: next(rest).spec)
    leaves: list[Leaf] = []
    static: list[int] = []
    for part in parts:
        static.extend(len(leaves) + i for i in part.static)
        leaves.extend(part.leaves)
    return _Parts(spec, leaves, static)


def tree_of(untraced: Untraced, leaves: Sequence[Leaf]) -> Dag:
    """A tree of a structure and data; what else is put for data is noted as such.

    Raises:
        TypeError: A number stands for data in a module that can't have a note.
    """
    tree = untraced.build(leaves)
    without = see(tree, untraced, leaves)
    if without:
        _check_numbers(untraced, leaves, set(without))
    return tree


def _see_mask(mask: Dag, spec: PyDagSpec, leaves: Sequence[Leaf], flags: Sequence[bool]) -> None:
    """Remembers which booleans of a mask stand for data, where modules hold some."""
    if not any(_core.module_leaves(spec)):
        return
    try:
        positions = static_positions(leaves, spec)
    except SharingError:  # a number is both data and configuration: the mask has no note
        return
    statics = tuple(Static(flags[i]) for i in positions)
    untraced = Untraced(_core.spec_key(spec), tuple(positions), statics, OPTIONS)
    see(mask, untraced, [flags[i] for i in untraced.traced_positions()])


made_masks.append(_see_mask)


def _check_numbers(untraced: Untraced, leaves: Sequence[Leaf], without: set[int]) -> None:
    """Raises for a number whose owner is a module at one of some positions of the listing."""
    spec = untraced.spec
    listing, owned = Listing.of(spec), frozenset(_core.module_leaves(spec)[0])
    for i, leaf in zip(untraced.traced_positions(), leaves, strict=True):
        position = listing.leaves[i]
        while position > 0 and listing.records[position].kind not in ("fields", "custom type"):
            position = listing.parents[position]
        if i in owned and position in without and is_number(leaf):
            where, cls = place_text(spec.accessors()[i], "tree"), listing.records[position].type
            raise TypeError(
                f"{where} was to be {short_repr(leaf)}, a number in place of data; but numbers in "
                f"an instance of {cls!r} are configuration, and nothing can be remembered of an "
                "instance that has no weak reference\n"
                "  Take pydag.jaxinterop.tree.leaves or reduce for what is to be counted or "
                "compared, return arrays, or give the class a slot '__weakref__'."
            )
