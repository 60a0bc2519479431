# SPDX-License-Identifier: Apache-2.0
"""The page of all tables."""

from collections.abc import Callable, Iterable

import boundary_report
from cold import FRESH, HELD
from copies import ARRAY_SIZE, ARRAYS, CONTAINERS
from limit import BARE
from models import MAPPINGS, NODE_COUNTS
from modules import DATACLASS, EQUINOX, FIELDS, JAX, NNX, OF_EQUINOX, OF_NNX, SLOTS
from peers import WORKS
from readme import mean_and_worst, short_table
from records import Record, Results, chosen, geometric_mean
from rows import section as cliff_table
from words import cells, contenders, duration, significant, table, times, union


def markdown(results: Results) -> str:
    """The page. A section that wasn't measured is left out."""
    parts = [_head(results)]
    for title, section, write in _SECTIONS:
        records = chosen(results.records, section)
        if records:
            parts.append(f"## {title}\n\n{write(records)}")
    return "\n".join(parts)


def _head(results: Results) -> str:
    about = results.about
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    missing = "".join(f"* {message}\n" for message in about["missing"])
    quick = "\n**A quick run: rough figures.**\n" if about["quick"] else ""
    return f"""\
# Benchmarks

Made by `make bench`; what lies behind a figure is in `benchmarks/`.
{quick}
pydag {about["pydag"]}, Python {about["python"]}, {about["machine"]}. {versions}.
{missing and f"{chr(10)}Not measured:{chr(10)}{chr(10)}{missing}"}
All contenders run in one process and take turns, {about["rounds"]} rounds of them, with the garbage
collector off. A time is the minimum of the rounds; *speed-up* is the time of the fastest other
library over pydag's, by minima (and by medians).

{short_table(results)}
"""


def _speedups(record: Record) -> str:
    median = record.speedup(median=True)
    return "" if median is None else f"{times(record.speedup())} ({times(median)})"


def _race(records: list[Record]) -> str:
    """One table of the nine models."""
    names = contenders(records)
    rows = [
        [model, str(NODE_COUNTS[model]), *cells(record, names), _speedups(record)]
        for record in records
        for model in [str(record.labels["model"])]
    ]
    mean, worst = mean_and_worst(records)
    rows.append(["geometric mean; worst", "", *[""] * len(names), f"{mean}; {worst}"])
    return table(["model", "nodes", *names, "speed-up"], rows)


def _by_mapping(records: list[Record], works: Iterable[str]) -> str:
    parts = []
    for work in works:
        for mapping in MAPPINGS:
            for shared in (False, True):
                own = [
                    r
                    for r in chosen(records, records[0].section, work=work, mapping=mapping)
                    if r.labels.get("shared", False) is shared
                ]
                if own:
                    note = ", a tenth of the modules shared" if shared else ""
                    title = f"{work[0].upper()}{work[1:]}"
                    parts.append(f"### {title}: {mapping}{note}\n\n{_race(own)}")
    return "\n".join(parts)


def _tables(records: list[Record]) -> str:
    return f"""\
The nodes are those of the model without sharing. dm-tree's flatten gives no structure; to it, as to
torch, None is a leaf. `copy.deepcopy` and `pickle` keep what is shared, as pydag does and no other,
but copy the leaves as well: they are shown, and not raced.

{_by_mapping(records, WORKS)}"""


def _cold(records: list[Record]) -> str:
    return f"""\
*Held elsewhere*: each leaf has another reference, so that no short cut around the identity table
can be taken. *Never seen before*: each call gets a new tree, in which every key is a new string.

{_by_mapping(records, (HELD, FRESH))}"""


def _modules(records: list[Record]) -> str:
    names = [FIELDS, SLOTS, DATACLASS, JAX, EQUINOX, NNX, OF_EQUINOX, OF_NNX]
    parts = []
    for work in ("flatten", "unflatten"):
        rows = []
        for record in chosen(records, "modules", work=work):
            ratios = [
                times(record.times[JAX].minimum / record.times[ours].minimum)
                for ours in (FIELDS, SLOTS, DATACLASS)
            ]
            rows.append([str(record.labels["layers"]), *cells(record, names), *ratios])
        head = ["layers", *names, *(f"jax dataclass / {ours}" for ours in names[:3])]
        parts.append(f"### {work.capitalize()}\n\n{table(head, rows)}")
    intro = "Layers of three arrays and a name. NNX: `nnx.split` and `nnx.merge`."
    return "\n".join([f"{intro}\n", *parts])


def _growth(records: list[Record]) -> str:
    parts = []
    for kind, work in dict.fromkeys((r.labels["kind"], r.labels["work"]) for r in records):
        own = chosen(records, "growth", kind=kind, work=work)
        names = contenders(own)
        rows = [
            [f"{record.labels['objects']:,}"]
            + [
                f"{significant(record.times[name].minimum / int(record.labels['objects']) * 1e9)}"
                if name in record.times
                else record.notes.get(name, "")
                for name in names
            ]
            for record in own
        ]
        parts.append(f"### {str(kind).capitalize()}, {work}\n\n{table(['objects', *names], rows)}")
    intro = "Nanoseconds an object. Every tenth object holds nine leaves."
    return "\n".join([f"{intro} Of modules, JAX has its own.\n", *parts])


def _plain(label: str, intro: str) -> Callable[[list[Record]], str]:
    """A table of times with one column of labels."""

    def write(records: list[Record]) -> str:
        names = contenders(records)
        rows = [[f"{record.labels[label]:,}", *cells(record, names)] for record in records]
        return f"{intro}\n\n{table([label, *names], rows)}"

    return write


