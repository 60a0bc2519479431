# SPDX-License-Identifier: Apache-2.0
"""What the arguments of a call must not hold: arrays in meta fields, and weak references into them.

Meta fields are compared and hashed with the structure. A weak reference is a constant of the
function, which gets a tree of its own, built anew: there it would lead to the caller's object,
whose arrays would be constants.
"""

import types
import weakref
from collections.abc import Sequence
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.roots import Roots, place_text, position_text, shortened
from pydag.registry.class_table import inherits
from pydag.structure.known import KnownOfStructures
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr
from pydag.typing import Dag, Identity, Leaf

from .leaves import is_of_jax
from .option import is_array
from .parted import PLAIN
from .parts import readers_of
from .search import search

# The classes of most values in meta fields; looked up by class, since each call asks.
_PLAIN = frozenset(map(id, (type(None), bool, int, float, str, bytes, type, types.FunctionType)))

# Structures without meta fields that were looked at, such as those of dicts with many keys.
_without_values: KnownOfStructures[bool] = KnownOfStructures()


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
    if _without_values.get(spec):
        return
    values = _values(spec)
    if not values:
        _without_values.set(spec, True)
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


_KINDS: tuple[type, ...] = (weakref.ReferenceType, *weakref.ProxyTypes)


def is_weak(leaf: Any) -> bool:
    """Whether it is a weak reference or a proxy."""
    return any(inherits(type(leaf), kind) for kind in _KINDS)


def _weak_in(leaf: Leaf) -> tuple[str, Any] | None:
    """The path from a leaf to a weak reference that it is or holds, and the reference."""
    if id(type(leaf)) in PLAIN:  # most leaves of a call that is taken apart
        return None
    if is_weak(leaf):
        return "", leaf
    found = (
        None
        if is_of_jax(leaf) or readers_of(leaf).is_blind()
        else search(leaf, readers_of, is_weak)
    )
    return None if found is None else (found.path, found.array)


def holds_weak(leaf: Leaf) -> bool:
    """Whether a leaf is a weak reference, or holds one."""
    return _weak_in(leaf) is not None


def check_weak(
    tree: Dag, leaves: Sequence[Leaf], spec: PyDagSpec, identity: Identity, roots: Roots
) -> None:
    """Checks weak references among the leaves of arguments.

    Raises:
        TypeError: One leads to an object of these arguments.
    """
    held = [(i, found) for i, leaf in enumerate(leaves) if (found := _weak_in(leaf)) is not None]
    if not held:
        return
    for i, (way, reference) in held:

        def is_meant(node: Any, reference: Any = reference) -> bool:
            return any(known is reference for known in weakref.getweakrefs(node))

        accessors, nodes, _ = _core.flatten_with_accessor(
            tree, is_leaf=is_meant, namespace=spec.namespace, identity=identity
        )
        for accessor, node in zip(accessors, nodes, strict=True):
            if is_meant(node):
                where = place_text(spec.accessors()[i], roots) + way
                raise TypeError(_text(where, place_text(accessor, roots)))


def _text(reference: str, target: str) -> str:
    return (
        f"{reference} is a weak reference to {target}, an object of the same arguments\n"
        f"  The function gets a new {target}, and the reference would still lead to the caller's: "
        "its arrays would be constants.\n"
        "  Give a method what it needs of that object as an argument; or hold the part itself that "
        "is needed, which may be shared."
    )
