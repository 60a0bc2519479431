# SPDX-License-Identifier: Apache-2.0
"""The structure of a DAG as `pydag.jaxinterop.tree` has it, and what other trees have in its place.

None fits everywhere: in a further tree it says that there is nothing for all that lies below; in
the first one, that nothing is wanted. Configuration isn't compared.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.help import with_wrapper_options
from pydag.public.tracebacks import short_tracebacks
from pydag.structure.listing import MAPPINGS, Listing, Record, Walk
from pydag.structure.text import short_repr
from pydag.typing import Dag, IsLeaf, Leaf


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Structure:
    """All of a DAG but its data: containers and classes, their order, sharing, configuration.

    Made by `structure` and `flatten`. Two are equal if and only if `pydag.jaxinterop.jit` need not
    compile anew for the structure's sake. Hashable; to be pickled, configuration has to be.
    """

    _content: Content

    @property
    def spec(self) -> _core.PyDagSpec:
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

    def __repr__(self) -> str:
        return f"Structure({self._content!r})"


@with_wrapper_options
def structure(tree: Dag, is_leaf: IsLeaf | None = None) -> Structure:
    """All of a DAG but its data: what a call by `pydag.jaxinterop.jit` is compiled for.

    Two structures are equal if and only if such a call would not compile anew for their sake:
    classes, order, sharing and configuration count. A structure can be hashed.

    >>> w = jnp.ones(2)
    >>> structure([w, w]) == structure([w, jnp.ones(2)])
    False
    """
    return Structure(take_apart(tree, is_leaf=is_leaf)[1])


def unflatten(treedef: Structure, leaves: Iterable[Leaf]) -> Dag:
    """A DAG of a structure, with these leaves.

    Args:
        treedef: What `structure` or `flatten` gave.
        leaves: As many as it has.

    Raises:
        ValueError: There are more of them, or fewer.

    >>> w = jnp.ones(2)
    >>> tree = unflatten(structure({"a": w, "b": w, "n": "net"}), [jnp.zeros(2)])
    >>> tree["a"] is tree["b"], tree["n"]
    (True, 'net')
    """
    return treedef.unflatten(leaves)


@short_tracebacks
def transpose(
    outer_treedef: Structure, inner_treedef: Structure | None, pytree_to_transpose: Dag
) -> Any:
    """A DAG of DAGs turned inside out.

    Args:
        outer_treedef: What stands outside in the tree, and inside in the result.
        inner_treedef: What stands at each leaf of it; None: taken from the first leaf.
        pytree_to_transpose: The tree.

    Raises:
        ValueError: The tree isn't structured so.

    >>> pairs = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    >>> transpose(structure({"a": 0.0, "b": 0.0}), structure([0.0, 0.0]), pairs)
    [{'a': 1.0, 'b': 3.0}, {'a': 2.0, 'b': 4.0}]
    """
    rows = outer_treedef.flatten_up_to(pytree_to_transpose)
    if inner_treedef is None:
        if not rows:
            raise ValueError("transpose: inner_treedef must be given where the outer has no leaves")
        inner_treedef = structure(rows[0])
    columns: Iterable[Any] = [()] * inner_treedef.num_leaves
    if rows:
        columns = zip(*map(inner_treedef.flatten_up_to, rows), strict=True)
    return inner_treedef.unflatten(map(outer_treedef.unflatten, columns))


def rows_of(
    content: Content, found: Iterable[Leaf], rest: tuple[Dag, ...]
) -> list[tuple[Leaf, tuple[Any, ...], bool]]:
    """For each leaf what the further trees have there, and whether one of them has nothing."""
    columns = [_leaves_of_rest(content, tree, f"rest[{i}]") for i, tree in enumerate(rest)]
    return [
        (leaf, tuple(row), leaf is not None and any(x is None for x in row))
        for leaf, *row in zip(found, *columns, strict=True)
    ]


def _leaves_of_rest(content: Content, rest: Dag, what: str) -> list[Leaf]:
    """What a tree has in the place of each piece of data; None where it has nothing."""
    try:
        return list(content.match(rest, "rest"))
    except ValueError as error:
        found = None if isinstance(error, SharingError) else _found(content, rest, what)
        if found is None:
            raise
        return found


def _found(content: Content, rest: Dag, what: str) -> list[Leaf] | None:
    """The same; None if the trees differ in more than a None on one side."""
    listing, namespace = Listing.of(content.spec), content.spec.namespace
    answers: dict[int, Leaf] = {}
    static = {listing.leaves[i] for i in content.positions}
    walk = Walk[tuple[int, Any]]([(0, rest)], key=lambda pair: (pair[0], id(pair[1])))
    for position, value in walk:
        record = listing.records[position]
        if record.is_leaf:
            known = answers.setdefault(position, value)
            is_number = type(known) is type(value) and isinstance(value, int | float | complex)
            if position in static or known is value or (is_number and known == value):
                continue
            paths = [listing.path_text(slot, "tree") for slot in listing.slots_of(position)[:2]]
            raise SharingError(
                f"{what} gives one object two answers\n"
                f"  tree: {' and '.join(paths)} {'are' if len(paths) > 1 else 'is'} one object\n"
                f"  {what}: it has {short_repr(known)} and {short_repr(value)} there\n"
                "  Give the object one answer at all of its paths, or untie it first (pydag.untie)."
            )
        if value is None:
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
