# SPDX-License-Identifier: Apache-2.0
"""The mechanism of every wrapper: a DAG taken apart into what JAX traces, and all the rest.

What JAX gets is the distinct traced leaves, as a flat sequence. The rest is a `StaticPart`, which
is compared and hashed: structure, sharing, static leaves. A static part and leaves make a DAG
again.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from pydag import SharingError, _core
from pydag._core import PyDagSpec
from pydag._repr import short_repr
from pydag.typing import Dag, Identity, Leaf

from .roots import Roots, say_roots
from .static import Static, static_positions

Picker = Callable[[Sequence[Leaf]], Sequence[Leaf]]


class Options(NamedTuple):
    """How a wrapper flattens."""

    namespace: str = ""
    identity: Identity = "all"

    def flatten(self, tree: Dag, roots: Roots = "tree") -> tuple[list[Leaf], PyDagSpec]:
        """The leaves and the spec of a tree; errors speak of it by the user's names."""
        try:
            return _core.flatten(tree, None, False, self.namespace, self.identity)
        except Exception as error:
            say_roots(error, roots)
            raise

    def leaves(self, tree: Dag) -> list[Leaf]:
        return _core.leaves(tree, None, False, self.namespace, self.identity)


class StaticPart(NamedTuple):
    """A DAG without its traced leaves. Hashable where the static leaves are."""

    spec: PyDagSpec
    positions: tuple[int, ...]  # of the static leaves, among all
    statics: tuple[Static, ...]

    def __repr__(self) -> str:
        """The structure, and in front of each static leaf's value its path, such as `['name']`."""
        structure = repr(self.spec).removeprefix("PyDagSpec(").removesuffix(")")
        if not self.positions:
            return structure
        accessors = self.spec.accessors()
        pairs = zip(self.positions, self.statics, strict=True)
        values = (f"{accessors[i].codify('')}: {short_repr(static.value)}" for i, static in pairs)
        return f"{structure} with {', '.join(values)}"

    def build(self, traced: Iterable[Leaf]) -> Dag:
        """A fresh DAG with these leaves; where JAX puts something else for a leaf, with that."""
        if not self.positions:
            return _core.unflatten(self.spec, traced)
        leaves = list(traced)
        for position, static in zip(self.positions, self.statics, strict=True):
            leaves.insert(position, static.value)
        return _core.unflatten(self.spec, leaves)

    def traced_positions(self) -> list[int]:
        """Where the traced leaves stand, among all."""
        skipped = frozenset(self.positions)
        return [i for i in range(self.spec.num_leaves) if i not in skipped]

    def match(self, tree: Dag, what: str, root: str) -> list[Leaf]:
        """What stands in a tree of this structure at the place of each traced leaf.

        At the places of static leaves there may be anything.

        Args:
            what: Says in an error what the tree is, such as "the cotangent".
            root: Begins the paths in an error, such as "cotangent".

        Raises:
            ValueError: The tree is structured in another way.
            SharingError: It has different objects where this one has one.
        """
        try:
            found = self.spec.flatten_up_to(tree)
        except ValueError as error:
            if not isinstance(error, SharingError):  # that one is about both trees
                say_roots(error, root)
            error.add_note(f"The tree that doesn't fit is {what}.")
            raise
        return [found[i] for i in self.traced_positions()] if self.positions else found


def picker(positions: Sequence[int], count: int) -> Picker:
    """Takes the items at `positions` out of a sequence of length `count`, without a loop."""
    if len(positions) == count:
        return lambda items: items
    if not positions:
        return lambda items: ()
    if len(positions) == positions[-1] - positions[0] + 1:
        span = slice(positions[0], positions[-1] + 1)
        return lambda items: items[span]
    return itemgetter(*positions)


def take_apart(tree: Dag, options: Options) -> tuple[StaticPart, Sequence[Leaf]]:
    """The static part of a DAG and its distinct traced leaves, in first-visit order."""
    leaves, spec = options.flatten(tree)
    positions = static_positions(leaves)
    if not positions:
        return StaticPart(spec, (), ()), leaves
    statics = tuple(Static(leaves[i]) for i in positions)
    skipped = frozenset(positions)
    return StaticPart(spec, positions, statics), [
        x for i, x in enumerate(leaves) if i not in skipped
    ]
