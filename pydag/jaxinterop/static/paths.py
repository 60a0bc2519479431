# SPDX-License-Identifier: Apache-2.0
"""The paths of the leaves that JAX traces."""

from collections.abc import Sequence
from typing import Any

from jax import tree_util

from pydag.jaxinterop.messages.path_texts import path_texts
from pydag.jaxinterop.messages.roots import Roots

from .untraced import Untraced


def paths_of(untraced: Untraced, root: Roots = "") -> Sequence[str]:
    """The path of each traced leaf as Python text."""
    texts = path_texts(untraced.spec, root)
    if not untraced.positions:
        return texts
    skipped = frozenset(untraced.positions)
    return [text for i, text in enumerate(texts) if i not in skipped]


def keys_of(untraced: Untraced, root: str) -> list[tree_util.GetAttrKey]:
    """A name for each traced leaf; JAX writes a dot before it."""
    return [tree_util.GetAttrKey(path.removeprefix(".")) for path in paths_of(untraced, root)]


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
