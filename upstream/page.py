# SPDX-License-Identifier: Apache-2.0
"""Writes the figures of a page: a table between two marks, with the machine and the versions."""

import importlib.metadata
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = (head, ["---"] * len(head), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write(script: str, text: str, packages: Sequence[str]) -> None:
    """Put a text between the marks of the page that lies beside a script."""
    page = Path(script).with_suffix(".md")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    machine = f"{versions}; Python {platform.python_version()}, {platform.machine()}"
    body = f"{BEGIN}\n\n{text}\n{machine}.\n\n{END}"
    old = page.read_text("utf-8")
    new = re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: body, old, flags=re.DOTALL)
    page.write_text(new, "utf-8")
    print(text, file=sys.stderr)


def least(call: Callable[[], Any], rounds: int = 15, calls: int = 20) -> float:
    """The time of a call in seconds: the minimum of some rounds."""
    for _ in range(3):
        call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls)
    return min(times)


def micro(seconds: float) -> str:
    """A time in microseconds."""
    return f"{seconds * 1e6:,.0f} µs"
