# SPDX-License-Identifier: Apache-2.0
"""Where two structures differ: in words, and side by side with marks, as views show them."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.structure.listing import MAPPINGS, NAMED, Listing

from .html import escaped
from .leaves import Infos, cut
from .model import Row, ViewModel
from .text import row_text


class TreeLine(NamedTuple):
    """A line: a node of each side, or a node of only one side."""

    level: int
    left: int | None
    right: int | None
    differs: bool


class _Comparison:
    """Goes through both structures in step. Below nodes that differ nothing is compared."""

    def __init__(self, left: Listing, right: Listing) -> None:
        self._sides = left, right
        self._partner: dict[int, int] = {}  # of each node on the left

    def pairs(self) -> Iterator[TreeLine]:
        """The lines, in order."""
        pending: list[tuple[int, int | None, int | None]] = [(0, 0, 0)]
        while pending:
            level, a, b = pending.pop()
            if a is None or b is None:
                yield TreeLine(level, a, b, True)
                continue
            self._partner[a] = b
            same = self._same(a, b)
            yield TreeLine(level, a, b, not same)
            x, y = self._sides[0].records[a], self._sides[1].records[b]
            # Nodes that differ may still have children that can be shown side by side.
            if same or ((x.kind, x.type) == (y.kind, y.type) and not x.is_alias):
                pending += [(level + 1, *pair) for pair in reversed(self._children(a, b))]

    def _same(self, a: int, b: int) -> bool:
        left, right = self._sides
        x, y = left.records[a], right.records[b]
        if x.is_alias or y.is_alias:
            partner = self._partner.get(left.target(a))
            return x.is_alias and y.is_alias and partner == right.target(b)
        if x.kind != y.kind or not x.fits(y) or not _equal(x.detail, y.detail):
            return False
        return x.kind not in MAPPINGS or (
            left.named_children(a).keys() == right.named_children(b).keys()
        )

    def _children(self, a: int, b: int) -> list[tuple[int | None, int | None]]:
        left, right = self._sides
        kind = left.records[a].kind
        if kind not in NAMED:
            return list(itertools.zip_longest(left.children(a), right.children(b)))
        own, other = left.named_children(a), right.named_children(b)
        both: list[tuple[int | None, int | None]] = [
            (position, other.get(entry)) for entry, position in own.items()
        ]
        return both + [(None, p) for entry, p in other.items() if entry not in own]


def _equal(a: object, b: object) -> bool:
    try:
        return a is b or bool(a == b)
    except Exception:  # the comparison failed
        return False


class SideBySide:
    """Two structures side by side; `!` marks the lines that differ. In a notebook it is HTML."""

    def __init__(
        self, left: PyDagSpec, right: PyDagSpec, width: int = 100, limit: int | None = 200
    ) -> None:
        listings = Listing.of(left), Listing.of(right)
        self._models = [ViewModel(listing, Infos.unknown(listing)) for listing in listings]
        self._width = width
        pairs = _Comparison(*listings).pairs()
        self._lines = [
            (pair.differs, self._cell(0, pair), self._cell(1, pair))
            for pair in itertools.islice(pairs, limit)
        ]
        self._more = sum(1 for _ in pairs)

    def _cell(self, side: int, pair: TreeLine) -> str:
        position = pair.right if side else pair.left
        if position is None:
            return ""
        model = self._models[side]
        row = Row(position, pair.level, True, "", False)
        indent = "  " * min(pair.level, self._width // 8)
        return indent + row_text(model, row)

    def __str__(self) -> str:
        half = max((self._width - 5) // 2, 10)
        lines = [f"  {'first'.ljust(half)} │ second"]
        for differs, *cells in self._lines:
            left, right = (cut(cell, half) for cell in cells)
            lines.append(f"{'!' if differs else ' '} {left.ljust(half)} │ {right}".rstrip())
        if self._more:
            lines.append(f"... and {self._more} more lines")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr{_COLOUR if differs else ''}>"
            + "".join(f"<td>{escaped(cell)}</td>" for cell in cells)
            + "</tr>"
            for differs, *cells in self._lines
        )
        more = f"<p>... and {self._more} more lines</p>" if self._more else ""
        return (
            '<table style="font-family:monospace;white-space:pre;text-align:left">'
            f"<tr><th>first</th><th>second</th></tr>{rows}</table>{more}"
        )


_COLOUR = ' style="background:#ffe08a;color:#000"'


class Explanation(str):
    """Where two structures differ, as text; `side_by_side` shows both structures."""

    __slots__ = ("_specs",)
    _specs: tuple[PyDagSpec, PyDagSpec]

    def side_by_side(self, width: int = 100, limit: int | None = 200) -> SideBySide:
        """Both structures as `view` shows them, line by line; `!` marks the lines that differ.

        Args:
            width: The longest line, in characters.
            limit: The most lines; None: all of them.
        """
        return SideBySide(*self._specs, width, limit)


def explain(spec_a: PyDagSpec, spec_b: PyDagSpec) -> Explanation:
    """Where two structures differ, in words; empty if and only if they are equal.

    It names the first eight differences by their paths: nodes that differ, or two paths that lead
    to one object in one structure and to two in the other. Below nodes that differ nothing is
    compared. The cost is linear in the number of objects.

    Args:
        spec_a: The first structure.
        spec_b: The second.

    >>> w = [1.0]
    >>> tied, untied = {"a": w, "b": w}, {"a": w, "b": [1.0]}
    >>> print(explain(pydag.dag_structure(tied), pydag.dag_structure(untied)))
    tree['a'] and tree['b']
      first:  one object
      second: two objects

    `explain(a, b).side_by_side()` shows both structures beside each other.
    """
    explanation = Explanation(_core.explain(spec_a, spec_b))
    explanation._specs = spec_a, spec_b
    return explanation
