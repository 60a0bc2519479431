# SPDX-License-Identifier: Apache-2.0
"""Compares a model before and after a change: ties, names, types, shapes and values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pydag.sharing.prefixes import in_common

from .compare import are_equal
from .finding import Finding, listed, shown
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
    lost = [name for name in old.groups if name not in new.groups]
    if lost:
        verb = "is" if len(lost) == 1 else "are"
        yield Finding("doubt", tuple(lost), f"{listed(lost)} {verb} lost")
    added = [name for name in new.groups if name not in old.groups]
    if added:
        verb = "is" if len(added) == 1 else "are"
        yield Finding("change", tuple(added), f"{listed(added)} {verb} new")
    yield from _signatures(old, new, common)
    yield from _values(old, new, common, bar)


def _ties(old: _Side, new: _Side, common: Sequence[str], bar: Bar) -> Iterator[Finding]:
    was: dict[int, list[str]] = {}
    now: dict[int, list[str]] = {}
    for name in common:
        was.setdefault(old.groups[name], []).append(name)
        now.setdefault(new.groups[name], []).append(name)
    for anchor, *others in was.values():
        kept = [name for name in others if new.are_one(anchor, name)]
        if kept:
            verb = "is" if len(kept) == 1 else "are"
            text = f"{listed(kept)} {verb} {shown(anchor)}, as before"
            yield Finding("tie", (anchor, *kept), text)
        for name in others:
            if name in kept:
                continue
            how = _how(new.arrays[anchor], new.arrays[name], bar)
            text = f"{shown(name)} was {shown(anchor)}, and is now an array of its own ({how})"
            yield Finding("doubt", (anchor, name), text)
    for anchor, *others in now.values():
        made = [name for name in others if not old.are_one(anchor, name)]
        if made:
            text = f"{listed(made)} and {shown(anchor)} were arrays of their own, and are now one"
            yield Finding("change", (anchor, *made), text)


def _how(one: Stored, other: Stored, bar: Bar) -> str:
    return "equal" if are_equal(one, other, bar) else "different"


def _signatures(old: _Side, new: _Side, common: Sequence[str]) -> Iterator[Finding]:
    types: dict[tuple[str, str], list[str]] = {}
    for name in common:
        one, other = old.arrays[name], new.arrays[name]
        if one.dtype != other.dtype:
            types.setdefault((one.dtype, other.dtype), []).append(name)
        if one.shape != other.shape:
            text = f"{shown(name)} was {one.signature()}, and is now {other.signature()}"
            yield Finding("change", (name,), text)
    for (one_type, other_type), names in types.items():
        verb = "was" if len(names) == 1 else "were"
        text = f"{listed(names)} {verb} {shown(one_type)}, and now {shown(other_type)}"
        yield Finding("change", tuple(names), text)


def _values(old: _Side, new: _Side, common: Sequence[str], bar: Bar) -> Iterator[Finding]:
    """Which arrays have other values, of those of one type and shape."""
    pairs: dict[tuple[int, int], str] = {}
    for name in common:
        pairs.setdefault((old.groups[name], new.groups[name]), name)
    comparable = [name for name in pairs.values() if _is_comparable(old.arrays, new.arrays, name)]
    bar.expect(sum(2 * new.arrays[name].nbytes for name in comparable))
    differ = [name for name in comparable if not are_equal(old.arrays[name], new.arrays[name], bar)]
    if differ:
        text = f"{len(differ)} of {len(comparable)} arrays of one type and shape differ"
        text += f": {listed(differ)}"
        yield Finding("change", tuple(differ), text)


def _is_comparable(old: Mapping[str, Stored], new: Mapping[str, Stored], name: str) -> bool:
    one, other = old[name], new[name]
    is_one = (one.dtype, one.shape) == (other.dtype, other.shape)
    return is_one and one.is_plain and other.is_plain
