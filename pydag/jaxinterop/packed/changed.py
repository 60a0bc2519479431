# SPDX-License-Identifier: Apache-2.0
"""What a function has changed in a tree that it was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.foreign.flax_private import is_state_of_module, static_attributes
from pydag.jaxinterop.messages.roots import CALL, position_text
from pydag.jaxinterop.static.leaves import Static, is_number, is_traced
from pydag.jaxinterop.static.positions import static_positions
from pydag.jaxinterop.structure.pairing import Pairs, by_entry
from pydag.structure.kinds import MAPPINGS
from pydag.structure.listing import Listing, Record
from pydag.typing import Leaf

if TYPE_CHECKING:
    from .given import GivenTree

_REGISTERED = ("fields", "custom type")
_CONTAINERS = (*MAPPINGS, "list", "deque")


class Written(NamedTuple):
    """A place that a function has changed.

    Args:
        position: Of the place, in the listing of what the tree is now.
        before: The leaf that was there, or None.
        value: What is there now: a leaf, or the number in a static field; None for something that
            was removed, or is no leaf.
        is_array: Whether it is a leaf that JAX traces.
        holder: The position of the object that was changed.
        is_of_module: Whether that is a module, or a container that a module holds.
        name: Of a field or item of the object at `position` that isn't in that listing.
    """

    position: int
    before: Any
    value: Any
    is_array: bool
    holder: int
    is_of_module: bool
    name: str = ""


class Changed:
    """A tree that a function has changed.

    Args:
        given: The tree.
        leaves, spec: Of the tree as it is now.
    """

    def __init__(self, given: GivenTree, leaves: Sequence[Leaf], spec: PyDagSpec) -> None:
        self.given, self.leaves, self.spec = given, leaves, spec

    def is_real(self) -> bool:
        """False if all that differs is that one object was put for several leaves of the tree."""
        try:
            found = self.given.untraced.spec.flatten_up_to(self.given.tree)
        except ValueError:
            return True
        return not all(map(is_, found, self.given.leaves))

    @cached_property
    def listing(self) -> Listing:
        """The listing of the tree as it is now."""
        return Listing.of(self.spec)

    @cached_property
    def objects(self) -> dict[int, Any]:
        """The object at each anchor of the tree as it is now, by its position in the listing."""
        met: list[Any] = []
        options = self.given.untraced.options

        def note(node: Any) -> bool:
            met.append(node)
            return False

        _core.flatten(
            self.given.tree,
            is_leaf=note,
            namespace=options.namespace,
            identity=options.identity,
        )
        anchors = [i for i, record in enumerate(self.listing.records) if not record.is_alias]
        return dict(zip(anchors, met, strict=True))

    def path(self, position: int) -> str:
        """The path of a position in the listing, as Python text."""
        return position_text(self.listing, position, self.given.roots)

    def argument(self, position: int) -> tuple[str, Any] | None:
        """The argument of a call that a position lies in: "args" and its number, or "kwargs".

        None for other trees than the arguments of a call.
        """
        entries = self.listing.path(position)[:2]
        if self.given.roots != CALL or len(entries) < 2:
            return None
        return CALL[entries[0]], entries[1]

    def written(self) -> Iterator[Written]:
        """The changes that matter.

        Anywhere: a leaf that JAX traces, written at a place that existed before. Of modules and
        what they hold, also: new arrays in attributes, numbers that changed, items that were added
        or removed, arrays that were removed.
        """
        return _Comparison(self).written()

    @cached_property
    def static(self) -> frozenset[int]:
        """The positions of static leaves in the listing of the tree as it is now."""
        options, roots = self.given.untraced.options, self.given.roots
        try:
            selected = options.selected(self.leaves, self.spec, roots, is_returned=True)
            found = static_positions(self.leaves, self.spec, roots, selected)
        except ValueError:
            found = tuple(i for i, leaf in enumerate(self.leaves) if not is_traced(leaf))
        return frozenset(self.listing.leaves[i] for i in found)


class _Comparison:
    """A walk over a tree as it was and as it is, in step."""

    def __init__(self, changed: Changed) -> None:
        untraced = changed.given.untraced
        self.before, self.after = changed.given.listing, changed.listing
        self.old = dict(zip(self.before.leaves, changed.given.leaves, strict=True))
        self.new = dict(zip(self.after.leaves, changed.leaves, strict=True))
        were_static = {self.before.leaves[i] for i in untraced.positions}
        self.were_traced = self.old.keys() - were_static
        self.static = changed.static
        self.in_module: dict[int, bool] = {}

    def written(self) -> Iterator[Written]:
        pairs = Pairs(self.before, self.after)
        for old, new, (_, position) in pairs:
            one, other = self.before.records[old], self.after.records[new]
            if new in self.new:
                yield from self._leaf(old, new, position)
            elif not _is_like(one, other):
                yield from self._replaced(old, position)
            else:
                were, now = by_entry(self.before, old), by_entry(self.after, new)
                pairs.add([pairs.at((were[entry], now[entry])) for entry in now if entry in were])
                if self._is_of_module(new):
                    yield from self._items(old, new, were, now)
                if other.kind in _REGISTERED:
                    for entry in now.keys() - were.keys():
                        yield from self._arrays_below(now[entry])

    def _at(self, position: int, before: Any) -> Written:
        """A change of what an object has at a position."""
        holder = max(self.after.parents[position], 0)
        at = self.after.target(position)
        is_array = at in self.new and at not in self.static
        is_in_module = self._is_of_module(holder)
        return Written(position, before, self.new.get(at), is_array, holder, is_in_module)

    def _leaf(self, old: int, new: int, position: int) -> Iterator[Written]:
        known, leaf = self.old.get(old), self.new[new]
        if known is leaf:
            return
        written = self._at(position, known)
        was_another = old in self.were_traced or (is_count(known) and Static(known) != Static(leaf))
        if written.is_array or (written.is_of_module and is_count(leaf) and was_another):
            yield written

    def _replaced(self, old: int, new: int) -> Iterator[Written]:
        """What was written where another node was."""
        if not new:
            return
        written = self._at(new, self.old.get(old))
        if self.after.records[written.holder].kind in _REGISTERED:
            arrays = list(self._arrays_below(new))
            yield from arrays
            if not arrays and old in self.were_traced and written.is_of_module:
                yield written

    def _items(
        self, old: int, new: int, were: dict[Static, int], now: dict[Static, int]
    ) -> Iterator[Written]:
        """What was added to a node of a module or removed from it, and its static fields."""
        one, other = self.before.records[old], self.after.records[new]
        is_container = other.kind in _CONTAINERS
        if not is_container:
            yield from _numbers_in_fields(new, static_fields(one) or {}, static_fields(other) or {})
        for entry in now.keys() - were.keys() if is_container else ():
            yield self._at(now[entry], None)
        for entry in were.keys() - now.keys():
            if is_container or self._had_arrays(were[entry]):
                step = _core.step_text(entry.value, self.before.records[were[entry]].attribute)
                yield Written(new, None, None, False, new, True, step)

    def _had_arrays(self, slot: int) -> bool:
        at = self.before.target(slot)
        return any(i in self.were_traced for i in range(at, self.before.ends[at]))

    def _arrays_below(self, position: int) -> Iterator[Written]:
        """The traced leaves of what was written into an attribute."""
        first = self.after.target(position)
        for at in range(first, self.after.ends[first]):
            if at in self.new and at not in self.static:
                written = self._at(at, None)
                yield written._replace(holder=self.after.parents[position])

    def _is_of_module(self, position: int) -> bool:
        """Whether a node is a module, or is held by one."""
        way: list[int] = []
        found = False
        while position >= 0:
            if position in self.in_module:
                found = self.in_module[position]
                break
            way.append(position)
            if is_module(self.after.records[position]):
                found = True
                break
            position = self.after.parents[position] if position else -1
        self.in_module.update(dict.fromkeys(way, found))
        return found


def _numbers_in_fields(
    position: int, were: dict[str, Any], now: dict[str, Any]
) -> Iterator[Written]:
    """The numbers that changed in the static fields of a node."""
    for name in were.keys() & now.keys():
        are_counts = is_count(were[name]) and is_count(now[name])
        if are_counts and Static(were[name]) != Static(now[name]):
            yield Written(position, None, now[name], False, position, True, f".{name}")


def static_fields(record: Record) -> dict[str, Any] | None:
    """The static attributes of an object by name; None for an object without any to write."""
    if record.kind == "fields":
        return dict(record.detail)
    if record.kind != "custom type":
        return None
    return {} if is_state_of_module(record.type) else static_attributes(record.detail)


def is_count(x: Any) -> bool:
    """Whether this is a number that counts or measures something. A flag isn't one."""
    return is_number(x) and not isinstance(x, bool)


def _is_like(one: Record, other: Record) -> bool:
    return one.kind == other.kind and one.type is other.type


def is_module(record: Record) -> bool:
    """Whether this is an instance of a registered class that isn't a container or one of ours."""
    cls = record.type
    return (
        record.kind in _REGISTERED
        and isinstance(cls, type)
        and not cls.__module__.startswith("pydag.")
        and not issubclass(cls, Mapping | Sequence)
    )