def _depth(records: list[Record]) -> str:
    parts = []
    for kind in dict.fromkeys(record.labels["kind"] for record in records):
        depths = dict.fromkeys(r.labels["depth"] for r in records if r.labels["kind"] == kind)
        merged = []
        for depth in depths:
            own = chosen(records, "depth", kind=kind, depth=depth)
            all_times = {name: t for record in own for name, t in record.times.items()}
            notes = {name: text for record in own for name, text in record.notes.items()}
            merged.append(Record("depth", {"depth": depth}, all_times, notes))
        parts.append(_plain("depth", f"### Chain of {kind}s")(merged))
    return "Each other library runs in a process of its own, on lists.\n\n" + "\n".join(parts)


def _specs(records: list[Record]) -> str:
    parts = []
    for work in dict.fromkeys(str(record.labels["work"]) for record in records):
        parts.append(f"### `{work}`\n\n{_race(chosen(records, 'specs', work=work))}")
    first = chosen(records, "specs", work="hash")
    names = union(record.facts for record in first)
    rows = [
        [
            str(record.labels["model"]),
            *(significant(record.facts[name]) if name in record.facts else "" for name in names),
        ]
        for record in first
    ]
    parts.append(f"### Size\n\n{table(['model', *names], rows)}")
    intro = """\
*One after the other*: of two trees built alike, in one process. *Equal*: with one that was pickled
and read again. *Unequal*: in the last place only. The bytes of pydag's are what `sys.getsizeof`
says; those of the others what malloc gave, without the Python objects they keep.

"""
    return intro + "\n".join(parts)


def _limit(records: list[Record]) -> str:
    parts = []
    for mapping in dict.fromkeys(record.labels["mapping"] for record in records):
        own = chosen(records, "limit", mapping=mapping)
        ratios = [r.times["pydag"].minimum / r.times[BARE].minimum for r in own]
        rows = [
            [str(record.labels["model"]), *cells(record, ["pydag", BARE]), times(ratio)]
            for record, ratio in zip(own, ratios, strict=True)
        ]
        mean, worst = times(geometric_mean(ratios)), times(max(ratios))
        rows.append(["geometric mean; worst", "", "", f"{mean}; {worst}"])
        parts.append(f"### {mapping}\n\n{table(['model', 'pydag', BARE, 'ratio'], rows)}")
    intro = """\
A C++ walk over the same containers that only collects the leaves' addresses: no structure, no
order of keys, no identity, no references. pydag's flatten as a multiple of it.

"""
    return intro + "\n".join(parts)


def _folds(records: list[Record]) -> str:
    parts = []
    for work in dict.fromkeys(str(record.labels["work"]) for record in records):
        rows = []
        for record in chosen(records, "folds", work=work):
            ours = record.times["pydag"].minimum
            first = [str(record.labels["shape"]), str(record.labels["owner"])]
            nanoseconds = significant(ours / record.facts["nodes"] * 1e9)
            for name in contenders([record]):
                if name == "pydag":
                    continue
                ratio = times(record.times[name].minimum / ours) if name in record.times else ""
                [cell] = cells(record, [name])
                rows.append([*first, name, duration(ours), nanoseconds, cell, ratio])
        head = ["expression", "objects", "beside", "pydag", "ns a node", "the other", "times"]
        parts.append(f"### {work.capitalize()}\n\n{table(head, rows, left=3)}")
    intro = """\
Sums and products of variables. On plain classes pydag stands beside a recursion with a memo; on the
classes of a library, beside what the library has for them. *Count*: `dag_structure(e).num_nodes`.
*Height*: a fold, with a Python function for each node. *Rewrite one variable*: a function for
variables alone; *rewrite nothing*: one for each node, which returns it. *Intern*: equal parts found
in an expression in which none is shared. sympy's and UFL's classes are opened and built by calling
them. The nodes are those that pydag meets: pymbolic's hold their parts in tuples, which count.

"""
    return intro + "\n".join(parts)


def _copies(records: list[Record]) -> str:
    others = [name for name in contenders(records) if name not in (CONTAINERS, ARRAYS)]
    rows = [
        [
            str(record.labels["model"]),
            *cells(record, [CONTAINERS, ARRAYS, *others]),
            *(times(record.times[name].minimum / record.times[ARRAYS].minimum) for name in others),
        ]
        for record in records
    ]
    head = ["model", CONTAINERS, ARRAYS, *others, *(f"{name} / arrays too" for name in others)]
    intro = f"""\
Models as dicts, a tenth of the modules shared, with arrays of {ARRAY_SIZE} numbers. All keep what
is shared. `dag_copy` makes the containers anew, and with `leaf=copy.copy` the arrays; what an array
looks into (a view's memory) and the aux_data of classes stay common to both, as with `copy.copy`.

"""
    return intro + table(head, rows)


def _cliffs(records: list[Record]) -> str:
    intro = """\
Workloads at which a library that is fast on ordinary trees may be slow. *≥*: the time of the
fastest other library over pydag's. *≤*: pydag's time over the other one, which is that of another
library, of pydag for the like of it without the oddity, or a time that was set.

"""
    return intro + cliff_table(records)


_SECTIONS: list[tuple[str, str, Callable[[list[Record]], str]]] = [
    ("The eight tables", "tables", _tables),
    ("Flatten without short cuts", "cold", _cold),
    ("Modules", "modules", _modules),
    ("The jit boundary", "boundary", boundary_report.section),
    ("Growth", "growth", _growth),
    ("Sharing depth", "sharing", _plain("depth", "`t = [t, t]`, so many times.")),
    ("Nesting", "depth", _depth),
    ("Specs", "specs", _specs),
    ("Folds and rewrites", "folds", _folds),
    ("Copies of state", "copies", _copies),
    ("The limit", "limit", _limit),
    ("Where it is slower", "cliffs", _cliffs),
]
