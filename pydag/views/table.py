# SPDX-License-Identifier: Apache-2.0
"""The distinct leaves of a DAG as a table."""

import itertools
from typing import NamedTuple

from .html import escaped
from .leaves import cut
from .model import Model

_ALSO = 3  # further paths that are written out


class TableRow(NamedTuple):
    """A distinct leaf."""

    path: str
    also_at: tuple[str, ...]  # the first of its further paths
    num_paths: int
    shape: tuple[int, ...] | None
    dtype: str
    bytes: int


class Table(str):
    """A table as text, which a notebook shows as HTML. `rows` has its content."""

    __slots__ = ("more", "rows", "totals")
    rows: list[TableRow]
    more: int
    totals: str

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _HEAD)
        body = "".join(
            "<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in _cells(row)) + "</tr>"
            for row in self.rows
        )
        more = f"<p>... and {self.more} more</p>" if self.more else ""
        return f"<table><tr>{head}</tr>{body}</table>{more}<p>{self.totals}</p>"


_HEAD = ("path", "also at", "shape", "dtype", "bytes")


def _cells(row: TableRow) -> tuple[str, str, str, str, str]:
    also = ", ".join(row.also_at)
    if (rest := row.num_paths - 1 - len(row.also_at)) > 0:
        also += f" and {rest} more"
    shape = "" if row.shape is None else str(row.shape)
    return row.path, also, shape, row.dtype, "" if row.shape is None else str(row.bytes)


def table(model: Model, width: int | None, limit: int | None) -> Table:
    """A row for each distinct leaf, at most `limit`, and the totals."""
    listing, ways = model.listing, model.listing.num_ways()
    rows = []
    for position in itertools.islice(listing.leaves, limit):
        leaf = model.leaf(position)
        found = itertools.islice(listing.ways(position), 1, 1 + _ALSO)
        also = tuple(cut("".join(map(model.step, w)).removeprefix("."), 200) for w in found)
        path, number = model.path(position), ways[position]
        rows.append(TableRow(path, also, number, leaf.shape, leaf.dtype, leaf.bytes))
    more = len(listing.leaves) - len(rows)
    cells = [_HEAD, *map(_cells, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(_HEAD))]
    if width is not None:
        room = max(width - sum(widths[2:]) - 8, 20)
        widths[:2] = [min(widths[0], max(room // 2, room - widths[1])), widths[1]]
        widths[1] = min(widths[1], max(room - widths[0], 10))
    lines = [_line(row, widths) for row in cells]
    lines.insert(1, "  ".join("─" * n for n in widths))
    if more:
        lines.append(f"... and {more} more")
    result = Table("\n".join([*lines, str(model.totals)]))
    result.rows, result.more, result.totals = rows, more, str(model.totals)
    return result


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    parts = [cut(cell, n).ljust(n) for cell, n in zip(cells, widths, strict=True)]
    parts[-1] = cells[-1].rjust(widths[-1])
    return "  ".join(parts).rstrip()
