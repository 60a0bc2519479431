# SPDX-License-Identifier: Apache-2.0
"""Six printers on one tied model, and on a twelve-fold `[t, t]`: `python benchmarks/views.py`.

How many arrays each writes out, where the model has so many distinct ones; whether its totals are
those of the distinct arrays; how long it takes, and how much it prints. A full run writes the table
into docs/looking.md, and draws docs/looking.png where there is a Chromium.
"""

import importlib
import pprint
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
from files import insert, transformer
from words import duration, table

import pydag

PAGE = Path(__file__).parents[1] / "docs/looking.md"
BEGIN, END = "<!-- figures: views -->", "<!-- /figures: views -->"
# An array as one of the printers writes it.
ARRAY = re.compile(r"\bf32\[|\bArray\(|\bfloat32\[|jax\.Array")


def _treescope(tree: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks at all of NumPy, deprecated parts included
        return str(importlib.import_module("treescope").render_to_text(tree))


PRINTERS: dict[str, Callable[[Any], str]] = {
    "pydag.view": lambda tree: str(pydag.view(tree, limit=None)),
    "repr": repr,
    "pprint": pprint.pformat,
    "rich": lambda tree: str(importlib.import_module("rich.pretty").pretty_repr(tree)),
    "eqx.tree_pformat": lambda tree: str(importlib.import_module("equinox").tree_pformat(tree)),
    "treescope": _treescope,
}


def shared(times: int) -> Any:
    """`[t, t]`, so many times."""
    tree: Any = [jnp.ones((2, 3))]
    for _ in range(times):
        tree = [tree, tree]
    return tree


def row(name: str, tree: Any) -> list[str]:
    """One line of a table."""
    PRINTERS[name]([1])  # what is imported at the first use
    began = time.perf_counter()
    text = PRINTERS[name](tree)
    took = time.perf_counter() - began
    parameters = sum(leaf.size for leaf in pydag.dag_leaves(tree))
    right = re.search(rf"\b{parameters} parameters", text) is not None
    total = "right" if right else "none"
    return [name, str(len(ARRAY.findall(text))), total, duration(took), f"{len(text):,}"]


def draw(path: Path) -> None:
    """The HTML of the tied model, as a browser shows it; nothing where there is no Chromium."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "view.html"
        pydag.view(transformer(256, 2, 32_000)).save(page)
        unfolded = page.read_text("utf-8").replace("<details>", "<details open>")
        page.write_text(unfolded, "utf-8")
        options = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *(f"--user-data-dir={folder}/profile", "--window-size=720,560"),
        ]
        subprocess.run([browser, *options, f"--screenshot={path}", page.as_uri()], check=True)


def main(small: bool) -> str:
    """Both tables."""
    parts = []
    trees = {
        "A transformer of four layers, tied": transformer(16, 4, 100),
        "Twelve times `t = [t, t]`": shared(4 if small else 12),
    }
    for title, tree in trees.items():
        number = pydag.dag_structure(tree).num_leaves
        head = [title, f"arrays written, of {number}", "total", "time", "characters"]
        parts.append(table(head, [row(name, tree) for name in PRINTERS]))
    return "\n".join(parts)


if __name__ == "__main__":
    is_small = "--small" in sys.argv
    found = main(is_small)
    print(found)
    if not is_small:
        insert(PAGE, BEGIN, END, found)
        draw(PAGE.with_name("looking.png"))
