# SPDX-License-Identifier: Apache-2.0
"""Leaves on their way through JAX, with what JAX doesn't trace beside them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from jax import tree_util

from pydag.jaxinterop.refs.access import new_ref
from pydag.jaxinterop.refs.results import ARRAY, Sources, with_refs
from pydag.jaxinterop.refs.table import NO_REFS, RefTable
from pydag.jaxinterop.static.paths import paths_of
from pydag.jaxinterop.static.untraced import Untraced
from pydag.jaxinterop.structure.groups import in_order
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

T = TypeVar("T")


class UntracedResult(NamedTuple):
    """What JAX doesn't trace of a result.

    Args:
        untraced: The untraced part of the result.
        sources: Where its traced leaves come from, where refs are among them.
        groups: In which group each of them is; None where the leaves are all together.
    """

    untraced: Untraced
    sources: Sources | None = None
    groups: tuple[int, ...] | None = None

    def names(self, group: int | None) -> list[str]:
        """The paths of the leaves in a group."""
        paths = self._of_leaves(paths_of(self.untraced))
        if group is None:
            return paths
        return [path for path, own in zip(paths, self.order(), strict=True) if own == group]

    def order(self) -> list[int]:
        """The group of each leaf."""
        return self._of_leaves(self.groups or ())

    def _of_leaves(self, items: Sequence[T]) -> list[T]:
        """Of items for all traced leaves those for leaves that JAX returns."""
        sources = self.sources or [ARRAY] * len(items)
        return [item for item, source in zip(items, sources, strict=True) if source < 0]


class Packed:
    """A pytree of leaves, or of groups of them, and something that JAX compares and hashes.

    Args:
        leaves: What JAX traces; where there is no content, a shell with the content, and groups.
        content: The names of the leaves, or what gives them; anything where there are no leaves.
        group: Which of several groups this is.
    """

    __slots__ = ("content", "group", "leaves")

    def __init__(self, leaves: Iterable[Any], content: Any = None, group: int | None = None):
        self.leaves, self.content, self.group = tuple(leaves), content, group

    def names(self) -> Sequence[str]:
        """What JAX calls the leaves: their paths, without what it would write before these."""
        if self.content is None or not self.leaves:
            return [""] * len(self.leaves)
        found: Sequence[str] = (
            self.content if type(self.content) is tuple else self.content.names(self.group)
        )
        return found

    @property
    def tree(self) -> AnyDag:
        """The result, put together."""
        return self.fill(())

    def fill(
        self,
        given: Sequence[Leaf],
        make: Callable[[Any], Any] = new_ref,
        table: RefTable = NO_REFS,
    ) -> AnyDag:
        """The result for a caller with these leaves, put together.

        Args:
            make: Makes a ref of a content.
            table: The refs for which there are numbers.
        """
        content, leaves = self.content, self.leaves
        if content is None:
            shell, *parts = leaves
            content = shell.content
            leaves = tuple(in_order((part.leaves for part in parts), content.order()))
        untraced = table.shown(content.untraced)
        return untraced.build(with_refs(leaves, content.sources, given, make))


tree_util.register_pytree_with_keys(
    Packed,
    lambda packed: (
        tuple(zip(packed.names(), packed.leaves, strict=True)),
        (packed.content, packed.group),
    ),
    lambda aux, leaves: Packed(leaves, *aux),
    lambda packed: (packed.leaves, (packed.content, packed.group)),
)
