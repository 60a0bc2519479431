# SPDX-License-Identifier: Apache-2.0
"""The paths of the leaves that JAX traces."""

from collections.abc import Callable, Sequence
from typing import Any

from jax import tree_util

from pydag.jaxinterop.messages.path_texts import MOST_LEAVES, path_texts
from pydag.jaxinterop.messages.roots import Roots
from pydag.registry.weak_table import WeakTable

from .untraced import Untraced


def paths_of(untraced: Untraced, root: Roots = "") -> Sequence[str]:
    """The path of each traced leaf as Python text."""
    texts = path_texts(untraced.spec, root)
    if not untraced.positions:
        return texts
    skipped = frozenset(untraced.positions)
    return [text for i, text in enumerate(texts) if i not in skipped]


# The names of the traced leaves, as long as the structure lives: by root and static positions.
_names: WeakTable[dict[tuple[str, tuple[int, ...]], tuple[str, ...]]] = WeakTable()


def names_of(untraced: Untraced, root: str) -> tuple[str, ...]:
    """A name for each traced leaf: its path, without a dot before it."""
    spec, key = untraced.spec_key.spec, (root, untraced.positions)
    known = _names.get(spec, None)
    if known is not None and (names := known.get(key)) is not None:
        return names
    names = tuple(path.removeprefix(".") for path in paths_of(untraced, root))
    if spec.num_leaves <= MOST_LEAVES:
        _names.set(spec, {**(known or {}), key: names})
    return names


def keys_of(untraced: Untraced, root: str) -> list[tree_util.GetAttrKey]:
    """A name for each traced leaf; JAX writes a dot before it."""
    return list(map(tree_util.GetAttrKey, names_of(untraced, root)))


class LeafKey(tree_util.DictKey):  # type: ignore[misc]  # JAX's class has no types
    """The key by which JAX knows a leaf of an object, however deep it lies in it.

    As a key it is the whole path, by which checkpoints tell leaves apart.

    Attributes:
        name: The last part of the path: the name of an attribute, a key or an index.
    """

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path.removeprefix("."))
        self.path, self.name = path, name

    def __str__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"LeafKey({self.path!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LeafKey, (self.path, self.name)


def leaf_keys_of(untraced: Untraced) -> list[LeafKey]:
    """The key of each traced leaf of an object."""
    paths = untraced.spec.paths()
    positions = untraced.traced_positions()
    texts = paths_of(untraced)
    return [LeafKey(text, str(paths[i][-1])) for i, text in zip(positions, texts, strict=True)]


OpenWithNames = Callable[[Any], tuple[Sequence[Any], Any, Sequence[Any]]]
"""Gives the children of an object, its aux_data, and attributes (text) or indices (numbers)."""

opens_with_names: WeakTable[OpenWithNames] = WeakTable()
"""How objects of a class are opened; the names are those that the class's keys have, too."""
