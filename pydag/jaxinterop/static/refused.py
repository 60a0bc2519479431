# SPDX-License-Identifier: Apache-2.0
"""What the arguments of a call must not hold: arrays in meta fields, weak references into them.

Meta fields are compared and hashed with the structure, so what they hold may not change in place. A
weak reference is a constant of the function, which gets a tree of its own, built anew: there it
would lead to the caller's object, whose arrays would be constants.
"""

import collections
import functools
import sys
import types
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.roots import Roots, place_text, position_text, shortened
from pydag.registry.class_table import inherits
from pydag.sharing.deref import Node
from pydag.structure.known import KnownOfStructures
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr
from pydag.typing import Dag, Identity, Leaf

from .leaves import is_of_jax
from .option import is_array
from .parted import PLAIN
from .parts import CONTAINERS, readers_of
from .search import search

# The classes of most values in meta fields; looked up by class, since each call asks.
_PLAIN = frozenset(map(id, (type(None), bool, int, float, str, bytes, type, types.FunctionType)))

# Structures without meta fields that were looked at, such as those of dicts with many keys.
_without_values: KnownOfStructures[bool] = KnownOfStructures()


# What can be changed in place, and so has no hash.
_CHANGING = (list, dict, set, collections.deque, bytearray)


class _Refused(NamedTuple):
    """What a meta field must not hold, and the path to it from the value of the field."""

    path: str
    value: Any
    is_array: bool


def _refused_in(value: Any, namespace: str) -> _Refused | None:
    """The first array in the value of a meta field; else the first object that may change in place.

    Opened are builtin containers, partials, and whatever is a node.
    """
    changing = None
    pending = [("", value)]
    met: dict[int, Any] = {}
    while pending:
        path, part = pending.pop()
        if id(type(part)) in _PLAIN or id(part) in met:
            continue
        met[id(part)] = part
        if _is_array(part):
            return _Refused(path, part, True)
        if any(inherits(type(part), base) for base in _CHANGING) and type(part).__hash__ is None:
            changing = changing or _Refused(path, part, False)
        pending += [(path + way, x) for way, x in reversed(list(_parts(part, namespace)))]
    return changing


def _parts(whole: Any, namespace: str) -> Iterator[tuple[str, Any]]:
    if isinstance(whole, functools.partial):
        yield ".func", whole.func
        yield from ((f".args[{i}]", x) for i, x in enumerate(whole.args))
        yield from ((f".keywords[{name!r}]", x) for name, x in whole.keywords.items())
    elif contents := [read for cls, read in CONTAINERS.items() if inherits(type(whole), cls)]:
        for read in contents:
            yield from ((way.format(short_repr(name)), part) for way, name, part in read(whole))
    elif not _is_leaf(whole, namespace):
        accessors, leaves, spec = _core.flatten_with_accessor(whole, namespace=namespace)
        yield from ((a.codify(""), leaf) for a, leaf in zip(accessors, leaves, strict=True))
        yield from (("", values) for values in _values(spec))


def _is_leaf(part: Any, namespace: str) -> bool:
    leaves = _core.leaves(part, namespace=namespace)
    return len(leaves) == 1 and leaves[0] is part


def _is_array(part: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    return is_array(part) or (torch is not None and isinstance(part, torch.Tensor))


def _is_plain(value: Any) -> bool:
    """Whether the value of a meta field surely holds nothing that is refused."""
    if type(value) is tuple:
        return _PLAIN.issuperset(map(id, map(type, value)))
    return id(type(value)) in _PLAIN


def _values(spec: PyDagSpec) -> list[Any]:
    """The values of the meta fields: a tuple for each record that has some."""
    rows, refs = _core.nodes_of(spec)
    found = {row[-1] for row in rows if row[0] == "fields"}
    return [refs[i] for i in found if refs[i] != ()]


def check_meta_fields(spec: PyDagSpec, roots: Roots) -> None:
    """Checks that no meta field holds an array, or what may change in place.

    Raises:
        TypeError: One does. The message names the field, its class and its path.
    """
    if _without_values.get(spec):
        return
    values = _values(spec)
    if not values:
        _without_values.set(spec, True)
    doubtful = [value for row in values for value in row if not _is_plain(value)]
    if not any(_refused_in(value, spec.namespace) for value in doubtful):
        return
    listing = Listing.of(spec)
    for position, record in enumerate(listing.records):
        for name, value in record.detail if record.kind == "fields" else ():
            if record.type is Node:  # its aux_data is that of another class
                continue
            if (found := _refused_in(value, spec.namespace)) is not None:
                where = shortened(f"{position_text(listing, position, roots)}.{name}")
                raise TypeError(
                    f"{where} is a meta field of {record.type!r}, and {_refusal(name, found)}"
                )


def _refusal(name: str, found: _Refused) -> str:
    what = f"{name}{found.path} is " * bool(found.path) + short_repr(found.value)
    if found.is_array:
        return (
            f"holds an array: {what}\n"
            "  Meta fields are part of the structure, which is compared by == and hashed. "
            "Make the field a data field; or keep the numbers there as a tuple."
        )
    return (
        f"may change in place: {what}\n"
        "  A function that was compiled for it would be called for what it is changed to. Give the "
        "field a tuple in the place of a list, a tuple of pairs for a dict, a frozenset for a set; "
        "or make it a data field."
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
