# SPDX-License-Identifier: Apache-2.0
"""The keys by which JAX knows the leaves of a `Dag` or a module, however deep they lie."""

from collections.abc import Sequence
from typing import Any

from jax import tree_util

from pydag.jaxinterop.content.content import Content


class LeafKey(tree_util.DictKey):  # type: ignore[misc]  # JAX's class has no types
    """The whole path of a leaf; `.name` is its last part, as code that looks at names expects."""

    def __init__(self, path: str, name: str = "") -> None:
        super().__init__(path.removeprefix("."))
        self.path, self.name = path, name

    def __str__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"LeafKey({self.path!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LeafKey, (self.path, self.name)


def leaf_keys(content: Content, root: str = "") -> Sequence[LeafKey]:
    """The key of each traced leaf. The paths begin with `root`."""
    names = [str(path[-1]) if path else "" for path in content.spec.paths()]
    pairs = zip(content.paths(root), content.traced_among(names), strict=True)
    return [LeafKey(text, name) for text, name in pairs]
