# SPDX-License-Identifier: Apache-2.0
"""The paths of the leaves that JAX traces."""

from collections.abc import Sequence

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
