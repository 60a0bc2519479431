# SPDX-License-Identifier: Apache-2.0
"""The page: the method, a table for each question that a reader has, and what lies in the files."""

from collections.abc import Callable, Iterable
from textwrap import fill

import accelerator_report
import boundary_report
import figures
import slower
from limit import BARE
from models import NODE_COUNTS
from modules import DATACLASS, EQUINOX, FIELDS, JAX, NNX, OF_EQUINOX, OF_NNX, SLOTS
from readme import mean_and_worst, short_table
from records import Record, Results, chosen, geometric_mean
from words import contenders, duration, significant, table, times

FOLDER = "figures"  # beside the page


def markdown(results: Results) -> str:
    """The page. A section that wasn't measured is left out."""
    parts = [_head(results)]
    for title, write in _SECTIONS:
        if text := write(results.records):
            parts.append(f"## {title}\n\n{text}")
    parts.append(f"## All figures\n\n{_files(results)}")
    return "\n".join(parts)


def _head(results: Results) -> str:
    about = results.about
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    commit = f" of commit {about['commit']}" if about.get("commit") else ""
    made = f"pydag {about['pydag']}{commit} and Python {about['python']} on {about['machine']}"
    fewest, most = min(NODE_COUNTS.values()), max(NODE_COUNTS.values())
    missing = "".join(f"* {message}\n" for message in about["missing"])
    quick = "\n**A quick run: rough figures.**\n" if about["quick"] else ""
    return f"""\
# Benchmarks

`make bench` writes this page, its picture and the files of figures.
{quick}
{fill(f"Measured with {made}, beside {versions}.", 100)}
{missing and f"{chr(10)}Not measured:{chr(10)}{chr(10)}{missing}"}
![Speed-ups, and calls of compiled functions](benchmarks.png)

## How it is measured

The nine models are those of optree's own benchmark: well-known networks as nested dicts and as
nested `OrderedDict`s, with {fewest:,} to {most:,} nodes. All libraries run in one process and take
turns, {about["rounds"]} rounds, with the garbage collector off. A time is the least of the rounds.
The *speed-up* is the time of the fastest other library, divided by pydag's time: above 1 pydag is
faster. *Mean* is the geometric mean over the nine models, *worst* the smallest speed-up.

Times of a few microseconds vary from run to run. A training step of milliseconds hides most of
them.

## Trees

{short_table(results)}
But for the last row pydag has seen the structure before, as in a training loop. In *leaves held
elsewhere* something else refers to each leaf, too, so each needs an entry in the table of
identities. In *all keys new* each call gets a new tree with new strings as keys, in *never seen
before* they have new texts, too.
"""


def _shared(records: list[Record]) -> str:
    """What sharing does to the time: a chain of pairs, and models of which a tenth is shared."""
    rows = [
        [f"{record.labels['depth']:,}"]
        + [
            duration(record.times[name].minimum)
            if name in record.times
            else record.notes.get(name, "")
            for name in ("pydag flatten", "optree flatten", "jax flatten", "dm-tree flatten")
        ]
        for record in chosen(records, "sharing")
        if record.labels["depth"] in (1, 16, 60)
    ]
    mean = mean_and_worst(chosen(records, "tables", work="flatten", shared=True, mapping="dict"))
    tenth = (
        f"""\
If a tenth of a model's modules is shared, pydag flattens it {mean[0]} times as fast as the fastest
other library (worst: {mean[1]}), which flattens shared modules at each of their places.

"""
        if any(mean)
        else ""
    )
    if not rows:
        return tenth
    return f"""\
{tenth}A list `t = [t, t]` of depth n has one leaf and 2^n paths. pydag's time grows with the
objects, that of the others with the paths:

{table(["depth", "pydag", "optree", "jax", "dm-tree"], rows)}"""


def _modules(records: list[Record]) -> str:
    rows = []
    for record in chosen(records, "modules", layers=50):
        names = (FIELDS, DATACLASS, SLOTS, JAX, OF_EQUINOX, EQUINOX, OF_NNX, NNX)
        cells = {name: duration(t.minimum) for name, t in record.times.items()}
        rows.append((str(record.labels["work"]), [cells.get(name, "") for name in names], names))
    if not rows:
        return ""
    columns = [list(rows[0][2]), *(cells for _, cells, _ in rows)]
    head = ["50 layers of three arrays and a name", *(work for work, _, _ in rows)]
    return f"""\
Your own classes with pydag and with JAX's `register_dataclass`; modules of equinox and NNX with
pydag and with the library itself (`nnx.split` and `nnx.merge`).

{table(head, zip(*columns, strict=True))}"""


