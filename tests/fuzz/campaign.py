# SPDX-License-Identifier: Apache-2.0
"""A random campaign against the core: `python tests/fuzz/campaign.py --seconds 60 --seed 1`.

The rounds run in a process of their own, which notes the number of the round that it runs. If it
crashes, or if a round doesn't end, this one says which round it was. `make fuzz SECONDS=600 SEED=1`
runs it under the sanitizers.
"""

import argparse
import faulthandler
import importlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

FINDINGS = 3
"""The status of the inner process that has found something. A sanitizer ends a process with 1."""

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "support")]


def arguments() -> argparse.ArgumentParser:
    """The options of the program."""
    parser = argparse.ArgumentParser(description="A random campaign against pydag's core.")
    add = parser.add_argument
    add("--seconds", type=float, default=60.0, help="how long it runs")
    add("--seed", type=int, default=None, help="of all choices; another one each time if left out")
    add("--first", type=int, default=0, help="the first round")
    add("--rounds", type=int, default=10**9, help="how many rounds at most")
    add("--only", default=None, help="one scenario alone, by its name")
    add("--size", type=int, default=None, help="the largest number of nodes in a tree")
    add("--patience", type=float, default=120.0, help="seconds after which a round hangs")
    add("--findings", type=int, default=5, help="after how many findings it ends")
    add("--progress", default=None, help=argparse.SUPPRESS)  # a file: this is the inner process
    return parser


def rounds(options: argparse.Namespace) -> int:
    """Runs rounds in this process; the number of findings."""
    import agree_specs  # noqa: F401  (they register)
    from every import EXPECTED
    from rounds import LARGEST, SCENARIOS, run
    from show import program

    for name in ("agree_specs", "agree_trees", "damage", "every", "registrations"):
        importlib.import_module(name)  # it registers its scenarios
    sys.unraisablehook = lambda error: (  # Python drops errors of keys in an OrderedDict
        None if isinstance(error.exc_value, EXPECTED) else sys.__unraisablehook__(error)
    )
    size = options.size or LARGEST
    end, found_all, ran = time.monotonic() + options.seconds, 0, Counter[str]()
    sorts: set[str] = set()
    with open(options.progress, "r+b", buffering=0) as progress:
        for number in range(options.first, options.first + options.rounds):
            if time.monotonic() > end or len(sorts) >= options.findings:
                break
            os.pwrite(progress.fileno(), b"%20d" % number, 0)
            seed = f"{options.seed}/{number}"
            name, this, found = run(seed, options.only, size)
            ran[name] += 1
            if not found:
                continue
            found_all += 1
            sort = f"{name}: {found.split(':')[0][:60]}"
            if sort in sorts:
                continue
            sorts.add(sort)
            print(f"\nFOUND by seed {options.seed}, round {number}, {name}: {found}")
            print(f"  again: --seed {options.seed} --first {number} --rounds 1")
            print("    " + program(*this.built).replace("\n", "\n    "), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    done = ", ".join(f"{name} {count}" for name, count in sorted(ran.items()))
    print(f"{ran.total()} rounds, {found_all} findings, {peak} MB at most: {done}")
    assert set(ran) <= set(SCENARIOS)
    return found_all


def watch(options: argparse.Namespace, given: list[str]) -> int:
    """Runs the rounds in another process and says where it crashed or hung."""
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6)
    print(f"seed {options.seed}, {options.seconds:g} seconds", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "round"
        progress.write_bytes(b"0")
        command = [sys.executable, str(HERE), *given, "--seed", str(options.seed)]
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        inner = subprocess.Popen([*command, "--progress", str(progress)], env=environment)
        try:
            hung = _wait(inner, progress, options.patience)
        finally:
            if inner.poll() is None:
                inner.kill()
                inner.wait()
        number = int(progress.read_bytes())
    if inner.returncode not in (0, FINDINGS) or hung:
        what = "hung" if hung else f"ended with {inner.returncode}"
        print(f"\nFOUND by seed {options.seed}: round {number} {what}")
        print(f"  alone: --seed {options.seed} --first {number} --rounds 1")
        print(f"  with all before it: --seed {options.seed} --rounds {number + 1}")
        return 2
    return min(inner.returncode, 1)


def _wait(inner: subprocess.Popen[bytes], progress: Path, patience: float) -> bool:
    """Waits for the end; whether a round took too long."""
    last, since = b"", time.monotonic()
    while True:
        try:
            inner.wait(0.5)
        except subprocess.TimeoutExpired:
            now = progress.read_bytes()
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > patience:
                inner.send_signal(signal.SIGABRT)  # it says where it is
                inner.wait()
                return True
        else:
            return False


def main(given: list[str]) -> int:
    """The program."""
    options = arguments().parse_args(given)
    if options.progress is None:
        return watch(options, given)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    return FINDINGS if rounds(options) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
