# SPDX-License-Identifier: Apache-2.0
"""A row of the table of cliffs: a workload, what it is compared with, and the ratio that is wanted.

`at_least` races other libraries: the fastest of them is to take so many times as long as pydag.
`at_most` is the other way round: pydag is to take at most so many times as long as the other. That
may be another library, or pydag itself (`USUAL`), at a workload that is like this one. `within`
compares pydag with a time that is given.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from records import Labels, Record, Task
from timing import Effort, Outcome, Times, Work, contest
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
    """The contender "pydag" takes at most `target` times as long as the other one."""
    return Row(name, race, target, is_bound=True)


def within(name: str, seconds: float, race: Race, number: int = 1) -> Row:
    """pydag takes at most so many seconds for each of `number` leaves, or for a whole call."""
    label = duration(seconds) + (" a leaf" if number > 1 else "")

    def beside(effort: Effort) -> Outcome:
        outcome = race(effort)
        outcome.times[label] = Times(seconds * number, seconds * number)
        return outcome

    return Row(name, beside, 1.0, is_bound=True)


def ratio_of(record: Record) -> float | None:
    """The ratio that is compared with the target; None where nobody else took part."""
    speedup = record.speedup()
    return speedup if speedup is None or not record.labels["is_bound"] else 1 / speedup


def is_met(record: Record) -> bool:
    """Whether the ratio is what was wanted."""
    ratio, target = ratio_of(record), float(record.labels["target"])
    return ratio is None or (ratio <= target if record.labels["is_bound"] else ratio >= target)


def section(records: list[Record], earlier: Iterable[Record] = ()) -> str:
    """The table.

    Args:
        earlier: Those of another run, whose ratios stand beside them if there are any.
    """
    before = {record.labels["what"]: times(ratio_of(record)) for record in earlier}
    column = ["before"] if before else []
    return table(
        ["", "pydag", "the other", "its time", *column, "ratio", "wanted", ""],
        [
            _cells(record, [before.get(record.labels["what"], "")] if before else [])
            for record in records
        ],
    )


def _cells(record: Record, before: list[str]) -> list[str]:
    peer, ours = record.best_peer(), duration(record.times["pydag"].minimum)
    wanted = f"{'≤' if record.labels['is_bound'] else '≥'} {record.labels['target']}"
    theirs = [peer, duration(record.times[peer].minimum)] if peer else ["", ""]
    verdict = "" if is_met(record) else "missed"
    ratio = times(ratio_of(record))
    return [str(record.labels["what"]), ours, *theirs, *before, ratio, wanted, verdict]
