# SPDX-License-Identifier: Apache-2.0
"""Views within rich and treescope. They call these functions, so they are installed."""

import re
from typing import Any

from .model import Model
from .text import row_text


def rich_text(text: str) -> Any:
    """The text tree with its marks and arrays in colour."""
    from rich.text import Text

    result = Text(text, no_wrap=True, overflow="ellipsis")
    for pattern, style in (
        (r"(?<=: )[&*]\d+\b|^[&*]\d+\b", "bold cyan"),
        (r"\b[a-z]+\d+\w*\[[\d,]*\]", "green"),
        (r"[│├└─]+", "dim"),
    ):
        for found in re.finditer(pattern, text, re.MULTILINE):
            result.stylize(style, *found.span())
    return result


def treescope_tree(model: Model, depth: int | None, limit: int | None, path: str | None) -> Any:
    """The rows as treescope's own foldable nodes."""
    from treescope import rendering_parts as parts

    depth = 40 if depth is None else min(depth, 40)  # treescope goes down by recursion
    rows = list(model.rows(depth, limit))
    seen = {row.position for row in rows}
    children: list[list[Any]] = [[] for _ in range(max((row.level for row in rows), default=0) + 2)]
    # From the last row to the first: the children of a row are made before it.
    for row in reversed(rows):
        line = parts.text(row_text(model, row, seen))
        if row.has_rows and children[row.level + 1]:
            below = children[row.level + 1][::-1]
            node = parts.build_foldable_tree_node_from_children(
                prefix=parts.siblings(line, parts.text(" (")),
                children=below,
                suffix=")",
                comma_separated=True,
                path=path if row.level == 0 else None,
            )
            node = getattr(node, "renderable", node)
        else:
            node = line
        children[row.level + 1] = []
        children[row.level].append(node)
    totals = parts.text(str(model.totals))
    if more := model.more(rows):
        totals = parts.siblings(parts.text(f"{more}; "), totals)
    return parts.siblings(*children[0], parts.text("\n"), totals)
