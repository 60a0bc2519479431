# SPDX-License-Identifier: Apache-2.0
"""Refuses weak references from the arguments of a call to objects of these arguments.

A function gets a tree of its own, built anew. A weak reference is a constant, so inside of the
function it would still lead to the caller's object, whose arrays would be constants.
"""

import weakref
from collections.abc import Sequence
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.roots import Roots, place_text
from pydag.registry.class_table import inherits
from pydag.typing import Dag, Identity, Leaf

from .leaves import is_of_jax
from .parts import readers_of
from .search import search

_KINDS: tuple[type, ...] = (weakref.ReferenceType, *weakref.ProxyTypes)


def is_weak(leaf: Any) -> bool:
    """Whether it is a weak reference or a proxy."""
    return any(inherits(type(leaf), kind) for kind in _KINDS)


def _weak_in(leaf: Leaf) -> tuple[str, Any] | None:
    """The path from a leaf to a weak reference that it is or holds, and the reference."""
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
