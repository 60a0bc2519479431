# SPDX-License-Identifier: Apache-2.0
"""The options that wrappers have in common: how a tree is taken apart."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.ops.select import is_prefix, select
from pydag.structure.text import short_repr
from pydag.typing import Dag, Identity, IsLeaf, Leaf, Where

from .leaves import is_array
from .paths import CALL, Roots


class Options(NamedTuple):
    """How a tree is taken apart."""

    namespace: str = ""
    identity: Identity = "all"
    static: Where | None = None  # which leaves are static beside those that have to be

    def flatten(
        self, tree: Dag, roots: Roots = "tree", is_leaf: IsLeaf | None = None
    ) -> tuple[list[Leaf], PyDagSpec]:
        """The distinct leaves of a tree, and its structure."""
        if is_leaf is not None:
            return _core.flatten(
                tree, is_leaf=is_leaf, namespace=self.namespace, identity=self.identity
            )
        return _core.flatten_at(tree, roots, namespace=self.namespace, identity=self.identity)

    def selected(
        self, leaves: Sequence[Leaf], spec: PyDagSpec, roots: Roots, is_result: bool
    ) -> list[int]:
        """The positions of the leaves that `static=` selects; of a result, no arrays.

        Raises:
            ValueError: `static=` selects nothing of the arguments of a call.
            TypeError: It is a tree prefix.
        """
        if self.static is None:
            return []
        if is_prefix(self.static, self.namespace):
            raise TypeError(
                f"static= takes classes, predicates and patterns, got {short_repr(self.static)}\n"
                '  Select by path, such as static="*.config", or name whole arguments by '
                "static_argnums."
            )
        depth = 0 if isinstance(roots, str) else 2 if roots == CALL else 1
        where = _without_arrays(self.static) if is_result else self.static
        must_match = roots == CALL and not is_result
        flags = select(
            where, spec, leaves, self.namespace, depth=depth, must_match=must_match and bool(leaves)
        )
        found = [
            i for i, flag in enumerate(flags) if flag and not (is_result and is_array(leaves[i]))
        ]
        if must_match and leaves and not found:
            raise ValueError(
                f"static= selects none of {len(leaves)} leaves: {short_repr(self.static)}\n"
                "  A predicate is asked about each leaf; a class is that of leaves, or of what "
                "holds them. Leave it out where nothing is static."
            )
        return found

    def key(self) -> Hashable:
        """These options as a part of a key; a selection that can't be hashed counts by identity."""
        try:
            hash(self.static)
        except TypeError:
            return self.namespace, self.identity, id(self.static)
        return self.namespace, self.identity, type(self.static), self.static


def _without_arrays(where: Any) -> Any:
    """A selection whose predicates aren't asked about arrays: those of a result were computed."""
    if type(where) is list:
        return [_without_arrays(item) for item in where]
    if not callable(where) or isinstance(where, type):
        return where
    return lambda leaf: not is_array(leaf) and where(leaf)
