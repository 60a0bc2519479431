# SPDX-License-Identifier: Apache-2.0
"""Functions of a single object: is it a leaf, and what are its parts? Sharing plays no role."""

import builtins
from collections.abc import Iterable
from typing import Any, NamedTuple

import optree

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.public.compiled import compiled
from pydag.public.options import with_options
from pydag.registry.entries import RegistryEntry
from pydag.registry.functions import register_pydag_node
from pydag.structure.text import short_repr
from pydag.typing import Dag, IsLeaf, UnflattenFunction


@compiled("is_leaf")
def dag_is_leaf(
    tree: Dag, /, is_leaf: IsLeaf | None = None, *, none_is_leaf: bool = False, namespace: str = ""
) -> bool:
    """Whether an object is a leaf by itself.

    Args:
        tree: The object.
        is_leaf: Asked first. True makes the object a leaf.

    >>> dag_is_leaf(1), dag_is_leaf([]), dag_is_leaf(None)
    (True, False, False)
    """
    return _core.is_leaf(tree, is_leaf=is_leaf, none_is_leaf=none_is_leaf, namespace=namespace)


@compiled("are_leaves")
def all_leaves(
    iterable: Iterable[Dag],
    /,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
) -> bool:
    """Whether all items of an iterable are leaves. Reading stops at the first other item.

    Args:
        iterable: The items.
        is_leaf: Asked first of each item. True makes it a leaf.

    >>> tree = {"a": [1, 2]}
    >>> all_leaves([tree]), all_leaves(pydag.dag_leaves(tree)), all_leaves([])
    (False, True, True)
    """
    return _core.are_leaves(
        iterable, is_leaf=is_leaf, none_is_leaf=none_is_leaf, namespace=namespace
    )


class _NodeParts(NamedTuple):
    children: list[Any]
    metadata: Any
    entries: tuple[Any, ...]
    unflatten_func: UnflattenFunction


class OneLevel(_NodeParts):
    """The parts of a node: `children, metadata, entries, unflatten_func = ...`.

    Attributes:
        type: The class of the node.
        path_entry_type: The class of its entries in an accessor.
        kind: The kind of node.
    """

    type: builtins.type
    path_entry_type: builtins.type[optree.PyTreeEntry]
    kind: optree.PyTreeKind


@with_options
def dag_flatten_one_level(
    tree: Dag, /, is_leaf: IsLeaf | None = None, *, none_is_leaf: bool = False, namespace: str = ""
) -> OneLevel:
    """Open one node, and nothing below it.

    Args:
        tree: The node.
        is_leaf: Asked first. True makes the object a leaf.

    Returns:
        The children; the metadata, which is the rest of the node; the entry of each child; and the
        function that builds a node again, from the metadata and the children. The result also has
        the attributes `type`, `path_entry_type` and `kind`.

    Raises:
        ValueError: The object is a leaf.
        RuntimeError: The class's flatten function returns an invalid result.

    >>> children, metadata, entries, unflatten_func = dag_flatten_one_level({"b": 1, "a": [2]})
    >>> children, entries, unflatten_func(metadata, [0, 0])
    ([[2], 1], ('a', 'b'), {'b': 0, 'a': 0})
    """
    cls = type(tree)
    entry = None
    if not (tree is None and none_is_leaf) and not (is_leaf is not None and is_leaf(tree)):
        entry = register_pydag_node.get(cls, namespace=namespace)
    if entry is None:
        raise ValueError(f"Cannot flatten leaf-type: {cls} (node: {_text(tree)}).")
    parts = tuple.__new__(OneLevel, _open(tree, entry, none_is_leaf, namespace))
    parts.type, parts.path_entry_type, parts.kind = cls, entry.path_entry_type, entry.kind
    return parts


def _text(node: Any) -> str:
    """Its `repr` if that is short. The text of a container may be exponentially long."""
    if register_pydag_node.get(type(node)) is None:
        try:
            text = repr(node)
        except Exception:
            return short_repr(node)
        return text if len(text) < 1000 else f"{text[:500]} ... {text[-400:]}"
    return short_repr(node)


def _open(
    node: Any, entry: RegistryEntry, none_is_leaf: bool, namespace: str
) -> tuple[list[Any], Any, tuple[Any, ...], UnflattenFunction]:
    if entry.flatten_func is None or entry.unflatten_func is None:
        # A class of `register_fields`: the core opens it and gives a structure of one level.
        children, names, spec = _core.open_one_level(
            node, none_is_leaf=none_is_leaf, namespace=namespace
        )
        return children, spec, names, PyDagSpec.unflatten
    returned = tuple(entry.flatten_func(node))
    if len(returned) not in (2, 3):
        raise RuntimeError(
            f"PyTree custom flatten function for type {type(node)} should return a 2- or 3-tuple, "
            f"got {len(returned)}."
        )
    children = list(returned[0])
    named = returned[2] if len(returned) == 3 else None
    entries = tuple(range(len(children)) if named is None else named)
    if len(children) != len(entries):
        raise RuntimeError(
            f"PyTree custom flatten function for type {type(node)} returned inconsistent number of "
            f"children ({len(children)}) and number of entries ({len(entries)})."
        )
    return children, returned[1], entries, entry.unflatten_func
