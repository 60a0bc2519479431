# SPDX-License-Identifier: Apache-2.0
"""A DAG as text: a tree with each shared object once, a table of leaves, a drawing for Graphviz."""

import itertools
from typing import NamedTuple

from .html import escaped
from .leaves import cut
from .model import Row, ViewModel


class _Guides:
    """The lines that lead from a row to its parent; in a deep tree the innermost are left out."""

    def __init__(self, width: int | None) -> None:
        self._most = None if width is None else max(width // 6, 1)
        self._guides: list[str] = []

    def of(self, row: Row) -> str:
        """The text before a row."""
        if row.level == 0:
            return ""
        del self._guides[row.level - 1 :]
        if self._most is not None and row.level > self._most:
            before = "".join(self._guides[: self._most]) + f"… {row.level}: "
        else:
            before = "".join(self._guides) + ("└─ " if row.is_last else "├─ ")
        self._guides.append("   " if row.is_last else "│  ")
        return before


def text(model: ViewModel, depth: int | None, width: int | None, limit: int | None) -> str:
    """The text tree, with a line of totals."""
    shown = list(model.rows(depth, limit))
    displayed = {row.position for row in shown}
    guides = _Guides(width)
    lines = []
    for row in shown:
        line, note = guides.of(row) + row_text(model, row, displayed), model.note(row.position)
        lines.append((line if width is None else cut(line, width - len(note))) + note)
    if more := model.more(shown):
        lines.append(more)
    return "\n".join([*lines, model.foot()])


def row_text(model: ViewModel, row: Row, displayed: set[int] | None = None) -> str:
    """A row without its guides and its note.

    Args:
        displayed: The positions that are shown: an alias of any other position names its path.
    """
    step = model.step(row.position)
    anchor = "" if displayed is None else model.anchor(row.position, displayed)
    parts = [f"{step}:" if step else "", model.label(row.position), anchor, row.hidden]
    return " ".join(filter(None, parts))


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


def table(model: ViewModel, width: int | None, limit: int | None) -> Table:
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


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def dot(model: ViewModel, depth: int | None, limit: int | None) -> str:
    """The text that Graphviz reads: a box for each object, an arrow for each slot."""
    shown = list(model.rows(depth, limit, boxes=True))
    displayed = {row.position for row in shown}
    lines = [
        "digraph dag {",
        "  node [shape=box, style=rounded, fontname=monospace, fontsize=10];",
        "  edge [fontname=monospace, fontsize=9];",
    ]
    for row in shown:
        position, record = row.position, model.listing.records[row.position]
        target = model.listing.target(position)
        if not record.is_alias or target not in displayed:
            parts = [model.label(position), model.anchor(position, displayed), row.hidden]
            label = " ".join(filter(None, parts)) + model.note(position)
            look = ", style=filled, fillcolor=lightblue" if record.number >= 0 else ""
            look += ", shape=ellipse" if record.is_leaf else ""
            lines.append(f"  n{position} [label={_quoted(label)}{look}];")
            target = position
        if position > 0:
            parent = model.listing.parents[position]
            lines.append(f"  n{parent} -> n{target} [label={_quoted(model.step(position))}];")
    if more := model.more(shown):
        lines.append(f"  more [label={_quoted(more)}, shape=plaintext];")
    return "\n".join([*lines, f"  label={_quoted(str(model.totals))};", "}"]) + "\n"


def svg(text: str) -> str:
    """The drawing of a Graphviz text.

    Raises:
        ImportError: Graphviz isn't installed.
    """
    import shutil  # both are slow to import, and only drawings need them
    import subprocess

    program = shutil.which("dot")
    if program is None:
        raise ImportError(
            "an SVG is drawn by Graphviz, whose program `dot` isn't installed (apt-get install "
            "graphviz, brew install graphviz); `.dot()` and `.save('x.dot')` work without it"
        )
    done = subprocess.run(
        [program, "-Tsvg"], input=text, capture_output=True, text=True, encoding="utf-8", check=True
    )
    return done.stdout
