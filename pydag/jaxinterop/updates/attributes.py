# SPDX-License-Identifier: Apache-2.0
"""What is static and part of a structure, and what a function changes of it.

These are meta fields, flags of Flax's modules, metadata of its Variables, and what is static in a
`Dag`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from pydag._core import PyDagSpec
from pydag.jaxinterop.foreign.flax_private import (
    metadata_of,
    replace_metadata,
    static_attributes,
)
from pydag.jaxinterop.messages.roots import Roots, position_text
from pydag.jaxinterop.packed.changed import static_fields
from pydag.jaxinterop.packed.dag import Dag
from pydag.jaxinterop.packed.writers import write_dag
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.untraced import Untraced
from pydag.structure.listing import Listing, Record
from pydag.typing import Leaf

from .ways import Step, follow, held, way_to

Undo = Callable[[], None]


class _Attribute(NamedTuple):
    name: str
    value: Any

    def write(self, node: Any) -> Undo:
        before = held(node, self.name)
        object.__setattr__(node, self.name, self.value)
        return partial(object.__setattr__, node, self.name, before)


class _Metadata(NamedTuple):
    """What is said about what a Variable of NNX holds."""

    value: dict[str, Any]

    def write(self, variable: Any) -> Undo:
        before = replace_metadata(variable, self.value)

        def undo() -> None:
            replace_metadata(variable, before)

        return undo


class _StaticOfDag(NamedTuple):
    """What is static in a Dag."""

    untraced: Untraced

    def write(self, dag: Dag) -> Undo:
        before, leaves = dag._take_apart()
        _write_static(dag, self.untraced, leaves)
        return partial(_write_static, dag, before, leaves)


def _write_static(dag: Dag, untraced: Untraced, leaves: Sequence[Leaf]) -> None:
    then = Attributes.of(dag.spec, untraced.spec)
    write_dag(dag, untraced, leaves, then)


_Change = _Attribute | _Metadata | _StaticOfDag


class Attributes:
    """The new values of what is static, and the ways to the objects that have them.

    Calling this with the tree (the arguments of a call) writes the values into it, all or none.
    """

    def __init__(
        self,
        found: Sequence[tuple[Sequence[Step], _Change]],
        spots: Sequence[int | str] | None,
        namespace: str,
    ) -> None:
        self._found, self._spots, self._namespace = found, spots, namespace

    @classmethod
    def of(
        cls, old: PyDagSpec, new: PyDagSpec, spots: Sequence[int | str] | None = None
    ) -> "Attributes | None":
        """What is static and differs between two structures; None if anything else differs.

        Args:
            spots: Of the arguments of a call, which are the children of the root of both. Without
                them the structures are those of the tree itself.
        """
        before, after = Listing.of(old), Listing.of(new)
        if len(before.records) != len(after.records):
            return None
        found = []
        for position, (one, other) in enumerate(zip(before.records, after.records, strict=True)):
            changes = _changes(one, other)
            if changes is None:
                return None
            if changes:
                way = way_to(before, position)
                found += [(way, change) for change in changes]
        return cls(found, spots, old.namespace)

    def __call__(self, tree: Any) -> None:
        if self._spots is not None:
            args, kwargs = tree
            tree = [args[s] if isinstance(s, int) else kwargs[s] for s in self._spots]
        todo = [(follow(tree, way, self._namespace), change) for way, change in self._found]
        undo: list[Undo] = []
        try:
            for node, change in todo:
                undo.append(change.write(node))
        except BaseException:
            for put_back in reversed(undo):
                put_back()
            raise


def _changes(one: Record, other: Record) -> Sequence[_Change] | None:
    """What is static and differs between two nodes; None if anything else differs."""
    if _shape(one) != _shape(other):
        return None
    if type(one.detail) is Untraced and type(other.detail) is Untraced:
        return _changes_of_dags(one.detail, other.detail)
    if Static(one.detail) == Static(other.detail):
        return ()
    metadata = None if one.kind != "custom type" else metadata_of(other.type, other.detail)
    if metadata is not None:
        return [_Metadata(metadata)]
    now, were = static_fields(other), static_fields(one)
    if now is None or were is None or now.keys() != were.keys():
        return None
    return [_Attribute(k, v) for k, v in now.items() if Static(v) != Static(were[k])]


def _changes_of_dags(one: Untraced, other: Untraced) -> Sequence[_StaticOfDag] | None:
    if one.content == other.content:
        return ()
    if one.positions != other.positions or one.options != other.options:
        return None
    return None if Attributes.of(one.spec, other.spec) is None else [_StaticOfDag(other)]


def _shape(record: Record) -> tuple[Any, ...]:
    return record.kind, record.number, record.num_children, Static(record.entry), record.type


def other_attributes(old: PyDagSpec, new: PyDagSpec, roots: Roots) -> str | None:
    """Which attributes a module of NNX has in one of two structures alone, where they differ first.

    None where something else differs. `explain` would show all that is static in the module.
    """
    before, after = Listing.of(old), Listing.of(new)
    for position, (one, other) in enumerate(zip(before.records, after.records, strict=False)):
        had, has = _names(before, position), _names(after, position)
        if one.type is other.type and had and has and had != has:
            name = f"{one.type.__module__}.{one.type.__qualname__}"
            where = position_text(before, position, roots)
            first, second = _only_here(had - has), _only_here(has - had)
            return f"{where}\n  first:  {name}{first}\n  second: {name}{second}"
        if _shape(one) != _shape(other):
            return None
    return None


def _names(listing: Listing, position: int) -> set[str]:
    """The attributes of a module of NNX; empty for other nodes."""
    record = listing.records[position]
    static = static_attributes(record.detail) if record.kind == "custom type" else None
    if static is None:
        return set()
    return {*static, *(str(listing.records[child].entry) for child in listing.children(position))}


def _only_here(names: set[str]) -> str:
    return f", only here: {', '.join(f'.{name}' for name in sorted(names))}" if names else ""
