# SPDX-License-Identifier: Apache-2.0
"""Paths and patterns that exist, near one that doesn't, for messages.

People write paths as other libraries do: `blocks.0.weight`, `params/dense/kernel`, `**/w`. Any such
text is a row of words. It is compared with the words of each path of each leaf, also of a shared
one, as far as there are not too many.
"""

import collections
import difflib
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pydag.typing import Path

from .listing import Listing, step_text

_MOST_PATHS = 5000
_MOST_PATHS_OF_A_LEAF = 50
_LONGEST_PATH, _LONGEST_TEXT = 60, 400
_MOST_WORDS = 20

_WORD = re.compile(r"[^./\[\]'\"^$\\()]+")


class _PathStep(NamedTuple):
    entry: Any
    text: str  # as Python text: `.name` or `[entry]`
    spellings: tuple[tuple[str, ...], ...]  # each a row of words


_PathSteps = tuple[_PathStep, ...]


def _words(text: str) -> tuple[str, ...]:
    words = ("*" if word == ":" else word for word in _WORD.findall(text))
    return tuple(word for word, _ in itertools.groupby(words))[:_MOST_WORDS]


class Near:
    """The paths of a structure's leaves.

    Args:
        depth: How many levels below the root they begin.
    """

    def __init__(self, listing: Listing, depth: int = 0) -> None:
        self._listing, self._depth = listing, depth
        self._steps: dict[int, _PathStep] = {}
        self._ways = list(itertools.islice(self._all_ways(), _MOST_PATHS))

    def _all_ways(self) -> Iterator[_PathSteps]:
        """The first way to each leaf, and then the others."""
        listing = self._listing
        others: list[Iterator[list[int]]] = []
        for leaf in listing.leaves[:_MOST_PATHS]:
            ways = listing.ways(leaf)
            others.append(itertools.islice(ways, 1, _MOST_PATHS_OF_A_LEAF))
            yield self._way(listing.way(leaf))
        for way in itertools.chain.from_iterable(others if listing.slots else ()):
            yield self._way(way)

    def _way(self, positions: Sequence[int]) -> _PathSteps:
        return tuple(map(self._step, positions[self._depth : self._depth + _LONGEST_PATH]))

    def _step(self, position: int) -> _PathStep:
        known = self._steps.get(position)
        if known is None:
            record = self._listing.records[position]
            entry = record.entry
            names = [str(record.attribute or entry)]
            if type(entry) is int:
                parent = self._listing.records[self._listing.parents[position]]
                names.append(str(entry - parent.num_children))
            spellings = tuple(map(_words, names))
            known = self._steps[position] = _PathStep(entry, step_text(record), spellings)
        return known

    def texts(self, text: str, patterns: Sequence[str] = ()) -> list[str]:
        """Paths that patterns match; else of a similar spelling; else the first ones, all whole."""
        found = dict.fromkeys(_joined(step.text for step in way) for way in self._ways)
        paths = [path for path in found if len(path) <= _LONGEST_TEXT]
        matched = [path for path in paths if any(_fits(path, pattern) for pattern in patterns)]
        return matched[:3] or difflib.get_close_matches(text, paths, 3, 0.5) or paths[:3]

    def patterns(self, text: str) -> list[str]:
        """Patterns that say of existing paths what the text may mean, the likeliest first."""
        for words in self._readings(_words(text)):
            rows = (_aligned(words, way) for way in self._ways)
            found = collections.Counter(_joined(row) for row in rows if row)
            if found:
                return [pattern for pattern, _ in found.most_common(3)]
        return []

    def path(self, text: str) -> Path | None:
        """The path to a leaf or to a node above leaves that the text spells; None if none does."""
        words = _words(text)
        for row in (words, words[1:], *self._readings(words)):
            if not row or "*" in "".join(row):
                continue
            for way in self._ways:
                found = _aligned(row, way)
                if found is not None:
                    count = len(found) - (found[-1:] == ["*"])
                    return tuple(step.entry for step in way[:count])
        return None

    def paths(self) -> list[Path]:
        """The first few paths."""
        return [tuple(step.entry for step in way) for way in self._ways[:3]]

    def _readings(self, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """The words; spelled correctly; in the middle of a path; without a name of the root."""
        if not words or sum("*" in word for word in words) > 3:
            return
        names = {word for step in self._steps.values() for way in step.spellings for word in way}
        rows = dict.fromkeys((words, tuple(_nearest(word, names) for word in words)))
        yield from rows
        yield from (("*", *row) for row in rows)
        for row in rows:
            if len(row) > 1 and row[0] not in names:
                yield row[1:]
                yield ("*", *row[1:])


def _nearest(word: str, names: set[str]) -> str:
    if "*" in word or word in names:
        return word
    same = [name for name in sorted(names) if name.lower() == word.lower()]
    return (same or difflib.get_close_matches(word, sorted(names), 1, 0.6) or [word])[0]


def _aligned(words: Sequence[str], way: Sequence[_PathStep]) -> list[str] | None:
    """The steps that the words spell, a star for what lies between and below; None if they don't.

    The core checks what is made of it, so an answer needn't be exact.
    """
    if not words:
        return ["*"] if way else []
    if set(words[0]) == {"*"}:
        for start in range(len(way) + 1):
            found = _aligned(words[1:], way[start:])
            if found is not None:
                return ["*", *found]
        return None
    for spelling in way[0].spellings if way else ():
        head = tuple(words[: len(spelling)])
        text = way[0].text if spelling and head == spelling else None
        if text is None and len(spelling) == 1 and _fits(spelling[0], words[0]):
            is_whole = words[0].strip("*") == spelling[0]
            text = way[0].text if is_whole else way[0].text.replace(spelling[0], words[0])
        found = None if text is None else _aligned(words[len(spelling) :], way[1:])
        if text is not None and found is not None:
            return [text, *found]
    return None


def _fits(text: str, pattern: str) -> bool:
    """Whether a text is what a pattern with `*` and `?` stands for."""
    spelled = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(spelled, text, re.DOTALL) is not None


def _joined(steps: Sequence[str] | Iterator[str]) -> str:
    return re.sub(r"\*+", "*", "".join(steps)).removeprefix(".")


def common_steps(ways: Sequence[Sequence[int]]) -> list[int]:
    """The steps with which all ways begin."""
    steps = itertools.takewhile(lambda steps: len(set(steps)) == 1, zip(*ways, strict=False))
    return [step for step, *_ in steps]


def pattern_of(listing: Listing, ways: Sequence[Sequence[int]]) -> str:
    """A pattern of the paths that begin as all these do."""
    common = common_steps(ways)
    text = "".join(step_text(listing.records[step]) for step in common)
    after = {step_text(listing.records[way[len(common)]])[0] for way in ways if way[len(common) :]}
    if len(after) == 1 and text and not text.endswith("]"):
        text += after.pop()
    return (f"{text}*" if len(ways) > 1 else text).removeprefix(".")
