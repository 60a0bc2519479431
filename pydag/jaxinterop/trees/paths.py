# SPDX-License-Identifier: Apache-2.0
"""Paths of leaves as `jax.tree` has them, and functions that get them."""

from collections.abc import Callable
from typing import Any

import optree
from jax import tree_util

import pydag._core as _core
from pydag.typing import Dag, IsLeaf

KeyPath = tuple[Any, ...]

_FLAT = "[<flat index "


def key_path(accessor: optree.PyTreeAccessor) -> KeyPath:
    """The keys of JAX's for the steps of an accessor."""
    return tuple(map(_key, accessor))


def _key(step: optree.PyTreeEntry) -> Any:
    text = step.codify("")
    if text.startswith("."):
        return tree_util.GetAttrKey(text[1:])
    if text.startswith(_FLAT):
        return tree_util.FlattenedIndexKey(step.entry)
    if isinstance(step, optree.SequenceEntry):
        return tree_util.SequenceKey(step.entry)
    return tree_util.DictKey(step.entry)


TakesPath = Callable[[KeyPath, Any], bool]


def by_path(tree: Dag, is_leaf: TakesPath) -> IsLeaf:
    """A predicate for what `is_leaf` keeps whole. It is asked once per distinct object.

    None at several places is one object: it is a leaf everywhere if it is one somewhere.
    """
    kept: dict[int, Any] = {}
    asked: dict[int, Any] = {}
    pending: list[tuple[Any, KeyPath]] = [(tree, ())]
    while pending:
        node, path = pending.pop()
        has_children = node is not None and not _core.is_leaf(node)
        if has_children and id(node) in asked:
            continue
        asked[id(node)] = node
        if is_leaf(path, node):
            kept[id(node)] = node
        elif has_children:
            children, _, spec = _core.open_one_level(node)
            steps = [(*path, *key_path(accessor)) for accessor in spec.accessors()]
            pending.extend(reversed(list(zip(children, steps, strict=True))))
    return lambda x: id(x) in kept
