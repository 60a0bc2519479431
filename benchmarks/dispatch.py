# SPDX-License-Identifier: Apache-2.0
"""Asynchronous dispatch: how long a call keeps the program, and when its result is there.

JAX computes while the program goes on: on an accelerator always, on the CPU where that is asked for
before the first array is made. So it is measured in a process of its own, which runs this file. The
model has 1,200 arrays, as that of a language model that decodes; the step works for about as long
as such a step does.
"""

import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from peers import Peers
from records import Record, Task
from timing import US, Effort, Times

DISPATCH = "dispatch"  # the label
LEAVES = 1200
STEP = 2e-3  # seconds on the device: about what a decode step of a small language model takes
CHAIN = 10  # steps that are dispatched one after the other, each with what the last one returns
RETURNS, READY, CHAINED = "until it returns", "until the result is there", "a step of a chain"


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """One task, in a process of its own. A quick run leaves it out: it compiles large functions."""
    if effort.quick:
        return []
    return [Task("asynchronous dispatch", lambda: _measured(effort))]


def _measured(effort: Effort) -> list[Record]:
    done = subprocess.run(
        [sys.executable, __file__, str(effort.rounds)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [
        Record(
            "boundary",
            {"work": DISPATCH, "leaves": LEAVES, "what": what},
            {name: Times(**times) for name, times in own.items()},
        )
        for what, own in json.loads(done.stdout).items()
    ]


def main(rounds: int) -> dict[str, dict[str, Any]]:
    """Seconds, as minimum and median, by what is measured and by who does it."""
    jax: Any = importlib.import_module("jax")  # here: the program that imports this needs none
    jax.config.update("jax_cpu_enable_async_dispatch", True)
    import layers

    import pydag
    import pydag.jaxinterop

    w = jax.numpy.full((256, 256), 1e-3)
    x = jax.numpy.ones((256, 256))
    repeats = _repeats(jax, x, w)

    def step_with(leaves: Callable[[Any], Any]) -> Callable[..., Any]:
        def step(model: Any, x: Any, w: Any) -> Any:
            scale = sum(leaves(model))
            work = jax.lax.fori_loop(0, repeats, lambda _, y: jax.numpy.tanh(y @ w), x)
            return work + 0.0 * scale

        return step

    flat = tuple(jax.numpy.float32(1.0) for _ in range(LEAVES))
    model = layers.of_dicts(LEAVES // 3, iter(flat).__next__)
    plain, ours = jax.tree_util.tree_leaves, pydag.dag_leaves
    contenders: dict[str, tuple[Callable[..., Any], Any]] = {
        "floor: jax.jit, flat tuple": (jax.jit(step_with(plain)), flat),
        f"{US} jit, dict": (pydag.jaxinterop.jit(step_with(ours)), model),
        "jax.jit, dict": (jax.jit(step_with(plain)), model),
    }
    seconds: dict[str, dict[str, list[float]]] = {
        what: {name: [] for name in contenders} for what in (RETURNS, READY, CHAINED)
    }
    for _ in range(3 * rounds + 1):
        for name, (function, tree) in contenders.items():
            start = time.perf_counter()
            y = function(tree, x, w)
            seconds[RETURNS][name].append(time.perf_counter() - start)
            y.block_until_ready()
            seconds[READY][name].append(time.perf_counter() - start)
            start = time.perf_counter()
            for _ in range(CHAIN):
                y = function(tree, y, w)
            y.block_until_ready()
            seconds[CHAINED][name].append((time.perf_counter() - start) / CHAIN)
    return {
        what: {
            # The first call compiles.
            name: {"minimum": min(all_[1:]), "median": statistics.median(all_[1:])}
            for name, all_ in own.items()
        }
        for what, own in seconds.items()
    }


def _repeats(jax: Any, x: Any, w: Any) -> int:
    """How often the work has to be done for a step to last as long as it shall."""
    count = 50
    work = jax.jit(lambda x, w: jax.lax.fori_loop(0, count, lambda _, y: jax.numpy.tanh(y @ w), x))
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        work(x, w).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return max(1, round(STEP / (min(seconds) / count)))


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
