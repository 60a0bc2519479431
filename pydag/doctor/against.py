# SPDX-License-Identifier: Apache-2.0
"""Compares a model before and after a change: ties, names, types, shapes and values."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydag.sharing.prefixes import in_common

from .compare import are_comparable, are_equal
from .finding import Finding, are, grouped, listed, shown
from .head_checks import tied_by_config
from .model import Model
from .progress import Bar
from .stored import Stored


class _Side(NamedTuple):
    """One of the two models, under the names that both are compared by."""

    groups: dict[str, int]  # names that are one array have one number
    arrays: dict[str, Stored]

    def are_one(self, one: str, other: str) -> bool:
        return self.groups[one] == self.groups[other]


def _groups(model: Model) -> dict[str, int]:
    """The number of the array that each name is."""
    numbers = {name: i for i, names in enumerate(model.groups()) for name in names}
    tied = tied_by_config(model)
    if tied is not None:
        name, head = tied
        numbers.setdefault(head, numbers[name])
    return numbers


def _sides(before: Model, after: Model) -> tuple[_Side, _Side]:
    sides = []
    numbers = _groups(before), _groups(after)
    for model, own, names in zip((before, after), numbers, in_common(*numbers), strict=True):
        groups = {short: own[name] for short, name in names.items()}
        first = {own[name]: array for name, array in model.arrays.items()}
        arrays = {short: model.arrays.get(name, first[own[name]]) for short, name in names.items()}
        sides.append(_Side(groups, arrays))
    return sides[0], sides[1]


def compare(before: Model, after: Model, bar: Bar) -> Iterator[Finding]:
    """The differences, and the ties that both have.

    A tie or name that was lost is a doubt; any other difference is no fault.
    """
    old, new = _sides(before, after)
    common = [name for name in old.groups if name in new.groups]
    yield from _ties(old, new, common, bar)
    if lost := [name for name in old.groups if name not in new.groups]:
        yield Finding("doubt", tuple(lost), f"{are(lost)} lost")
    if added := [name for name in new.groups if name not in old.groups]:
        yield Finding("change", tuple(added), f"{are(added)} new")
    yield from _signatures(old, new, common)
    yield from _values(old, new, common, bar)


def _ties(old: _Side, new: _Side, common: Sequence[str], bar: Bar) -> Iterator[Finding]:
    for anchor, *others in grouped(common, old.groups.__getitem__).values():
        kept = [name for name in others if new.are_one(anchor, name)]
        if kept:
            text = f"{are(kept)} {shown(anchor)}, as before"
            yield Finding("tie", (anchor, *kept), text)
        for name in others:
            if name in kept:
                continue
            is_equal = are_equal(new.arrays[anchor], new.arrays[name], bar)
            how = "equal" if is_equal else "different"
            text = f"{shown(name)} was {shown(anchor)}, and is now an array of its own ({how})"
            yield Finding("doubt", (anchor, name), text)
    for anchor, *others in grouped(common, new.groups.__getitem__).values():
        made = [name for name in others if not old.are_one(anchor, name)]
        if made:
            text = f"{listed(made)} and {shown(anchor)} were arrays of their own, and are now one"
            yield Finding("change", (anchor, *made), text)


def _signatures(old: _Side, new: _Side, common: Sequence[str]) -> Iterator[Finding]:
    for name in common:
        one, other = old.arrays[name], new.arrays[name]
        if one.shape != other.shape:
            text = f"{shown(name)} was {one.signature()}, and is now {other.signature()}"
            yield Finding("change", (name,), text)
    types = grouped(common, lambda name: (old.arrays[name].dtype, new.arrays[name].dtype))
    for (one_type, other_type), names in types.items():
        if one_type != other_type:
            verb = "was" if len(names) == 1 else "were"
            text = f"{listed(names)} {verb} {shown(one_type)}, and now {shown(other_type)}"
            yield Finding("change", tuple(names), text)


def _values(old: _Side, new: _Side, common: Sequence[str], bar: Bar) -> Iterator[Finding]:
    """Which arrays have other values, of those of one type and shape."""
    pairs: dict[tuple[int, int], str] = {}
    for name in common:
        pairs.setdefault((old.groups[name], new.groups[name]), name)
    comparable = [n for n in pairs.values() if are_comparable(old.arrays[n], new.arrays[n])]
    bar.expect(sum(2 * new.arrays[name].nbytes for name in comparable))
    differ = [name for name in comparable if not are_equal(old.arrays[name], new.arrays[name], bar)]
    if differ:
        text = f"{len(differ)} of {len(comparable)} arrays of one type and shape differ"
        text += f": {listed(differ)}"
        yield Finding("change", tuple(differ), text)
