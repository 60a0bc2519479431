# SPDX-License-Identifier: Apache-2.0
"""The page's section about calls of compiled functions."""

from boundary import FLOOR, OURS
from dispatch import DISPATCH, LEAVES, RETURNS, STEP
from records import Record, chosen
from refs import ARRAYS, REFS
from words import contenders, duration, significant, table, times


def section(records: list[Record]) -> str:
    """A table of models, one of refs, and what a call keeps the program."""
    parts = []
    if own := chosen(records, "boundary", work="update"):
        parts.append(f"""\
A compiled function gets a model, changes each of its arrays and returns it. It computes almost
nothing, so the time is that of the call. The floor is `jax.jit` with a flat tuple of arrays; all
others are given as multiples of its time.

{_by_leaves(own, FLOOR)}""")
    if own := chosen(records, "boundary", work=REFS):
        parts.append(f"""\
With refs, the function writes into each ref of a model and returns nothing. The floor is `jax.jit`
with arrays that are donated and returned.

{_by_leaves(own, ARRAYS)}""")
    found = {r.labels["what"]: r for r in chosen(records, "boundary", work=DISPATCH)}
    if RETURNS in found:
        parts.append(_dispatch(found[RETURNS]))
    return "\n".join(parts)


def _by_leaves(records: list[Record], base: str) -> str:
    """A row for each contender, at the smallest and largest size: its multiple of the floor."""
    rows = []
    records = [records[0], *records[1:][-1:]]
    for name in contenders(records):
        row = [name]
        for record in records:
            if name in record.times:
                seconds, least = record.times[name].minimum, record.times[base].minimum
                row.append(duration(least) if name == base else times(seconds / least))
            else:
                row.append(record.notes.get(name, ""))
        rows.append(row)
    return table(["", *(f"{record.labels['leaves']} leaves" for record in records)], rows)


def _dispatch(record: Record) -> str:
    """What a call keeps the program, beside what the device needs."""
    floor, ours = (record.times[name].minimum for name in (FLOOR, OURS[0]))
    return f"""\
JAX returns from a call before the result is there. So an accelerator doesn't wait as long as a call
takes less time than a step. On the CPU, with asynchronous dispatch and {LEAVES:,} arrays, a call
returns after {duration(floor)} with a flat tuple and after {duration(ours)} with a dict. Of a step
of {duration(STEP)} that is {_share(floor)} for JAX and {_share(ours - floor)} for pydag.
"""


def _share(seconds: float) -> str:
    return f"{significant(100 * max(seconds, 0.0) / STEP, 2)} %"
