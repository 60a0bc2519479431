# SPDX-License-Identifier: Apache-2.0
"""Trains a tied language model that is as large as the device allows, in four ways.

    python benchmarks/accelerator.py [--fraction 0.58 0.3] [--out out/benchmarks/accelerator.json]

Each way is a process of its own (accelerator_ways.py): JAX with two tables, JAX with the tie
written by hand, pydag, NNX. A way that doesn't fit is reported as out of memory. On the CPU the
model is small. The results of an accelerator belong in benchmarks/accelerator.json, from which
`python benchmarks --render benchmarks/results.json` writes the section of docs/benchmarks.md.
"""

import argparse
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

from accelerator_report import BY_HAND, PYDAG, agreement, rows_of

ROOT = Path(__file__).parents[1]
WAYS = ("JAX, not tied", BY_HAND, PYDAG, "NNX")

# XLA chooses among kernels by measuring them, and another kernel rounds in another way; these flags
# keep it from that, so that runs can be compared to the bit. Memory that is taken in one piece at
# the start can't be fragmented; the peak counts what is in use, not what was taken.
SETTINGS = {
    "XLA_FLAGS": "--xla_gpu_deterministic_ops=true --xla_gpu_enable_triton_gemm=false",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "true",
    "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.9",
}


def one(way: str, patience: float, **options: Any) -> dict[str, Any]:
    """What the process of one way reports, or how it ended."""
    command = [sys.executable, str(Path(__file__).with_name("accelerator_ways.py"))]
    try:
        done = subprocess.run(
            [*command, json.dumps({"way": way, **options})],
            env=SETTINGS | os.environ,
            capture_output=True,
            text=True,
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        return {"figures": {"way": way, "note": f"took more than {patience:g} s"}}
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    print(done.stderr[-4000:], file=sys.stderr)
    return {"figures": {"way": way, "note": f"ended with code {done.returncode}"}}


def measure(results: dict[str, Any], options: argparse.Namespace, fraction: float) -> None:
    """One size: all ways, written after each of them. The first way chooses the size."""
    size: dict[str, Any] = {"width": options.width, "ways": []}
    results["sizes"].append(size)
    for way in options.ways:
        print(f"{way} ...", flush=True)
        found = one(way, options.patience, width=size["width"], memory=options.bytes,
                    fraction=fraction, dtype=options.dtype, steps=options.steps)  # fmt: skip
        results["about"] |= found.get("about", {})
        size["width"] = found.get("width", size["width"])
        size["ways"].append(found["figures"])
        size["same_bits"] = agreement(size["ways"])
        options.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
        print("".join(rows_of(results, size)), flush=True)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Read the options, measure, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--fraction", type=float, nargs="+", default=[0.58],
        help="of the memory, for parameters and moments of the tied model")  # fmt: skip
    add("--bytes", type=int, help="instead of a fraction")
    add("--width", type=int, help="of the model, instead of its bytes; a multiple of 64")
    add("--dtype", default="float32", choices=["float32", "bfloat16"])
    add("--steps", type=int, default=20)
    add("--patience", type=float, default=600, help="seconds for a way")
    add("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY")
    add("--out", type=Path, default=ROOT / "out/benchmarks/accelerator.json")
    options = parser.parse_args(arguments)
    if options.steps < 3:
        parser.error("--steps: at least 3, since the first two are left out of the medians")

    options.out.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"about": {"date": date.today().isoformat()}, "sizes": []}
    for fraction in options.fraction:
        measure(results, options, fraction)
    print(json.dumps(results["about"], indent=1))
    for size in results["sizes"]:
        print("".join(rows_of(results, size)))
        print(*{f"peak of the {way['peak_of']}" for way in size["ways"] if "peak_of" in way})
        print(f"{BY_HAND} and {PYDAG}: the same bits in losses and parameters: {size['same_bits']}")
    return results


if __name__ == "__main__":
    main()
