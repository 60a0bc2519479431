# SPDX-License-Identifier: Apache-2.0
"""The options that wrappers have in common: how a tree is taken apart."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.ops.select import is_prefix, select
from pydag.public.hints import raise_unexpected
from pydag.structure.text import short_repr
from pydag.typing import Dag, Identity, IsLeaf, Leaf, Where

from .leaves import is_array
from .paths import CALL, Roots


class Options(NamedTuple):
    """How a tree is taken apart."""

    namespace: str = ""
    identity: Identity = "all"
    static: Where | None = None  # which leaves are static beside those that have to be

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Options":
        """The options that a wrapper was given by keyword.

        Raises:
            TypeError: It has no such option.
        """
        for name in given.keys() - cls._fields:
            raise_unexpected(name)
        return cls(**given)

    def flatten(
        self, tree: Dag, roots: Roots = "tree", is_leaf: IsLeaf | None = None
    ) -> tuple[list[Leaf], PyDagSpec]:
        """The distinct leaves of a tree, and its structure."""
        return _core.flatten_at(
            tree, roots, is_leaf=is_leaf, namespace=self.namespace, identity=self.identity
        )

    def selected(
        self, leaves: Sequence[Leaf], spec: PyDagSpec, roots: Roots, is_result: bool
    ) -> list[int]:
        """The positions of the leaves that `static=` selects; of a result, no arrays.

        Raises:
            TypeError: It is a tree prefix.
        """
        if _is_tree(self.static, self.namespace):
            raise TypeError(
                f"static= takes classes, predicates and patterns, got {short_repr(self.static)}\n"
                '  Select by path, such as static="*.config", or name whole arguments by '
                "static_argnums."
            )
        flags = self._flags(leaves, spec, roots)
        return [
            i for i, flag in enumerate(flags) if flag and not (is_result and is_array(leaves[i]))
        ]

    def check_selects(self, tree: Dag, roots: Roots = CALL) -> None:
        """Checks that `static=`, where it is given, selects something of a tree.

        Raises:
            ValueError: It doesn't, and there are leaves.
        """
        if self.static is None:
            return
        leaves, spec = self.flatten(tree, roots)
        if leaves and not any(self._flags(leaves, spec, roots, must_match=True)):
            raise ValueError(
                f"static= selects none of {len(leaves)} leaves: {short_repr(self.static)}\n"
                "  A predicate is asked about each leaf that is no array; a class is that of "
                "leaves, or of what holds them. Leave it out where nothing is static."
            )

    def has_predicate(self) -> bool:
        """Whether `static=` has a predicate, whose answer may be another one for each number."""
        given = [self.static]
        for where in given:  # lists of lists grow it
            given += where if type(where) is list else []
        return any(callable(where) and not isinstance(where, type) for where in given)

    def _flags(
        self, leaves: Sequence[Leaf], spec: PyDagSpec, roots: Roots, must_match: bool = False
    ) -> list[bool]:
        """What `static=` selects; predicates are asked about what could be static."""
        assert self.static is not None
        return select(
            *(self.static, spec, leaves, self.namespace),
            asked=lambda leaves, _: [not is_array(leaf) for leaf in leaves],
            # Patterns are compared with paths that begin so many levels below the root.
            depth=0 if isinstance(roots, str) else 2 if roots == CALL else 1,
            roots=roots,
            must_match=must_match,
        )

    def key(self) -> Hashable:
        """These options as a part of a key."""
        return self.namespace, self.identity, hashable(self.static)


def hashable(given: Any) -> Hashable:
    """An option as a part of a key; what can't be hashed counts by identity."""
    if isinstance(given, dict):
        return tuple(sorted((name, hashable(item)) for name, item in given.items()))
    if isinstance(given, list | tuple):
        return type(given), *map(hashable, given)
    try:
        hash(given)
    except TypeError:
        return id(given)  # whatever is made for the key owns it
    return type(given), given


def _is_tree(where: Any, namespace: str) -> bool:
    """Whether a selection, or one in a list of them, is a tree of booleans."""
    if is_prefix(where, namespace):
        return True
    return type(where) is list and any(_is_tree(item, namespace) for item in where)
