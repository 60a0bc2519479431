# SPDX-License-Identifier: Apache-2.0
"""How figures and tables are written."""

from collections.abc import Iterable, Sequence

from records import Record


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; all but the first columns are numbers."""
    rule = ["---" if i < left else "--:" for i in range(len(head))]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


def significant(value: float, digits: int = 3) -> str:
    """A number with three significant digits, and no exponent."""
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e" in text or abs(value) >= 100 else text


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{significant(seconds / size)} {unit}"
    return f"{significant(seconds / 1e-9)} ns"


def times(ratio: float | None) -> str:
    """A ratio."""
    return "" if ratio is None else f"{ratio:.2f}" if ratio < 100 else significant(ratio)


def union(lists: Iterable[Iterable[str]]) -> list[str]:
    """What is in any of the lists, in order of first sight."""
    return list(dict.fromkeys(item for one in lists for item in one))


def contenders(records: Iterable[Record]) -> list[str]:
    """All contenders, also those that were out."""
    return union([*record.times, *record.notes] for record in records)


def cells(record: Record, names: Sequence[str]) -> list[str]:
    """The times of some contenders; where one was out, why."""
    return [
        duration(record.times[name].minimum) if name in record.times else record.notes.get(name, "")
        for name in names
    ]
