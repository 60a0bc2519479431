# SPDX-License-Identifier: Apache-2.0
"""The page's section about the jit boundary."""

from collections.abc import Callable

from boundary import FLOOR, OURS, WORKS
from calls import DONATED, EAGER, KEPT, OPTIONS, PLAIN
from dispatch import CHAINED, DISPATCH, LEAVES, RETURNS, STEP
from records import Record, chosen
from timing import Times
from updated import RETURNED, UPDATED
from words import cells, contenders, duration, significant, table, times, union


def section(records: list[Record]) -> str:
    """All of it."""
    parts = ["The whole call, and in brackets how many times the floor.\n"]
    for work in WORKS:
        own = chosen(records, "boundary", work=work)
        if own:
            parts.append(f"### A function that {work}s the model\n\n{_models(own)}")
    for work, title, write in (
        (OPTIONS, "With options", _options),
        (EAGER, "Wrappers that compile nothing", _eager),
        (UPDATED, "A model that is updated in place", _updated),
        (DISPATCH, "Asynchronous dispatch", _dispatch),
    ):
        own = chosen(records, "boundary", work=work)
        if own:
            parts.append(f"### {title}\n\n{write(own)}")
    return "\n".join(parts)


def _models(records: list[Record]) -> str:
    return _by_leaves(records, lambda record, name: FLOOR)


def _by_leaves(records: list[Record], base: Callable[[Record, str], str]) -> str:
    """A row for each contender: its time, and how many times that of another one."""
    rows = []
    for name in contenders(records):
        row = [name]
        for record in records:
            [cell] = cells(record, [name])
            ratio = _ratio(record, name, base(record, name))
            row.append(cell if ratio is None else f"{cell} ({times(ratio)})")
        rows.append(row)
    return table(["", *(f"{record.labels['leaves']} leaves" for record in records)], rows)


def _ratio(record: Record, name: str, other: str) -> float | None:
    """How many times as long one takes as another; None where one of them was out."""
    if name not in record.times or other not in record.times:
        return None
    return record.times[name].minimum / record.times[other].minimum


def _options(records: list[Record]) -> str:
    def base(_: Record, name: str) -> str:
        owner, what = name.split(": ")
        return f"{owner}: {KEPT if what in (KEPT, DONATED) else PLAIN}"

    return f"""\
A dict of arrays, in brackets beside the call without the option, of the same library. *{DONATED}*:
steps that update the model, each given what the last one returned.

{_by_leaves(records, base)}"""


def _eager(records: list[Record]) -> str:
    rows = []
    for wrapper in union([str(record.labels["wrapper"])] for record in records):
        row = [wrapper]
        for record in chosen(records, "boundary", wrapper=wrapper):
            row += cells(record, ["pydag", "jax"])
            row.append(times(_ratio(record, "pydag", "jax")))
        rows.append(row)
    sizes = union([str(record.labels["leaves"])] for record in records)
    head = [text for size in sizes for text in (f"pydag, {size} leaves", "jax", "pydag / jax")]
    intro = (
        "Functions that return what they are given, called outside of `jit`, with a dict of arrays."
    )
    return f"{intro}\n\n{table(['', *head], rows)}"


def _updated(records: list[Record]) -> str:
    def base(_: Record, name: str) -> str:
        return f"{name.split(', ')[0]}, {RETURNED}"

    intro = (
        "A step that replaces every array of its model: written into the caller's objects by "
        "`update_argnums`, or with the model as its result, which the next step is given. In "
        "brackets how many times the latter."
    )
    return f"{intro}\n\n{_by_leaves(records, base)}"


def _dispatch(records: list[Record]) -> str:
    """What a call keeps the program, beside what the device needs."""
    found = {str(record.labels["what"]): record for record in records}
    names = contenders(records)
    rows = [[name, *(_both(record.times[name]) for record in found.values())] for name in names]
    floor, ours = (found[RETURNS].times[name].minimum for name in (FLOOR, OURS[0]))
    return f"""\
JAX returns from a call before the result is there, and the program can dispatch the next one
meanwhile. Here on the CPU, with asynchronous dispatch turned on: a function that reads {LEAVES:,}
arrays, and then works for about {duration(STEP)}, as a decode step of a small language model does.
*{CHAINED.capitalize()}*: each step is given what the last one returned, and only the last result is
waited for. The work and the dispatch share the cores here; on an accelerator they don't. The
minimum, and in brackets the median.

{table(["", *found], rows)}
By the minima a call returns after {duration(floor)} with a flat tuple, and after {duration(ours)}
with a dict: what pydag adds is {_share(ours - floor)} of a step of {duration(STEP)}, and JAX's own
part {_share(floor)}. On an accelerator all of it is hidden behind the step before, as long as
dispatching takes less time than the step.
"""


def _both(found: Times) -> str:
    return f"{duration(found.minimum)} ({duration(found.median)})"


def _share(seconds: float) -> str:
    return f"{significant(100 * max(seconds, 0.0) / STEP, 2)} %"
