# SPDX-License-Identifier: Apache-2.0
"""Paths in JAX's words: what `jax.tree_util.keystr` writes down."""

from typing import Any

import optree
from jax import tree_util

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
