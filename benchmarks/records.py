# SPDX-License-Identifier: Apache-2.0
"""What is measured: records, the tasks that make them, and their file."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from timing import Outcome, Times

Labels = Mapping[str, str | float | bool]

STANDARD = ("copy.deepcopy", "pickle")  # they also copy the leaves: shown, but not raced


@dataclass(frozen=True)
class Record:
    """One contest: what it was about, and how it went."""

    section: str
    labels: Labels
    times: dict[str, Times] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def of(section: str, labels: Labels, outcome: Outcome, **facts: float) -> "Record":
        """The record of an outcome."""
        return Record(section, labels, outcome.times, outcome.notes, facts)

    def best_peer(self, ours: str = "pydag") -> str | None:
        """The fastest of the others."""
        others = {n: t.minimum for n, t in self.times.items() if n != ours and n not in STANDARD}
        return min(others, key=others.__getitem__) if others else None

    def speedup(self, ours: str = "pydag", *, median: bool = False) -> float | None:
        """How many times as long the fastest of the others takes."""
        peer = self.best_peer(ours)
        if peer is None or ours not in self.times:
            return None
        theirs, mine = self.times[peer], self.times[ours]
        return theirs.median / mine.median if median else theirs.minimum / mine.minimum


class Task(NamedTuple):
    """A step of the program: what the progress bar says, and what to do."""

    label: str
    run: Callable[[], list[Record]]


def chosen(records: Iterable[Record], section: str, **labels: str | float | bool) -> list[Record]:
    """The records of a section that have these labels."""
    return [
        record
        for record in records
        if record.section == section
        and all(record.labels.get(name) == value for name, value in labels.items())
    ]


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


@dataclass(frozen=True)
class Results:
    """A whole run."""

    about: dict[str, Any]
    records: list[Record]

    def write(self, path: Path) -> None:
        """Write them as JSON, one record a line."""
        lines = ",\n".join(json.dumps(asdict(record)) for record in self.records)
        text = f'{{"about": {json.dumps(self.about, indent=1)},\n"records": [\n{lines}\n]}}\n'
        path.write_text(text, "utf-8")

    @staticmethod
    def read(path: Path) -> "Results":
        """Read what was written."""
        data = json.loads(path.read_text("utf-8"))
        return Results(data["about"], [_record(**record) for record in data["records"]])


def _record(times: dict[str, dict[str, float]], **others: Any) -> Record:
    return Record(times={name: Times(**values) for name, values in times.items()}, **others)
