# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: importing, in a new process each time.

What is measured is the processor's time of the process, less that of a process that imports what
the row says it comes beyond. It is the minimum of the rounds.
"""

import os
import sys
import tempfile
from collections.abc import Mapping
from functools import partial

from peers import Peers
from rows import Row, at_least, within
from timing import Effort, Outcome, Times


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """All of them."""
    found = []
    if "optree" in peers:
        imports = {"pydag": "import pydag", "optree": "import optree"}
        found.append(at_least("import pydag, beyond Python", 0.5, partial(_race, imports, "pass")))
    if "jax" in peers:
        imported = "import jax, pydag.jaxinterop as pj"
        for what, more, limit in (("", "", 0.06), (" with jit and grad", "; pj.jit, pj.grad", 0.1)):
            race = partial(_race, {"pydag": imported + more}, "import jax")
            found.append(within(f"import pydag.jaxinterop{what}, beyond jax", limit, race))
    return found


def _race(imports: Mapping[str, str], base: str, effort: Effort) -> Outcome:
    sources = {"": base, **imports}
    seconds: dict[str, list[float]] = {name: [] for name in sources}
    with tempfile.TemporaryDirectory() as compiled:
        environment = dict(os.environ, PYTHONPYCACHEPREFIX=compiled)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for source in sources.values():
            _processor_time(source, environment)  # compiles what isn't yet
        for _ in range(max(5, effort.rounds)):
            for name, source in sources.items():
                seconds[name].append(_processor_time(source, environment))
    least = min(seconds.pop(""))
    beyond = {name: [one - least for one in all_] for name, all_ in seconds.items()}
    return Outcome({name: Times.of(all_) for name, all_ in beyond.items()})


def _processor_time(source: str, environment: dict[str, str]) -> float:
    """What a process takes that runs this, with the pydag that is installed."""
    # -P: not with the sources, if it is started beside them.
    pid = os.posix_spawn(sys.executable, [sys.executable, "-P", "-c", source], environment)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise RuntimeError(f"a process failed: {source}")
    return usage.ru_utime + usage.ru_stime
