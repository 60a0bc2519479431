# SPDX-License-Identifier: Apache-2.0
"""The structure of a DAG as `pydag.jaxinterop.tree` has it: all but the data."""

from collections.abc import Iterable
from typing import Any

from pydag._core import PyDagSpec
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.numbers import with_arrays
from pydag.typing import Dag, Leaf

from .rests import leaves_of_rest


class Structure:
    """All of a DAG but its data: containers and classes, their order, sharing, configuration.

    Made by `structure` and `flatten`. Two are equal if and only if `pydag.jaxinterop.jit` need not
    compile anew for the structure's sake. Hashable; to be pickled, configuration has to be.
    """

    __slots__ = ("_content",)

    def __init__(self, content: Content) -> None:
        self._content = content

    @property
    def spec(self) -> PyDagSpec:
        """The structure to pydag's other functions, to which configuration is leaves."""
        return self._content.spec

    @property
    def num_leaves(self) -> int:
        """How many distinct leaves there are: data alone."""
        return self.spec.num_leaves - len(self._content.positions)

    def unflatten(self, leaves: Iterable[Leaf], /) -> Dag:
        """A DAG of this structure with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"the structure has {self.num_leaves} leaves, and {len(leaves)} were given: {self}"
            )
        return self._content.build(with_arrays(self._content, leaves))

    def flatten_up_to(self, tree: Dag, /) -> list[Any]:
        """What a tree has in the place of each leaf; None where it has nothing."""
        return leaves_of_rest(self._content, tree, "the tree")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Structure):
            return NotImplemented
        return self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def __repr__(self) -> str:
        return f"Structure({self._content!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Structure, (self._content,)
