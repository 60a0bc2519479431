# SPDX-License-Identifier: Apache-2.0
"""The page: the method, a table for each question that a reader has, and what lies in the files."""

from collections.abc import Callable, Iterable
from textwrap import fill

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
    made = f"pydag {about['pydag']} and Python {about['python']} on {about['machine']}"
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

The nine models are those of optree's own benchmark: the modules of well-known networks, as nested
dicts and as nested `OrderedDict`s, with {fewest:,} to {most:,} nodes.

All libraries run in one process and take turns, {about["rounds"]} rounds of them, with the garbage
collector off. A time is the minimum of the rounds; the files have the medians as well. The
*speed-up* is the time of the fastest other library, divided by pydag's time: above 1 pydag is
faster. A mean is the geometric mean over the nine models, and *worst* is the model with the
smallest speed-up.

Such figures vary from run to run, most of all those of a few microseconds. They say what the
library costs, and not how fast your program is: a training step of many milliseconds hides most of
it.

## Trees

{short_table(results)}
In the first eight rows the tree has been seen before, as in a training loop, so pydag finds its
structure in a cache. In *leaves held elsewhere* something else refers to each leaf, as is usual in
a program; a leaf that nothing else refers to needs no entry in the table of identities. In *never
seen before* each call gets a new tree, in which every key is a new string.
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
        if record.labels["depth"] in (1, 8, 16, 20, 60)
    ]
    mean = mean_and_worst(chosen(records, "tables", work="flatten", shared=True, mapping="dict"))
    tenth = (
        f"""\
With a tenth of its modules shared, a model of dicts is flattened {mean[0]} times as fast as by the
fastest other library (worst: {mean[1]}), which flattens the shared modules again and again.

"""
        if any(mean)
        else ""
    )
    if not rows:
        return tenth
    return f"""\
{tenth}The list `t = [t, t]`, nested so many times, has one leaf with 2 to the power of the depth
paths. pydag's time grows with the objects, that of the others with the paths:

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
Classes of one's own, with pydag and with JAX's `register_dataclass`; modules of equinox and of NNX,
with pydag and with the library itself (NNX: `nnx.split` and `nnx.merge`).

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
        deep += [f"At 10,000 {name} ends with a {why}." for name, why in record.notes.items()]
    return f"""\
Nanoseconds for each object of a tree of dicts, of which every tenth is a dict of nine leaves.

{table(["objects", "pydag", "optree", "jax", "dm-tree"], rows)}
{fill(" ".join(deep), 100)}
"""


def _specs(records: list[Record]) -> str:
    rows = []
    for work in dict.fromkeys(str(record.labels["work"]) for record in chosen(records, "specs")):
        rows.append([f"`{work}`", *mean_and_worst(chosen(records, "specs", work=work))])
    if not rows:
        return ""
    return f"""\
What can be done with a spec, the structure of a tree. *One after the other*: two trees that were
built alike in one process. *Equal*: a spec and its pickled copy. *Unequal*: they differ in the last
place.

{table(["speed-up", "mean", "worst"], rows)}"""


def _folds(records: list[Record]) -> str:
    rows = []
    for record in chosen(records, "folds", shape="shared twelve-fold"):
        for name in contenders([record]):
            if name not in ("pydag", "pytools.memoize") and name in record.times:
                ours, other = record.times["pydag"].minimum, record.times[name].minimum
                what = [str(record.labels["work"]), name]
                rows.append([*what, duration(ours), duration(other), times(other / ours)])
    if not rows:
        return ""
    return f"""\
Expressions whose parts are shared on twelve levels. On plain classes pydag is compared with a
recursive function that has an `lru_cache`; on the classes of pymbolic, sympy and UFL with what the
library itself offers.

{table(["", "beside", "pydag", "the other", "ratio"], rows, left=2)}"""


def _limit(records: list[Record]) -> str:
    own = chosen(records, "limit", mapping="dict")
    if not own:
        return ""
    ratios = [record.times["pydag"].minimum / record.times[BARE].minimum for record in own]
    return f"""\
A loop in C++ over the same dicts that does nothing but collect the addresses of the leaves (no
structure, no order of keys, no identity, no references) is a lower bound. On the nine models
pydag's flatten takes {times(geometric_mean(ratios))} times as long, at worst {times(max(ratios))}
times.
"""


WHAT = {
    "tables": "eight kinds of work on the nine models, also with a tenth of the modules shared",
    "cold": "flatten with leaves that are held elsewhere, and of trees never seen before",
    "modules": "classes with attributes, equinox and NNX",
    "boundary": "calls of compiled functions: models, options, refs, wrappers, dispatch",
    "growth": "trees from ten to ten million objects",
    "sharing": "`t = [t, t]`, up to sixty levels",
    "depth": "chains of up to a million nested containers",
    "specs": "hash, `==`, `repr`, pickle and size of specs",
    "folds": "counting, folding, rewriting and interning expressions",
    "copies": "`dag_copy` beside `copy.deepcopy`, pickle and copium",
    "limit": "flatten beside a bare loop in C++",
    "cliffs": "unusual trees and calls, import times, the slowest of many steps",
}


def _files(results: Results) -> str:
    rows = [
        [f"[{name}.csv]({FOLDER}/{name}.csv)", WHAT.get(name, "")]
        for name in figures.sections(results)
    ]
    return f"""\
Each file has a line for each time, in seconds. Where a library took no part, the note says why.
`benchmarks/results.json` has the same figures as the program wrote them.

{table(["file", "what it has"], rows, left=2)}"""


Section = Callable[[list[Record]], str]

_SECTIONS: Iterable[tuple[str, Section]] = [
    ("Calls of compiled functions", boundary_report.section),
    ("Where it is slower", slower.section),
    ("Shared parts", _shared),
    ("Classes", _modules),
    ("Large and deep trees", _large),
    ("Specs", _specs),
    ("Expressions", _folds),
    ("The limit", _limit),
]
