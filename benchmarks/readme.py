# SPDX-License-Identifier: Apache-2.0
"""The short table: for each kind of work the mean and the worst speed-up over all models."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from cold import FRESH, HELD, UNSEEN
from models import MAPPINGS
from peers import WORKS
from records import Record, Results, chosen, geometric_mean
from words import table, times

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
ROWS = ("flatten", "map", UNSEEN)


def mean_and_worst(records: Iterable[Record]) -> tuple[str, str]:
    """How many times as fast as the fastest of the others: geometric mean, and worst case."""
    ratios = [ratio for record in records if (ratio := record.speedup()) is not None]
    return (times(geometric_mean(ratios)), times(min(ratios))) if ratios else ("", "")


def short_table(
    results: Results,
    mappings: Sequence[str] = tuple(MAPPINGS),
    works: Iterable[str] = (*WORKS, HELD, FRESH, UNSEEN),
) -> str:
    """A row for each kind of work, with the mean and the worst for each kind of mapping."""
    rows = []
    for work in works:
        section = "tables" if work in WORKS else "cold"
        shared = {"shared": False} if section == "tables" else {}
        cells = [
            cell
            for mapping in mappings
            for cell in mean_and_worst(
                chosen(results.records, section, work=work, mapping=mapping, **shared)
            )
        ]
        rows.append([work, *cells])
    columns = [f"{mapping}, {what}" for mapping in mappings for what in ("mean", "worst")]
    return table(["times as fast", *columns], rows)


def insert_figures(results: Results, readme: Path) -> None:
    """Put the table between the marks; the first run, with one mark to go by, adds the other."""
    text = readme.read_text("utf-8")
    body = f"{BEGIN}\n\n{figures(results)}\n{END}"
    found = re.search(f"{re.escape(BEGIN)}(?:.*?{re.escape(END)})?", text, re.DOTALL)
    if found is None:
        raise ValueError(f"{readme.name} has no {BEGIN} to put the figures at")
    readme.write_text(text[: found.start()] + body + text[found.end() :], "utf-8")


def figures(results: Results) -> str:
    """What the README says about speed."""
    about = results.about
    raced = [name for name in ("optree", "jax", "dm-tree", "torch") if name in about["versions"]]
    versions = ", ".join(f"{name} {about['versions'][name]}" for name in raced)
    return f"""\
Speed-ups over the fastest of {versions}, on the nine models of optree's benchmark
(Python {about["python"]}, {about["machine"]}). [Benchmarks](docs/benchmarks.md) has more, and where
pydag is slower.

{short_table(results, ["dict"], ROWS)}"""
