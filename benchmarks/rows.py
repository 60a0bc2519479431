# SPDX-License-Identifier: Apache-2.0
"""A row of the table of cliffs: a workload, what it is compared with, and the ratio that is wanted.

`at_least` races other libraries: the fastest of them is to take so many times as long as pydag.
`at_most` compares pydag with itself: the workload is to take at most so many times as long as
another one that is like it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from records import Labels, Record, Task
from timing import Effort, Outcome, Work, contest
from words import duration, table, times

USUAL = "pydag, the usual case"

Race = Callable[[Effort], Outcome]


@dataclass(frozen=True)
class Row:
    """What is measured, how, and which ratio is wanted."""

    name: str
    race: Race  # one of the contenders is "pydag"
    target: float
    is_bound: bool = False  # the ratio is pydag's time over the other, and the target its bound

    def task(self, effort: Effort) -> Task:
        """The step of the program that measures it."""
        return Task(f"cliffs, {self.name}", lambda: [self.record(effort)])

    def record(self, effort: Effort) -> Record:
        """Measures it."""
        labels: Labels = {"what": self.name, "target": self.target, "is_bound": self.is_bound}
        return Record.of("cliffs", labels, self.race(effort))


def steady(works: Mapping[str, Work]) -> Race:
    """A race of calls that are repeated as they are."""
    return lambda effort: contest(works, effort)


def at_least(name: str, target: float, race: Race) -> Row:
    """The fastest of the others takes at least `target` times as long as pydag."""
    return Row(name, race, target)


def at_most(name: str, target: float, race: Race) -> Row:
    """The contender "pydag" takes at most `target` times as long as `USUAL`."""
    return Row(name, race, target, is_bound=True)


def ratio_of(record: Record) -> float | None:
    """The ratio that is compared with the target; None where nobody else took part."""
    speedup = record.speedup()
    return speedup if speedup is None or not record.labels["is_bound"] else 1 / speedup


def is_met(record: Record) -> bool:
    """Whether the ratio is what was wanted."""
    ratio, target = ratio_of(record), float(record.labels["target"])
    return ratio is None or (ratio <= target if record.labels["is_bound"] else ratio >= target)


def section(records: list[Record]) -> str:
    """The table."""
    return table(
        ["", "pydag", "the other", "its time", "ratio", "wanted", ""],
        [_cells(record) for record in records],
    )


def _cells(record: Record) -> list[str]:
    peer, ours = record.best_peer(), duration(record.times["pydag"].minimum)
    wanted = f"{'≤' if record.labels['is_bound'] else '≥'} {record.labels['target']}"
    theirs = [peer, duration(record.times[peer].minimum)] if peer else ["", ""]
    verdict = "" if is_met(record) else "missed"
    return [str(record.labels["what"]), ours, *theirs, times(ratio_of(record)), wanted, verdict]
