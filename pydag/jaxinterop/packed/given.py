# SPDX-License-Identifier: Apache-2.0
"""The tree that a wrapper builds for a function, and what the function has changed in it.

The function gets objects of its own, built from leaves, which it may change. Afterwards the tree is
flattened again: if the structure and the leaves are the same objects, nothing changed. That costs
nanoseconds a leaf.
"""

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any

from pydag.jaxinterop.messages.roots import CALL, Roots
from pydag.jaxinterop.static.untraced import Untraced
from pydag.structure.listing import Listing
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .changed import Changed

_NODES_OF_CALL = 3  # (args, kwargs), and both of these


class GivenTree:
    """A tree that a function gets.

    Args:
        untraced: Of the tree.
        traced: Its traced leaves.
        roots: What the user calls the tree.
    """

    __slots__ = ("_listing", "leaves", "roots", "tree", "untraced")

    def __init__(self, untraced: Untraced, traced: Iterable[Leaf], roots: Roots) -> None:
        self.untraced, self.roots = untraced, roots
        self.leaves: Sequence[Leaf] = untraced.all_leaves(traced)
        self.tree: AnyDag = untraced.build_of(self.leaves)
        self._listing: Listing | None = None

    @property
    def listing(self) -> Listing:
        """The listing of the tree as it was given."""
        if self._listing is None:
            self._listing = Listing.of(self.untraced.spec)
        return self._listing

    def changed(self, must_flatten: bool = False) -> Changed | None:
        """What the function has changed; None if nothing.

        Args:
            must_flatten: Whether it is an error that the function put something there which can't
                be flattened, such as the tree itself.
        """
        known = self.untraced.spec_key.spec
        if known.num_nodes - known.num_leaves <= (_NODES_OF_CALL if self.roots is CALL else 0):
            return None  # no object that could be changed
        try:
            leaves, spec = self.untraced.options.flatten(self.tree, self.roots)
        except Exception:
            if must_flatten:
                raise
            return None
        if spec == known and all(map(is_, leaves, self.leaves)):
            return None
        changed = Changed(self, leaves, spec)
        return changed if changed.is_real() else None

    def arguments(self) -> Sequence[Any]:
        """The arguments, where the tree is `(args, kwargs)`; else the tree, as the only one."""
        if self.roots is not CALL:
            return [self.tree]
        args, kwargs = self.tree
        return [*args, *kwargs.values()]
