# SPDX-License-Identifier: Apache-2.0
"""Compares a model before and after a change: ties, names, types, shapes and values."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from pydag.arrays.names import grouped, in_common, paired

from .compare import are_comparable, are_equal, equal_classes
from .finding import Finding, are, limited, listed, shown
from .head_checks import tied_by_config
from .model import Model
from .progress import Bar
from .stored import Stored

_MOST_FINDINGS, _MOST_PREFIXES = 100, 20

_Pair = tuple[str, str]  # what both models call one array


class _ModelSide:
    """One of the two models.

    Attributes:
        groups: Its names. Those that are one array have one number.
        arrays: The array of each name.
        declared: The names that no file has, which config and architecture tie to another one.
    """

    def __init__(self, model: Model) -> None:
        self.groups = {name: i for i, names in enumerate(model.groups()) for name in names}
        self.declared = tied_by_config(model)
        for name, stored in self.declared.items():
            self.groups.setdefault(name, self.groups[stored])
        first = {self.groups[name]: array for name, array in model.arrays.items()}
        self.arrays = {n: model.arrays.get(n, first[i]) for n, i in self.groups.items()}


def compare(before: Model, after: Model, bar: Bar) -> Iterator[Finding]:
    """The differences, and the ties that both have. All names are as they are in the files.

    A name that was lost is an error, a tie that was cut a doubt; any other difference is no fault.
    """
    old, new = _ModelSide(before), _ModelSide(after)
    own, others = in_common(old.groups, new.groups)
    pairs = [(name, others[key]) for key, name in own.items() if key in others]
    is_read = before.has_content and after.has_content
    found = dict(_by_content(old, new, pairs, bar)) if is_read else {}
    order = {name: i for i, name in enumerate(old.groups)}
    pairs = sorted({*pairs, *found}, key=lambda pair: order[pair[0]])
    yield from limited(_renamed(pairs, found), _MOST_FINDINGS)
    yield from _ties(old, new, pairs, bar if is_read else None)
    lost, added = _others(old, new, pairs)
    if lost:
        yield Finding("error", tuple(lost), f"{are(lost)} lost")
    if added:
        yield Finding("change", tuple(added), f"{are(added)} new")
    yield from _signatures(old, new, pairs)
    if is_read:
        yield from _values(old, new, pairs, bar)


def _others(
    old: _ModelSide, new: _ModelSide, pairs: Iterable[_Pair]
) -> tuple[list[str], list[str]]:
    """The names of each side that are in no pair. What is only declared isn't lost or new."""
    known = {(i, name) for pair in pairs for i, name in enumerate(pair)}
    lost, added = (
        [name for name in side.groups if (i, name) not in known and name not in side.declared]
        for i, side in enumerate((old, new))
    )
    return lost, added


def _renamed(pairs: Sequence[_Pair], found: Mapping[_Pair, bool]) -> Iterator[Finding]:
    """The names that changed, those together whose prefixes did so alike."""

    def kind(pair: _Pair) -> Hashable:
        return found.get(pair, True), *(re.sub(r"\d+", "#", prefix) for prefix in _prefixes(*pair))

    for own in grouped([pair for pair in pairs if pair[0] != pair[1]], kind).values():
        text = f"{shown(own[0][0])} is {shown(own[0][1])}"
        text = f"renamed: {len(own)} names, {text} ..." if len(own) > 1 else f"renamed: {text}"
        text += "" if found.get(own[0], True) else ", or another one that equals it"
        yield Finding("change", tuple(name for pair in own for name in pair), text)


def _prefixes(one: str, other: str) -> _Pair:
    """What is before the parts that both names end with."""
    first, second = one.split("."), other.split(".")
    while first and second and first[-1] == second[-1]:
        del first[-1], second[-1]
    return "".join(f"{part}." for part in first), "".join(f"{part}." for part in second)


