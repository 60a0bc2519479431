# SPDX-License-Identifier: Apache-2.0
"""The findings of the doctor: one line each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from pydag.arrays.names import grouped, paired

Level = Literal["error", "doubt", "waste", "tie", "change"]
LEVELS: tuple[Level, ...] = ("error", "doubt", "waste", "tie", "change")

_LONGEST = 160  # characters of a name in a message
_SHOWN = 5  # names in a line
_ZEROS = str.maketrans("123456789", "000000000")


class Finding(NamedTuple):
    """One thing that was found.

    Attributes:
        level: "error", "doubt", "waste" or "tie"; "change" where two models are compared.
        names: The arrays, or files, that it is about.
        text: The problem, in one line.
        nbytes: The number of bytes that it wastes.
    """

    level: Level
    names: tuple[str, ...]
    text: str
    nbytes: int = 0

    def __str__(self) -> str:
        return f"{self.level}: {self.text}"


class Damage(Finding):
    """An error of files that aren't whole, so that no other model can be made of them."""


def shown(name: str) -> str:
    """A name as a line may show it, whatever characters it has."""
    if len(name) > _LONGEST:
        name = name[: _LONGEST - 3] + "..."
    if name and name.isprintable() and name.strip() == name:
        return name
    return ascii(name)


def listed(names: Iterable[str]) -> str:
    """Several names, the first few of them."""
    known = tuple(names)
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return ", ".join(map(shown, known[:_SHOWN])) + more


def are(names: Sequence[str]) -> str:
    """Several names with their verb: "a is", "a, b are"."""
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'}"


def by_form(names: Iterable[str]) -> dict[str, list[str]]:
    """The names that differ in their digits alone, by the name with zeros in place of digits.

    A large model has a few forms. What a name is, is quickly found by asking each form.
    """
    known = list(names)
    forms = "\n".join(known).translate(_ZEROS).split("\n")
    if len(forms) != len(known):
        forms = [name.translate(_ZEROS) for name in known]
    return paired(forms, known)


def limited(findings: Iterable[Finding], most: int = 1000) -> Iterator[Finding]:
    """The first findings of each level, then how many more there are."""
    counts: Counter[Level] = Counter()
    left: list[Finding] = []
    for finding in findings:
        counts[finding.level] += 1
        if counts[finding.level] <= most:
            yield finding
        else:
            left.append(finding)
    for level, rest in grouped(left, lambda finding: finding.level).items():
        kind = Damage if any(isinstance(finding, Damage) for finding in rest) else Finding
        names = tuple(name for finding in rest for name in finding.names)
        text = f"and {len(rest)} more like these: {listed(names)}"
        yield kind(level, names, text, sum(finding.nbytes for finding in rest))


class ReportedPairs:
    """Pairs of names of arrays that were already reported; what two pairs connect is one, too.

    Attributes:
        copies: The arrays that are stored again though metadata or the configuration tie them to
            another one, which they equal: that other one by name. It may be a copy itself.
    """

    def __init__(self) -> None:
        self._groups: dict[str, set[str]] = {}
        self.copies: dict[str, str] = {}

    def add(self, one: str, other: str) -> None:
        """Adds a pair."""
        pair = [self._groups.setdefault(name, {name}) for name in (one, other)]
        if pair[0] is not pair[1]:
            less, more = sorted(pair, key=len)
            more |= less
            self._groups.update(dict.fromkeys(less, more))

    def add_copy(self, one: str, copy: str) -> None:
        """Adds a pair of arrays that are tied and equal."""
        self.add(one, copy)
        self.copies.setdefault(copy, one)

    def __contains__(self, pair: tuple[str, str]) -> bool:
        return pair[1] in self._groups.get(pair[0], ())

    def left(self, names: list[str]) -> list[str]:
        """The names of a group, without those that were reported in a pair with another name."""
        first: dict[object, str] = {}
        for name in names:
            first.setdefault(id(self._groups[name]) if name in self._groups else name, name)
        return list(first.values())


def size_text(nbytes: int) -> str:
    """A number of bytes, in the unit that suits it: "4.1 MB"."""
    if nbytes < 1000:
        return f"{nbytes} B"
    size, unit = nbytes / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if size >= 999.95:
            size, unit = size / 1000, larger
    return f"{size:.1f} {unit}"
