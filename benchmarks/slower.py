# SPDX-License-Identifier: Apache-2.0
"""Where pydag is slower: than another library, and than pydag usually is."""

from collections.abc import Iterable, Iterator

from calls import EAGER, OPTIONS
from copies import ARRAYS
from peers import WANTED
from records import STANDARD, Record, chosen
from rows import USUAL
from words import table, times

NOISE = 1.02  # ratios below are as often above 1 as below in the next run
MUCH = 1.25  # how many times the usual time is worth a line
OTHERS = (*WANTED, *STANDARD, "functools.lru_cache", "pytools.memoize")


def section(records: list[Record]) -> str:
    """Both tables."""
    than_others = [
        [what, other, times(ours / its)]
        for what, ours, other, its in beside_others(records)
        if ours > NOISE * its
    ]
    than_usual = [
        [what, times(ours / its)]
        for what, ours, its in beside_the_usual(records)
        if ours > MUCH * its
    ]
    parts = []
    if than_others:
        head = ["", "faster", "pydag's time over its"]
        parts.append(f"""\
Every workload in which another library is more than {NOISE - 1:.0%} faster than pydag:

{table(head, than_others)}""")
    if than_usual:
        head = ["", "times the usual"]
        parts.append(f"""\
Every workload that takes pydag more than {MUCH} times as long as the same work usually does:

{table(head, than_usual)}""")
    return "\n".join(parts)


def beside_others(records: list[Record]) -> Iterator[tuple[str, float, str, float]]:
    """What was done, pydag's time, and the fastest of the other libraries with its time."""
    for record in records:
        if record.section in ("tables", "cold", "specs", "growth", "folds"):
            variant = ", ".join(map(str, record.labels.values()))
            yield from _beside(record, variant, "pydag", OTHERS)
        elif record.section == "copies":
            what = f"copy with its arrays, {record.labels['model']}"
            yield from _beside(record, what, ARRAYS, OTHERS)
        elif record.section == "cliffs":
            yield from _beside(record, str(record.labels["what"]), "pydag", OTHERS)
        elif record.section == "sharing":
            what = f"flatten, shared on {record.labels['depth']} levels"
            others = [f"{name} flatten" for name in OTHERS]
            for _, mine, other, its in _beside(record, what, "pydag flatten", others):
                yield what, mine, other.removesuffix(" flatten"), its
    for record in chosen(records, "boundary", work=EAGER):
        size = f"{record.labels['leaves']} leaves"
        yield from _beside(record, f"{record.labels['wrapper']}, not compiled, {size}")
    for record in chosen(records, "boundary", work=OPTIONS):
        for ours in record.times:
            owner, what = ours.split(": ")
            if owner == "pydag":
                size = f"{record.labels['leaves']} leaves"
                for _, mine, _, its in _beside(record, "", ours, [f"jax: {what}"]):
                    yield f"jit, {what}, {size}", mine, "jax", its
    for work in ("read", "update"):
        for record in chosen(records, "boundary", work=work):
            what = f"jit, {work}s a dict of {record.labels['leaves']} leaves"
            for _, mine, _, its in _beside(record, "", "pydag jit, dict", ["jax.jit, dict"]):
                yield what, mine, "jax", its


def _beside(
    record: Record, what: str, ours: str = "pydag", others: Iterable[str] = ("jax",)
) -> Iterator[tuple[str, float, str, float]]:
    theirs = {name: record.times[name].minimum for name in others if name in record.times}
    if ours in record.times and theirs:
        best = min(theirs, key=theirs.__getitem__)
        yield what, record.times[ours].minimum, best, theirs[best]


def beside_the_usual(records: list[Record]) -> Iterator[tuple[str, float, float]]:
    """What was done, pydag's time, and its time where nothing is unusual."""
    for record in chosen(records, "cliffs"):
        if USUAL in record.times:
            ours, usual = record.times["pydag"].minimum, record.times[USUAL].minimum
            yield str(record.labels["what"]), ours, usual