def _by_content(
    old: _ModelSide, new: _ModelSide, pairs: Sequence[_Pair], bar: Bar
) -> Iterator[tuple[_Pair, bool]]:
    """Names that only one side has, in pairs whose arrays are equal, and whether a pair is sure.

    Where several are equal, prefixes that others changed tell which one it is.
    """
    was, now = (
        paired(map(side.arrays.__getitem__, names), names)
        for side, names in zip((old, new), _others(old, new, pairs), strict=True)
    )
    plain = [array for array in (*was, *now) if array.is_plain]
    forms = grouped(plain, lambda array: (array.dtype, array.shape)).values()
    likely = [own for own in forms if len({array in was for array in own}) == 2]
    bar.expect(sum(array.nbytes for own in likely for array in own))
    sides = []
    for own in (equal for arrays in likely for equal in equal_classes(arrays, bar)):
        lost = dict.fromkeys(name for array in own for name in was.get(array, ()))
        left = dict.fromkeys(name for array in own for name in now.get(array, ()))
        sides.append((lost, left))
    sure = [(*lost, *left) for lost, left in sides if len(lost) == len(left) == 1]
    prefixes = Counter(_prefixes(*pair) for pair in sure).most_common(_MOST_PREFIXES)
    for lost, left in sides:
        for name in tuple(lost):
            names = (y + name.removeprefix(x) for (x, y), _ in prefixes if name.startswith(x))
            if other := next((other for other in names if other in left), None):
                del lost[name], left[other]
                yield (name, other), True
        is_sure = len(lost) == len(left) == 1
        yield from ((pair, is_sure) for pair in zip(lost, left, strict=False))


def _ties(
    old: _ModelSide, new: _ModelSide, pairs: Sequence[_Pair], bar: Bar | None
) -> Iterator[Finding]:
    """The ties that were kept, cut (without a bar nothing is read) and made."""
    for (anchor, other), *more in grouped(pairs, lambda pair: old.groups[pair[0]]).values():
        kept = [pair[0] for pair in more if new.groups[pair[1]] == new.groups[other]]
        if kept:
            text = f"{are(kept)} {shown(anchor)}, as before"
            yield Finding("tie", (anchor, *kept), text)
        for name, now in more:
            if name in kept:
                continue
            text = f"{shown(name)} was {shown(anchor)}, and is now an array of its own"
            if bar is not None:
                is_equal = are_equal(new.arrays[other], new.arrays[now], bar)
                text += f" ({'equal' if is_equal else 'different'})"
            yield Finding("doubt", (anchor, name), text)
    for (was, anchor), *more in grouped(pairs, lambda pair: new.groups[pair[1]]).values():
        if joined := [pair[1] for pair in more if old.groups[pair[0]] != old.groups[was]]:
            text = f"{listed(joined)} and {shown(anchor)} were arrays of their own, and are now one"
            yield Finding("change", (anchor, *joined), text)


def _signatures(old: _ModelSide, new: _ModelSide, pairs: Sequence[_Pair]) -> Iterator[Finding]:
    types: dict[_Pair, list[str]] = {}
    for was, name in pairs:
        one, other = old.arrays[was], new.arrays[name]
        types.setdefault((one.dtype, other.dtype), []).append(name)
        if one.shape != other.shape:
            text = f"{shown(name)} was {one.signature()}, and is now {other.signature()}"
            yield Finding("change", (name,), text)
    for (one_type, other_type), names in types.items():
        if one_type != other_type:
            verb = "was" if len(names) == 1 else "were"
            text = f"{listed(names)} {verb} {shown(one_type)}, and now {shown(other_type)}"
            yield Finding("change", tuple(names), text)


def _values(
    old: _ModelSide, new: _ModelSide, pairs: Sequence[_Pair], bar: Bar
) -> Iterator[Finding]:
    """Which arrays have other values, of those of one type and shape."""
    distinct: dict[tuple[int, int], tuple[str, Stored, Stored]] = {}
    for was, name in pairs:
        row = name, old.arrays[was], new.arrays[name]
        distinct.setdefault((old.groups[was], new.groups[name]), row)
    comparable = [row for row in distinct.values() if are_comparable(*row[1:])]
    bar.expect(sum(2 * array.nbytes for *_, array in comparable))
    differ = [name for name, one, other in comparable if not are_equal(one, other, bar)]
    if differ:
        text = f"{len(differ)} of {len(comparable)} arrays of one type and shape differ"
        text += f": {listed(differ)}"
        yield Finding("change", tuple(differ), text)
