# SPDX-License-Identifier: Apache-2.0
"""All figures, as comma-separated values: a file for each section, a line for each time."""

import csv
from collections.abc import Iterable
from pathlib import Path

from records import Record, Results
from words import contenders, union

TIMES = ["contender", "minimum_s", "median_s", "note"]

# What a row of the last table is to be at least, or at most: a rule for the people who work on it.
RULES = {"target", "is_bound"}


def sections(results: Results) -> list[str]:
    """The names of the sections that were measured."""
    return union([record.section] for record in results.records)


def write(results: Results, folder: Path) -> None:
    """Write the files, and delete those of sections that are no longer there."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.csv"):
        old.unlink()
    for section in sections(results):
        records = [record for record in results.records if record.section == section]
        with (folder / f"{section}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(lines(records))


def lines(records: list[Record]) -> Iterable[list[str]]:
    """The head, and a line for each contender of each record: its times in seconds, in full."""
    labels = [name for name in union(record.labels for record in records) if name not in RULES]
    facts = union(record.facts for record in records)
    yield [*labels, *facts, *TIMES]
    for record in records:
        about = [str(record.labels.get(name, "")) for name in labels]
        about += [str(record.facts.get(name, "")) for name in facts]
        for name in contenders([record]):
            found = record.times.get(name)
            both = ["", ""] if found is None else [repr(found.minimum), repr(found.median)]
            yield [*about, name, *both, record.notes.get(name, "")]
