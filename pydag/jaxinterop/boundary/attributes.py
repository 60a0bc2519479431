# SPDX-License-Identifier: Apache-2.0
"""Static attributes that a function changes: meta fields, and flags of Flax's modules."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydag._core import PyDagSpec
from pydag.jaxinterop.flax_private import static_attributes
from pydag.jaxinterop.static.leaves import Static
from pydag.structure.listing import Listing, Record


class _Attribute(NamedTuple):
    argument: int  # among those that are updated
    way: tuple[Record, ...]  # from there
    name: str
    value: Any


class Attributes:
    """The new values of static attributes, and the objects that have them.

    Calling this with the arguments of a call writes the values into them, all or none.
    """

    def __init__(self, found: Sequence[_Attribute], spots: Sequence[int | str]) -> None:
        self._found, self._spots = found, spots

    @classmethod
    def of(cls, old: PyDagSpec, new: PyDagSpec, spots: Sequence[int | str]) -> "Attributes | None":
        """The static attributes that differ between two structures; None if anything else differs.

        Args:
            spots: Of the arguments, of which each is a child of the root of both.
        """
        before, after = Listing.of(old), Listing.of(new)
        if len(before.records) != len(after.records):
            return None
        found = []
        for position, (one, other) in enumerate(zip(before.records, after.records, strict=True)):
            if _shape(one) != _shape(other):
                return None
            attributes, were = _attributes(other), _attributes(one)
            if attributes is None or were is None or attributes.keys() != were.keys():
                if Static(one.detail) != Static(other.detail):
                    return None
                continue
            first, *steps = before.way(position) or [0]
            argument = before.children(0).index(first) if position else 0
            for name, value in attributes.items():
                if Static(value) != Static(were[name]):
                    way = tuple(before.records[step] for step in steps)
                    found.append(_Attribute(argument, way, name, value))
        return cls(found, spots) if found else None

    def __call__(self, arguments: tuple[Any, Any]) -> None:
        todo = [(self._object(arguments, a), a.name, a.value) for a in self._found]
        undo = [(node, name, _held(node, name)) for node, name, _ in todo]
        try:
            for node, name, value in todo:
                object.__setattr__(node, name, value)
        except BaseException:
            for node, name, value in undo:
                object.__setattr__(node, name, value)
            raise

    def _object(self, arguments: tuple[Any, Any], attribute: _Attribute) -> Any:
        args, kwargs = arguments
        spot = self._spots[attribute.argument]
        node = args[spot] if isinstance(spot, int) else kwargs[spot]
        for step in attribute.way:
            node = _held(node, step.attribute) if step.attribute is not None else node[step.entry]
        return node


def _held(node: Any, name: str) -> Any:
    try:
        return object.__getattribute__(node, name)
    except AttributeError:
        return getattr(node, name)


def _shape(record: Record) -> tuple[Any, ...]:
    return record.kind, record.number, record.num_children, Static(record.entry), record.type


def _attributes(record: Record) -> dict[str, Any] | None:
    """The static attributes of an object by name; None for an object without any to write."""
    if record.kind == "fields":
        return dict(record.detail)
    return static_attributes(record.detail) if record.kind == "custom type" else None
