# SPDX-License-Identifier: Apache-2.0
"""A DAG as a text tree, each shared object once."""

from .leaves import cut
from .model import Model, Row


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


def text(model: Model, depth: int | None, width: int | None, limit: int | None) -> str:
    """The text tree, with a line of totals."""
    shown = list(model.rows(depth, limit))
    seen = {row.position for row in shown}
    guides = _Guides(width)
    lines = []
    for row in shown:
        line = guides.of(row) + row_text(model, row, seen)
        lines.append(line if width is None else cut(line, width))
    if more := model.more(shown):
        lines.append(more)
    return "\n".join([*lines, str(model.totals)])


def row_text(model: Model, row: Row, seen: set[int] | None = None) -> str:
    """A row without its guides.

    Args:
        seen: The positions that are shown: an alias of any other position names its path.
    """
    step = model.step(row.position)
    anchor = "" if seen is None else model.anchor(row.position, seen)
    parts = [f"{step}:" if step else "", model.label(row.position), anchor, row.hidden]
    return " ".join(filter(None, parts))
