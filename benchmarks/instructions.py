# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions that flatten and unflatten take for each node of ResNet152.

    python benchmarks/instructions.py

Unlike times, they hardly depend on the machine's mood: so there are bounds, and beyond one of them
this fails. It needs valgrind; without it, it prints a line and passes.
"""

import gc
import os
import re
import shutil
import subprocess
import sys

from models import NODE_COUNTS, Builder, skeletons

import pydag

MODEL = "ResNet152"
CALLS = 100

# Instructions a node, as measured on x86-64 with g++ 12 and CPython 3.13.
MEASURED = {"flatten": 152, "unflatten": 529}
SLACK = 1.3


def work(name: str, calls: int) -> None:
    """What is counted. The tree is known; its leaves are plain objects, to go without NumPy."""
    gc.disable()
    tree = Builder(leaf=object).module(skeletons()[MODEL])
    leaves, spec = pydag.dag_flatten(tree)
    assert spec.num_nodes == NODE_COUNTS[MODEL]
    for _ in range(2):  # what is only done the first time
        pydag.dag_unflatten(spec, pydag.dag_leaves(tree))
    for _ in range(calls):
        if name == "flatten":
            pydag.dag_flatten(tree)
        else:
            pydag.dag_unflatten(spec, leaves)


def count(valgrind: str, name: str, calls: int) -> int:
    """The instructions of a process that makes so many calls."""
    command = [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable]
    done = subprocess.run(
        [*command, __file__, name, str(calls)],
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
    )
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode or found is None:
        raise RuntimeError(f"callgrind failed:\n{done.stderr[-2000:]}")
    return int(found[1])


def main() -> int:
    """Count, print, and say whether the bounds hold."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("skipped: valgrind, which counts the instructions, is not installed")
        return 0
    beyond = 0
    for name, measured in MEASURED.items():
        bound = SLACK * measured
        # The difference of two runs: without what Python does to start and to end.
        more, none = count(valgrind, name, CALLS), count(valgrind, name, 0)
        each = (more - none) / CALLS / NODE_COUNTS[MODEL]
        beyond += each > bound
        verdict = "BEYOND the bound of" if each > bound else "within the bound of"
        print(f"{name}: {each:.1f} instructions a node, {verdict} {bound:.0f}", flush=True)
    return 1 if beyond else 0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        work(sys.argv[1], int(sys.argv[2]))
    else:
        sys.exit(main())
