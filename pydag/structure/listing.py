# SPDX-License-Identifier: Apache-2.0
"""A structure as a list of records, one for each node, for views, files and selectors.

The core makes the list (`PyDagSpec._listing`); nothing here inspects an object of the user.
"""

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, Self, TypeVar

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.typing import Path


class Record(NamedTuple):
    """A node. If its class is known only by name (from a file), `type` is that name."""

    kind: str
    number: int  # for an anchor its own, for an alias its anchor's; else -1
    num_children: int
    entry: Any  # in the parent
    attribute: str | None  # the name, where the entry is an attribute
    type: Any  # the class of a node; None for leaves and aliases
    detail: Any  # aux_data, (name, value) of the meta fields, a factory, maxlen

    @property
    def is_leaf(self) -> bool:
        """Whether this is a leaf, at its anchor."""
        return self.kind == "leaf"

    @property
    def is_alias(self) -> bool:
        """Whether this is a later occurrence of a shared object."""
        return self.kind == "alias"

    def fits(self, other: "Record") -> bool:
        """Whether two nodes have the same class and number of children. All mappings count as one.

        Keys of mappings and other content besides children aren't compared.
        """
        if self.num_children != other.num_children:
            return False
        if self.kind in MAPPINGS and other.kind in MAPPINGS:
            return True
        has_one_class = self.type is other.type or (
            isinstance(self.type, str) and self.type == other.type
        )
        return self.kind == other.kind and has_one_class


def shorten(text: str, longest: int = 400) -> str:
    """The text, without its middle if it is long."""
    if len(text) <= longest:
        return text
    half = (longest - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def step_text(record: Record) -> str:
    """The step from the parent to this node as Python text: `.name` or `[entry]`."""
    return _core.step_text(record.entry, record.attribute)


class Listing:
    """The records of a structure, and how they are connected. A position is a record's index."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        # `ends`: where the subtree of each node ends; `slots`: of each shared object, its anchor
        # first; `_closed`: the nodes in the order in which they end.
        self.parents, self.ends, self._closed, self.slots, self.leaves = _core.connections(records)

    @classmethod
    def of(cls, spec: PyDagSpec) -> "Listing":
        """The listing of a spec."""
        return cls(spec._listing(Record))

    @functools.cached_property
    def targets(self) -> dict[int, int]:
        """The position of the anchor of each alias."""
        return {alias: slots[0] for slots in self.slots for alias in slots[1:]}

    def target(self, position: int) -> int:
        """For an alias the position of its anchor; for any other node its own position."""
        return self.targets.get(position, position)

    def children(self, position: int) -> list[int]:
        """The positions of a node's children."""
        found = []
        child = position + 1
        for _ in range(self.records[position].num_children):
            found.append(child)
            child = self.ends[child]
        return found

    @functools.cached_property
    def leaf_numbers(self) -> dict[int, int]:
        """The number of the leaf at each position that has one."""
        return {position: i for i, position in enumerate(self.leaves)}

    def leaves_below(self, *positions: int) -> list[int]:
        """The numbers of the leaves at and below some positions, in first-visit order."""
        found: list[int] = []
        walk = Walk(map(self.target, positions))
        for position in walk:
            if position in self.leaf_numbers:
                found.append(self.leaf_numbers[position])
            walk.add([self.target(child) for child in self.children(position)])
        return found

    def named_children(self, position: int) -> dict[Any, int]:
        """The position of each child, by its key or field name; empty for other kinds of node."""
        if self.records[position].kind not in NAMED:
            return {}
        return {self.records[child].entry: child for child in self.children(position)}

    def slots_of(self, position: int) -> tuple[int, ...]:
        """The slots that hold a node, its own first."""
        number = self.records[position].number
        return (position,) if number < 0 else self.slots[number]

    def way(self, position: int) -> list[int]:
        """The positions on the way from the root to a node, through anchors."""
        found = []
        while position > 0:
            found.append(position)
            position = self.parents[position]
        return found[::-1]

    def path(self, position: int) -> Path:
        """The entries on the way from the root to a node, through anchors."""
        return tuple(self.records[step].entry for step in self.way(position))

    def path_text(self, position: int, root: str = "") -> str:
        """This path as Python text."""
        return root + "".join(step_text(self.records[step]) for step in self.way(position))

    def follow(self, path: Path) -> list[int]:
        """The positions of the nodes along a path, from the root on; of anchors, not of aliases."""
        found = [0]
        for entry in path:
            below = self.children(found[-1])
            step = next(child for child in below if self.records[child].entry == entry)
            found.append(self.target(step))
        return found

    def ways(self, position: int) -> Iterator[list[int]]:
        """Every way from the root to a node; the way through anchors comes first.

        There may be astronomically many; each costs its own length.
        """
        # Each entry: a node that must still be reached, and the steps behind it, linked.
        pending: list[tuple[int, Any]] = [(position, None)]
        while pending:
            node, behind = pending.pop()
            if node == 0:
                steps = []
                while behind is not None:
                    step, behind = behind
                    steps.append(step)
                yield steps
                continue
            for slot in reversed(self.slots_of(node)):
                pending.append((self.parents[slot], (slot, behind)))

    def num_ways(self) -> list[int]:
        """How many ways lead to each node; for an alias, how many lead through it."""
        numbers, parents, targets = [0] * len(self.records), self.parents, self.targets
        numbers[0] = 1
        # A node comes after its parent, and an anchor after its aliases.
        for position in reversed(self._closed):
            if position > 0:
                numbers[position] += numbers[parents[position]]
            if position in targets:
                numbers[targets[position]] += numbers[position]
        return numbers


T = TypeVar("T")


class Walk(Generic[T]):
    """Iterates over things, depth first; the loop adds the things below each of them.

    It owns every thing that it has visited, so a key may contain an `id`.

    Args:
        key: Things with equal keys count as one; None: equal things do.
    """

    def __init__(self, first: Iterable[T], key: Callable[[T], Hashable] | None = None) -> None:
        self._key = key
        self._met: dict[Any, T] = {}
        self._waiting: list[T] = []
        self.add(list(first))

    def add(self, below: Sequence[T]) -> None:
        """Visits these next, in their order, and then the things that already wait."""
        self._waiting.extend(reversed(below))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while self._waiting:
            thing = self._waiting.pop()
            key = thing if self._key is None else self._key(thing)
            if key not in self._met:
                self._met[key] = thing
                return thing
        raise StopIteration


class NodeKind(NamedTuple):
    """A kind of node.

    The roles of its references are "keys", "names", "class", "default_factory", "maxlen",
    "registration", "aux_data", "meta" and "entries".
    """

    name: str  # in listings
    roles: tuple[str, ...]
    is_mapping: bool  # all mappings match one another
    has_identity: bool  # False for a value, which can't be shared


NODE_KINDS = tuple(NodeKind._make(row) for row in _core.node_kinds())
MAPPINGS = frozenset(kind.name for kind in NODE_KINDS if kind.is_mapping)
# Their children are found by a key or by the name of a field.
NAMED = frozenset(kind.name for kind in NODE_KINDS if {"keys", "names"} & set(kind.roles))
# The content of these kinds besides children: the last field of a record of a listing.
DETAILS = {
    kind.name: role
    for kind in NODE_KINDS
    for role in kind.roles
    if role in ("aux_data", "default_factory", "maxlen", "meta")
}

named_details: list[Callable[[Any, Any], Sequence[tuple[str, Any]] | None]] = []
"""Each gives the names and values in the aux_data of a class; None for a class it doesn't know.

Where there are none, and no children, a view has no row.
"""
