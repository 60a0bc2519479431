# SPDX-License-Identifier: Apache-2.0
"""A DAG as a drawing: Graphviz text, and SVG where Graphviz is installed."""

from .model import Model


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def dot(model: Model, depth: int | None, limit: int | None) -> str:
    """The text that Graphviz reads: a box for each object, an arrow for each slot."""
    shown = list(model.rows(depth, limit, boxes=True))
    seen = {row.position for row in shown}
    lines = [
        "digraph dag {",
        "  node [shape=box, style=rounded, fontname=monospace, fontsize=10];",
        "  edge [fontname=monospace, fontsize=9];",
    ]
    for row in shown:
        position, record = row.position, model.listing.records[row.position]
        target = model.listing.target(position)
        if not record.is_alias or target not in seen:
            parts = [model.label(position), model.anchor(position, seen), row.hidden]
            label = " ".join(filter(None, parts))
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
