# SPDX-License-Identifier: Apache-2.0
"""The places of arrays: here an array at two places counts as two. A node counts as one."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pydag._core import PyDagSpec
from pydag.jaxinterop.static.untraced import Untraced
from pydag.structure.apart import apart
from pydag.structure.listing import Listing
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf


class Places(NamedTuple):
    """The places of the leaves of a structure.

    Args:
        spec: A structure in which each place of an array has a leaf of its own.
        leaves: For each of these leaves, which leaf of the tree's own structure stands there.
    """

    spec: PyDagSpec
    leaves: tuple[int, ...]

    @classmethod
    def of(cls, spec: PyDagSpec) -> "Places | None":
        """The places in a structure; None if each leaf has only one."""
        if not spec.num_shared:
            return None
        listing = Listing.of(spec)

        def place(_: int, __: Any, children: Sequence[int]) -> list[int]:
            """That of a leaf; -1 for a node."""
            return [c if listing.target(c) in listing.leaf_numbers else -1 for c in children]

        found = apart(listing, spec, -1, place)
        if len(found.leaves) == spec.num_leaves:
            return None  # all that is shared is nodes
        return cls(found.spec, tuple(found.leaves))

    def build(self, leaves: Sequence[Leaf], again: Callable[[Leaf], Leaf]) -> AnyDag:
        """A tree with these leaves.

        Args:
            leaves: All, static ones too.
            again: Makes of a leaf what stands at its further places.
        """
        seen: set[int] = set()
        placed = []
        for number in self.leaves:
            placed.append(again(leaves[number]) if number in seen else leaves[number])
            seen.add(number)
        return self.spec.unflatten(placed)

    def sums(self, tree: AnyDag, untraced: Untraced) -> list[Leaf]:
        """For each traced leaf the sum of what a tree has at its places; None counts as zero.

        Raises:
            ValueError: The tree is structured in another way.
        """
        found: dict[int, Any] = dict.fromkeys(untraced.traced_positions())
        for number, part in zip(self.leaves, self.spec.flatten_up_to(tree), strict=True):
            if number not in found:
                continue
            known = found[number]
            found[number] = part if known is None else known if part is None else known + part
        return list(found.values())