def _large(records: list[Record]) -> str:
    rows = []
    for work in ("flatten", "unflatten"):
        for record in chosen(records, "growth", kind="dicts", work=work):
            count = int(record.labels["objects"])
            if count in (1_000, 10_000_000):
                rows.append([f"{work}, {count:,}"] + [
                    significant(record.times[name].minimum / count * 1e9)
                    if name in record.times else record.notes.get(name, "")
                    for name in ("pydag", "optree", "jax", "dm-tree")
                ])  # fmt: skip
    if not rows:
        return ""
    deep = [
        f"A chain of {record.labels['depth']:,} nested lists is flattened in "
        f"{duration(record.times['pydag flatten'].minimum)}."
        for record in chosen(records, "depth", kind="list", depth=1_000_000)
        if "pydag flatten" in record.times
    ]
    for record in chosen(records, "depth", kind="list", depth=10_000):
        failed = [f"{name} ({why})" for name, why in record.notes.items()]
        deep += [f"At 10,000 these fail: {', '.join(failed)}."] if failed else []
    return f"""\
Nanoseconds for each object of a tree of dicts:

{table(["objects", "pydag", "optree", "jax", "dm-tree"], rows)}
{fill(" ".join(deep), 100)}
"""


def _specs(records: list[Record]) -> str:
    works = dict.fromkeys(str(record.labels["work"]) for record in chosen(records, "specs"))
    means = [f"{work} {mean_and_worst(chosen(records, 'specs', work=work))[0]}" for work in works]
    if not means:
        return ""
    return fill(f"Mean speed-up of what is done with a spec: {'; '.join(means)}.", 100) + "\n"


def _folds(records: list[Record]) -> str:
    ratios: dict[str, list[float]] = {}
    for record in chosen(records, "folds", shape="shared twelve-fold"):
        for name in contenders([record]):
            if name not in ("pydag", "pytools.memoize") and name in record.times:
                ours, other = record.times["pydag"].minimum, record.times[name].minimum
                ratios.setdefault(name, []).append(other / ours)
    if not ratios:
        return ""
    rows = [[name, times(geometric_mean(x)), times(min(x))] for name, x in ratios.items()]
    return f"""\
Counting, measuring and rewriting an expression with parts shared on twelve levels, beside what each
library offers for its own classes; for plain classes, a recursive function with `lru_cache`.

{table(["speed-up", "mean", "worst"], rows)}"""


def _limit(records: list[Record]) -> str:
    ratios: dict[str, list[float]] = {}
    for record in chosen(records, "limit"):
        ratio = record.times["pydag"].minimum / record.times[BARE].minimum
        ratios.setdefault(str(record.labels["work"]), []).append(ratio)
    if not ratios:
        return ""
    rows = [[name, times(geometric_mean(x)), times(max(x))] for name, x in ratios.items()]
    return f"""\
A lower bound is a loop in C++ over the same dicts that has no structure, no identity, no order of
keys, and checks nothing: it collects the addresses of the leaves, copies each container at once, or
copies it and sets what the function says. pydag takes so many times as long:

{table(["", "mean", "worst"], rows)}"""


WHAT = {
    "tables": "the nine models, also with a tenth of the modules shared",
    "cold": "leaves held elsewhere, new keys, structures never seen before",
    "modules": "classes with attributes, equinox and NNX",
    "boundary": "calls of compiled functions",
    "growth": "trees from ten to ten million objects",
    "sharing": "`t = [t, t]`, up to sixty levels",
    "depth": "up to a million nested containers",
    "specs": "hash, `==`, `repr`, pickle and size of specs",
    "folds": "expressions",
    "copies": "`dag_copy` beside `copy.deepcopy`, pickle and copium",
    "limit": "work on trees beside bare loops in C++",
    "cliffs": "unusual trees and calls, import times, the slowest of many steps",
}


def _files(results: Results) -> str:
    items = [
        f"* [{name}.csv]({FOLDER}/{name}.csv): {WHAT.get(name, '')}\n"
        for name in figures.sections(results)
    ]
    return f"""\
Times are in seconds. If a library took no part, the note says why.

{"".join(items)}"""


Section = Callable[[list[Record]], str]

_SECTIONS: Iterable[tuple[str, Section]] = [
    ("Calls of compiled functions", boundary_report.section),
    ("Training on an accelerator", accelerator_report.section),
    ("Where it is slower", slower.section),
    ("Shared parts", _shared),
    ("Classes", _modules),
    ("Large and deep trees", _large),
    ("Specs", _specs),
    ("Expressions", _folds),
    ("The limit", _limit),
]
