# SPDX-License-Identifier: Apache-2.0
"""`pydag.view`: shows a DAG as text, in notebooks, with rich and treescope, and saves it."""

import os
import re
from typing import Any, Unpack

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.public.options import with_options
from pydag.structure.listing import Listing
from pydag.typing import Dag, FlattenOptions

from .html import html_page, html_piece
from .leaves import Infos
from .model import Totals, ViewModel
from .text import Table, dot, row_text, svg, table, text

_SUFFIXES = (".html", ".svg", ".dot", ".txt")


class View:
    """A DAG shown as text, in a notebook as HTML, as a table or as a drawing.

    `pydag.view` makes it. It shows the DAG as it was at that time.
    """

    def __init__(
        self, model: ViewModel, depth: int | None, width: int | None, limit: int | None
    ) -> None:
        self._model, self._depth, self._width, self._limit = model, depth, width, limit

    @property
    def totals(self) -> Totals:
        """Objects, leaves, parameters and bytes; `unfolded` has these numbers without sharing."""
        return self._model.totals

    def __str__(self) -> str:
        return text(self._model, self._depth, self._width, self._limit)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_piece(self._model, self._depth, self._limit)

    def __rich__(self) -> Any:
        return rich_text(str(self))

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        return treescope_tree(self._model, self._depth, self._limit, path)

    def table(self) -> Table:
        """A row for each distinct leaf: path, further paths, shape, dtype, bytes."""
        return table(self._model, self._width, self._limit)

    def dot(self) -> str:
        """The text that Graphviz draws: a box for each object, an arrow for each slot."""
        return dot(self._model, self._depth, self._limit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the view to a file: `.html`, `.svg`, `.dot` or `.txt`.

        Args:
            path: The file. Its suffix chooses the format.

        Raises:
            ValueError: The suffix is another.
            ImportError: The suffix is `.svg`, and Graphviz isn't installed.
        """
        from pathlib import Path

        suffix = Path(path).suffix.lower()
        if suffix not in _SUFFIXES:
            raise ValueError(
                f"a view is saved as one of {', '.join(_SUFFIXES)}, not as {suffix!r}: {path}"
            )
        if suffix == ".html":
            content = html_page(self._repr_html_())
        elif suffix == ".svg":
            content = svg(self.dot())
        else:
            content = self.dot() if suffix == ".dot" else str(self) + "\n"
        Path(path).write_text(content, "utf-8", errors="backslashreplace")


def check_bounds(depth: int | None, width: int | None, limit: int | None) -> None:
    """Checks the arguments of `view`."""
    for name, value, least in (("depth", depth, 0), ("width", width, 8), ("limit", limit, 1)):
        if value is None:
            continue
        if not isinstance(value, int):
            raise TypeError(f"{name} must be None or an integer, got {value!r}")
        if value < least:
            raise ValueError(f"{name} must be None or at least {least}, got {value}")


@with_options
def view(
    tree: Dag,
    depth: int | None = None,
    width: int | None = 100,
    limit: int | None = 200,
    **options: Unpack[FlattenOptions],
) -> View:
    """Show a DAG: each shared object once, `&0` at its anchor, `*0` at each alias.

    Arrays are shown by type and shape, configuration (meta fields, aux_data) in brackets. The last
    line counts objects (containers and leaves), leaves, parameters (elements of arrays) and bytes,
    and the same without sharing. A notebook shows HTML that folds and links.

    Args:
        tree: A DAG, or a `PyDagSpec`.
        depth: How many levels below the root are shown; None: all.
        width: The longest line, in characters; None: any length.
        limit: The most lines, and rows of the table; None: all of them.

    >>> import numpy as np
    >>> w = np.zeros((128, 64), np.float32)
    >>> model = {"encoder": w, "decoder": {"out": w, "eps": 1e-6}}
    >>> print(pydag.view(model))  # doctest: +NORMALIZE_WHITESPACE
    dict
    ├─ ['decoder']: dict
    │  ├─ ['eps']: 1e-06
    │  └─ ['out']: &0 f32[128,64]
    └─ ['encoder']: *0
    4 objects, 2 leaves, 8192 parameters, 32768 bytes;
    unfolded: 5 objects, 3 leaves, 16384 parameters, 65536 bytes
    """
    check_bounds(depth, width, limit)
    if isinstance(tree, PyDagSpec):
        _core.leaves(None, **options)  # raises for an unknown option, here, too
        listing = Listing.of(tree)
        return View(ViewModel(listing, Infos.unknown(listing)), depth, width, limit)
    leaves, spec = _core.flatten_at(tree, "tree", **options)
    return View(ViewModel(Listing.of(spec), Infos.of(leaves)), depth, width, limit)


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


def treescope_tree(model: ViewModel, depth: int | None, limit: int | None, path: str | None) -> Any:
    """The rows as treescope's own foldable nodes."""
    from treescope import rendering_parts as parts

    depth = 40 if depth is None else min(depth, 40)  # treescope goes down by recursion
    rows = list(model.rows(depth, limit))
    displayed = {row.position for row in rows}
    children: list[list[Any]] = [[] for _ in range(max((row.level for row in rows), default=0) + 2)]
    # From the last row to the first: the children of a row are made before it.
    for row in reversed(rows):
        line = parts.text(row_text(model, row, displayed) + model.note(row.position))
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
    totals = parts.text(model.foot())
    if more := model.more(rows):
        totals = parts.siblings(parts.text(f"{more}; "), totals)
    return parts.siblings(*children[0], parts.text("\n"), totals)
