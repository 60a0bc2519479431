# SPDX-License-Identifier: Apache-2.0
"""Measures pydag beside other pytree libraries, and writes tables and a picture.

    python benchmarks [--quick] [--only tables cold ...] [--out out/benchmarks]

A full run writes benchmarks/results.json, docs/benchmarks.md with its picture and its folder of
figures, and the short table of the README. A quick one takes fewer rounds and smaller sizes. Its
figures are too rough to be published, so it writes to out/benchmarks/ alone.
"""

import argparse
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boundary
import cliffs
import cold
import copies
import depth
import figures
import folds
import growth
import limit
import modules
import rows
import specs
import tables
from peers import Peers, find_peers
from picture import draw
from readme import insert_figures
from records import Record, Results, Task, chosen
from report import FOLDER, markdown
from timing import FULL, QUICK, Effort

import pydag

ROOT = Path(__file__).parents[1]

SECTIONS: dict[str, Callable[[Peers, Effort], list[Task]]] = {
    "tables": tables.tasks,
    "cold": cold.tasks,
    "modules": modules.tasks,
    "boundary": boundary.tasks,
    "growth": growth.tasks,
    "depth": depth.tasks,
    "specs": specs.tasks,
    "folds": folds.tasks,
    "copies": copies.tasks,
    "limit": limit.tasks,
    "cliffs": cliffs.tasks,
}


def measure(peers: Peers, effort: Effort, sections: list[str]) -> list[Record]:
    """Do all the tasks, behind a progress bar."""
    from tqdm import tqdm  # here, so that the rest can be tested without it

    tasks = [task for name in sections for task in SECTIONS[name](peers, effort)]
    for message in peers.missing:
        print(message, file=sys.stderr)
    records = []
    with tqdm(tasks, unit="task", smoothing=0, dynamic_ncols=True) as bar:
        for task in bar:
            bar.set_postfix_str(task.label)
            records += task.run()
    return records


def about(peers: Peers, effort: Effort) -> dict[str, Any]:
    """What one must know to read the figures."""
    return {
        "pydag": pydag.__version__,
        "python": platform.python_version(),
        "machine": f"{processor()}, {platform.system()}",
        "commit": commit(),
        "versions": peers.versions,
        "missing": peers.missing,
        "rounds": effort.rounds,
        "quick": effort.quick,
    }


def commit() -> str:
    """The commit of the sources that are measured; nothing where there is no git."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--match="]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    return found.stdout.strip()


def processor() -> str:
    """The name of the processor, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def write(results: Results, json_file: Path, pages: Path, readme: Path | None) -> None:
    """Write the results: as JSON, a page with its picture and files, and into the README."""
    for folder in (json_file.parent, pages):
        folder.mkdir(parents=True, exist_ok=True)
    results.write(json_file)
    draw(results, pages / "benchmarks.png")
    figures.write(results, pages / FOLDER)
    (pages / "benchmarks.md").write_text(markdown(results), "utf-8")
    if readme is not None:
        insert_figures(results, readme)


def main() -> None:
    """Read the options, measure, write."""
    parser = argparse.ArgumentParser(
        prog="benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="about two minutes, rough figures")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", default=None,
                        help=f"some sections, of: {', '.join(SECTIONS)}")  # fmt: skip
    parser.add_argument("--out", type=Path, help="write there, and not into the project")
    parser.add_argument("--render", type=Path, metavar="JSON", help="draw results of earlier")
    parser.add_argument("--before", type=Path, metavar="JSON", help="prints its cliffs, too")
    options = parser.parse_args()

    if options.render:
        results = Results.read(options.render)
    else:
        peers, effort = find_peers(), QUICK if options.quick else FULL
        records = measure(peers, effort, options.only or list(SECTIONS))
        results = Results(about(peers, effort), records)

    if found := chosen(results.records, "cliffs"):
        earlier = Results.read(options.before).records if options.before else []
        print(rows.section(found, chosen(earlier, "cliffs")))
    if options.out or options.only or results.about["quick"]:
        folder = options.out or ROOT / "out/benchmarks"
        write(results, folder / "results.json", folder, None)
    else:
        folder = ROOT / "docs"
        write(results, ROOT / "benchmarks/results.json", folder, ROOT / "README.md")
    print(f"see {folder / 'benchmarks.md'}")


if __name__ == "__main__":
    main()
