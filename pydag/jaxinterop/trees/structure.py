# SPDX-License-Identifier: Apache-2.0
"""The structure of a DAG as `pydag.jaxinterop.tree` has it, and what other trees have in its place.

None fits everywhere: in a further tree it says that there is nothing for all that lies below; in
the first one, that nothing is wanted. Configuration isn't compared.
"""

from collections.abc import Iterable
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.content.content import Content
from pydag.structure.kinds import MAPPINGS
from pydag.structure.listing import Listing, Record
from pydag.structure.text import short_repr
from pydag.structure.walk import Walk
from pydag.typing import Dag, Leaf


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
        return self._content.build_mapped(leaves)

    def flatten_up_to(self, tree: Dag, /) -> list[Any]:
        """What a tree has in the place of each leaf; None where it has nothing."""
        return _leaves_of_rest(self._content, tree, "the tree")

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


def rows_of(
    content: Content, found: Iterable[Leaf], rest: tuple[Dag, ...]
) -> list[tuple[Leaf, tuple[Any, ...], bool]]:
    """For each leaf what the further trees have there, and whether one of them has nothing."""
    columns = [_leaves_of_rest(content, tree, f"rest[{i}]") for i, tree in enumerate(rest)]
    rows = zip(*columns, strict=True) if columns else (() for _ in found)
    return [
        (leaf, row, leaf is not None and any(x is None for x in row))
        for leaf, row in zip(found, rows, strict=True)
    ]


def _leaves_of_rest(content: Content, rest: Dag, what: str) -> list[Leaf]:
    """What a tree has in the place of each piece of data; None where it has nothing."""
    try:
        return list(content.match(rest, "rest"))
    except SharingError:
        raise
    except ValueError:
        found = _found(content, rest, what)
        if found is None:
            raise
    return found


def _found(content: Content, rest: Dag, what: str) -> list[Leaf] | None:
    """As `matched`; None if the trees differ in more than a None on one side."""
    listing, namespace = Listing.of(content.spec), content.spec.namespace
    answers: dict[int, Leaf] = {}
    static = {listing.leaves[i] for i in content.positions}
    walk = Walk[tuple[int, Any]]([(0, rest)], key=lambda pair: (pair[0], id(pair[1])))
    for position, value in walk:
        record = listing.records[position]
        if record.is_leaf:
            known = answers.setdefault(position, value)
            if position not in static and not _is_same(known, value):
                raise _two_answers(listing, position, known, value, what)
        elif value is None:
            walk.add([(listing.target(child), None) for child in listing.children(position)])
        elif record.kind != "None":
            children = _children(value, record, namespace)
            positions = listing.children(position)
            entries = [listing.records[child].entry for child in positions]
            if children is None or set(children) != set(entries):
                return None
            pairs = zip(map(listing.target, positions), entries, strict=True)
            walk.add([(place, children[entry]) for place, entry in pairs])
    return [answers[listing.leaves[i]] for i in content.traced_positions()]


def _children(value: Any, record: Record, namespace: str) -> dict[Any, Any] | None:
    """The children of a node by entry, if it is such a node."""
    if _core.is_leaf(value, namespace=namespace):
        return None
    children, entries, spec = _core.open_one_level(value, namespace=namespace)
    own = Listing.of(spec).records[0]
    is_alike = own.fits(record) and (own.kind in MAPPINGS or own.detail == record.detail)
    return dict(zip(entries, children, strict=True)) if is_alike else None


def _is_same(a: Leaf, b: Leaf) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, (int, float, complex)) and a == b)


def _two_answers(
    listing: Listing, position: int, first: Leaf, second: Leaf, what: str
) -> SharingError:
    paths = [listing.path_text(slot, "tree") for slot in listing.slots_of(position)[:2]]
    return SharingError(
        f"{what} gives one object two answers\n"
        f"  tree: {' and '.join(paths)} {'are' if len(paths) > 1 else 'is'} one object\n"
        f"  {what}: it has {short_repr(first)} and {short_repr(second)} there\n"
        "  Give the object one answer at all of its paths, or untie it first (pydag.untie)."
    )
