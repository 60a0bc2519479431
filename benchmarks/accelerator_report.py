# SPDX-License-Identifier: Apache-2.0
"""The page's section about training on an accelerator: from a file, for it is another machine."""

import json
from pathlib import Path
from textwrap import fill
from typing import Any

from records import Record
from words import duration, significant, table

FILE = Path(__file__).with_name("accelerator.json")
BY_HAND, PYDAG = "JAX, tied by hand", "pydag"
HEAD = ("parameters", "peak", "step", "host", "loss")


def agreement(ways: list[dict[str, Any]]) -> bool | None:
    """Whether the tie by hand and pydag computed the same bits; None where one has no figures."""
    found = {way["way"]: (way.get("losses"), way.get("checksum")) for way in ways}
    one, other = found.get(BY_HAND, (None, None)), found.get(PYDAG, (None, None))
    return one == other if one[1] is not None and other[1] is not None else None


def rows_of(results: dict[str, Any], size: dict[str, Any]) -> str:
    """A table: a row for each way."""
    rows = [[way["way"], *_cells(way)] for way in size["ways"]]
    width = f"{size['width']:,}" if size["width"] else "not known"
    return table([f"width {width}, {results['about'].get('dtype', '')}", *HEAD], rows)


def _cells(way: dict[str, Any]) -> list[str]:
    def gigabytes(name: str) -> str:
        return f"{significant(way[name] / 1e9)} GB" if way.get(name) else ""

    return [
        f"{way['parameters']:,}" if "parameters" in way else "",
        way.get("note") or gigabytes("peak_bytes") or "not known",
        *(duration(way[n]) if n in way else "" for n in ("step_s", "host_s")),
        f"{way['loss']:.6f}" if "loss" in way else "",
    ]


def section(_: list[Record], file: Path = FILE) -> str:
    """A table for each size, of the last run on an accelerator."""
    if not file.exists():
        return ""
    results = json.loads(file.read_text("utf-8"))
    about = results["about"]
    versions = ", ".join(f"{name} {text}" for name, text in about["versions"].items())
    same = [size["same_bits"] for size in results["sizes"]]
    agree = (
        f"After {about['steps']} steps pydag and the tie by hand have the same losses and "
        "parameters, to the last bit."
        if same and all(same)
        else ""
    )
    text = f"""\
`benchmarks/accelerator.py` trains a language model whose embedding table is also its output layer,
with Adam, on an {about["device"]} with {about["limit_bytes"] / 1e9:.0f} GB to use ({versions};
{about["date"]}). *Peak* is the device's memory, *host* the time until a call returns. {agree}"""
    tables = "\n".join(rows_of(results, size) for size in results["sizes"])
    return f"{fill(text, 100)}\n\n{tables}"
