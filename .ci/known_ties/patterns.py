# SPDX-License-Identifier: Apache-2.0
"""Patterns for tied names that depend on how many layers a model has."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

ANY_NUMBER = "*"  # in a source: a number that other fields of the config decide


def described(
    ties: Mapping[str, str], arrays: Mapping[str, int], literal: Collection[str]
) -> dict[str, str]:
    r"""Ties by few patterns: each target, which must match a whole name, with its source.

    A pattern is taken if each name of the model that it matches is one array with the source.

    Args:
        ties: Each tied name with its source.
        arrays: All names of the model, each with the identity of its array.
        literal: The targets that stay names.

    >>> described({"head.1.w": "head.0.w", "head.2.w": "head.0.w"}, {"head.0.w": 1, ...}, [])
    {'head\\.\\d+\\.(.+)': 'head.0.\\1'}
    """
    found = {target: source for target, source in ties.items() if target in literal}
    others = [_parted(*tie) for tie in ties.items() if tie[0] not in literal]
    for group in _grouped(others):
        patterns = _patterns(group, arrays)
        if patterns is None:
            print(f"no pattern for {len(group)} ties, which are left out: {group[0]}")
        found |= patterns or {}
    return found


class _Tie(NamedTuple):
    """The beginnings of two names, and the end that they have in common."""

    target: str
    source: str
    end: str


def _parted(target: str, source: str) -> _Tie:
    first, second = target.split("."), source.split(".")
    count = 0
    while count < min(len(first), len(second)) and first[-1 - count] == second[-1 - count]:
        count += 1
    end = ".".join(first[len(first) - count :])
    return _Tie(target.removesuffix(end), source.removesuffix(end), end)


def _grouped(ties: Iterable[_Tie]) -> list[list[_Tie]]:
    """Ties whose beginnings differ in numbers alone."""
    groups: dict[tuple[str, str], list[_Tie]] = defaultdict(list)
    for tie in ties:
        groups[_masked(tie.target), _masked(tie.source)].append(tie)
    return list(groups.values())


def _patterns(group: list[_Tie], arrays: Mapping[str, int]) -> dict[str, str] | None:
    """Patterns for a group of ties, as wide as they may be; None if there are none for all."""
    for pattern, source in _candidates(group):
        if _fits(pattern, source, group, arrays):
            return {pattern: source}
    if not all("." in tie.end and not tie.end[0].isdigit() for tie in group):
        return None
    found: dict[str, str] = {}
    for inner in _grouped(map(_narrower, group)):
        patterns = _patterns(inner, arrays)
        if patterns is None:
            return None
        found |= patterns
    return found


def _narrower(tie: _Tie) -> _Tie:
    first, _, rest = tie.end.partition(".")
    return _Tie(f"{tie.target}{first}.", f"{tie.source}{first}.", rest)


def _candidates(group: Iterable[_Tie]) -> Iterator[tuple[str, str]]:
    [(target_head, source_head)] = {(_masked(tie.target), _masked(tie.source)) for tie in group}
    whole = re.escape(target_head).replace(r"\#", r"\d+")
    ends = "|".join(sorted({tie.end.rpartition(".")[2] for tie in group}))
    sources = {tie.source for tie in group}
    # The number of the first of some layers is another one in another model.
    fixed = sources.pop() if len(sources) == 1 else ""
    if not fixed or (target_head == source_head and not re.search(r"\.0\.", fixed)):
        fixed = source_head.replace("#", ANY_NUMBER)
    yield rf"{whole}(.+)", rf"{fixed}\1"
    yield rf"{whole}(.+\.(?:{ends}))", rf"{fixed}\1"


def _fits(pattern: str, source: str, group: Iterable[_Tie], arrays: Mapping[str, int]) -> bool:
    matches = {name: re.fullmatch(pattern, name) for name in arrays}
    if not all(matches[tie.target + tie.end] for tie in group):
        return False
    for name, match in matches.items():
        if match is not None and _of_source(match.expand(source), arrays) != {arrays[name]}:
            return False
    return True


def _of_source(source: str, arrays: Mapping[str, int]) -> set[int | None]:
    if ANY_NUMBER not in source:
        return {arrays.get(source)}
    right = re.compile(re.escape(source).replace(r"\*", r"\d+"))
    start = source.partition(ANY_NUMBER)[0]
    return {arrays[name] for name in arrays if name.startswith(start) and right.fullmatch(name)}


def _masked(head: str) -> str:
    return re.sub(r"(?<=\.)\d+(?=\.)", "#", head)
