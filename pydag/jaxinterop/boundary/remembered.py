# SPDX-License-Identifier: Apache-2.0
"""What JAX built a tree from, where flattening the tree would give something else.

By the law of pytrees a tree that JAX built has the structure that it was built from, whatever the
leaves are: one array at all places, text, None, trees. Its owner may change it afterwards, and then
it has the structure that it has.
"""

from collections.abc import Sequence
from operator import is_
from typing import NamedTuple

from pydag._core import SpecKey, one_of_each_class, spec_key
from pydag.errors import SharingError
from pydag.jaxinterop.static.leaves import is_number, untraced_among
from pydag.jaxinterop.static.positions import static_positions
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.typing import Dag, Leaf


def may_hide(leaves: Sequence[Leaf]) -> bool:
    """Whether a tree with these leaves may flatten to others: not if they are distinct arrays."""
    if len(set(map(id, leaves))) < len(leaves):
        return True
    return any(map(is_number, one_of_each_class(leaves).values())) or bool(untraced_among(leaves))


class _Look(NamedTuple):
    """What a tree looks like when it is flattened; no key where that fails."""

    spec_key: SpecKey | None
    leaves: Sequence[Leaf]

    @classmethod
    def at(cls, tree: Dag, options: Options) -> "_Look":
        try:
            leaves, spec = options.flatten(tree)
        except Exception:  # a new leaf can't be opened, or the code of a class refuses
            return cls(None, ())
        return cls(spec_key(spec), leaves)

    def is_like(self, other: "_Look") -> bool:
        """Whether the same objects stand in the same structure."""
        return (
            self.spec_key == other.spec_key
            and len(self.leaves) == len(other.leaves)
            and all(map(is_, self.leaves, other.leaves))
        )


def _positions(look: _Look, options: Options) -> tuple[int, ...] | None:
    """The positions of its static leaves; None where that can't be told."""
    if look.spec_key is None:
        return None
    leaves, spec = look.leaves, look.spec_key.spec
    try:
        return static_positions(leaves, spec, selected=options.selected(leaves, spec, "tree"))
    except (SharingError, ValueError):
        return None


class Remembered(NamedTuple):
    """The structure and the leaves that a tree was built from, and what it looked like then."""

    untraced: Untraced
    leaves: Sequence[Leaf]
    look: _Look

    @classmethod
    def of(cls, tree: Dag, untraced: Untraced, leaves: Sequence[Leaf]) -> "Remembered | None":
        """What has to be remembered of a tree; None if flattening it gives the same."""
        look = _Look.at(tree, untraced.options)
        built = _Look(untraced.spec_key, untraced.all_leaves(leaves))
        if look.is_like(built) and _positions(look, untraced.options) == untraced.positions:
            return None
        return cls(untraced, leaves, look)

    @classmethod
    def as_it_is(cls, tree: Dag, untraced: Untraced, leaves: Sequence[Leaf]) -> "Remembered":
        """Remembers that a tree, as it looks now, has this structure and these leaves."""
        return cls(untraced, leaves, _Look.at(tree, untraced.options))

    def holds(self, tree: Dag) -> bool:
        """Whether the tree still is as it was built."""
        return self.look.is_like(_Look.at(tree, self.untraced.options))
