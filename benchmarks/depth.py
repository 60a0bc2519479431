# SPDX-License-Identifier: Apache-2.0
"""Nesting: chains up to a million deep.

The others recurse, and some leave the interpreter worse off when they hit their limit: each is
tried in a process of its own.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from peers import WANTED, Peers
from records import Record, Task
from timing import Effort, Outcome, Times, Work, contest

import pydag

DEPTHS = tuple(10**n for n in range(1, 7))


@pydag.register_fields
class Link:
    """A link of a chain of modules."""

    def __init__(self, x: Any) -> None:
        self.x = x


LINKS: dict[str, Callable[[Any], Any]] = {
    "list": lambda x: [x],
    "dict": lambda x: {"x": x},
    "tuple": lambda x: (x,),
    "module": Link,
}


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each kind of chain, and one for each of the others."""
    ours = [Task(f"depth, {kind}", partial(_chains, effort, kind)) for kind in LINKS]
    others = [
        Task(f"depth, {name}", partial(_other, name))
        for name in ("optree", "jax", "dm-tree")
        if name in peers
    ]
    return ours + others


def chain(kind: str, depth: int) -> Any:
    """So many links of a kind, and a leaf."""
    tree: Any = object()
    for _ in range(depth):
        tree = LINKS[kind](tree)
    return tree


def _chains(effort: Effort, kind: str) -> list[Record]:
    records = []
    for depth in DEPTHS:
        tree = chain(kind, depth)
        leaves, spec = pydag.dag_flatten(tree)
        contenders = {
            "pydag flatten": Work(pydag.dag_flatten, tree),
            "pydag unflatten": Work(pydag.dag_unflatten, spec, leaves),
        }
        outcome = contest(contenders, effort)
        records.append(Record.of("depth", {"kind": kind, "depth": depth}, outcome))
    return records


# Prints a line for each depth: the times, or how it failed.
_PROGRAM = """
import importlib, json, sys, time
module, function, *depths = sys.argv[1:]
library = importlib.import_module(module)
for part in function.split("."):
    library = getattr(library, part)
for depth in map(int, depths):
    tree = 0
    for _ in range(depth):
        tree = [tree]
    try:
        library(tree)
        times = []
        for _ in range(15):
            start = time.perf_counter()
            library(tree)
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)
    except Exception as error:
        print(json.dumps(type(error).__name__), flush=True)
        break
"""

_FUNCTIONS = {"optree": "tree_flatten", "jax": "tree_util.tree_flatten", "dm-tree": "flatten"}


def _other(name: str) -> list[Record]:
    """Deeper and deeper lists, until it fails."""
    said = _apart(name)
    contender = f"{name} flatten"
    return [
        Record.of(
            "depth",
            {"kind": "list", "depth": depth},
            Outcome(notes={contender: answer})
            if isinstance(answer, str)
            else Outcome(times={contender: Times.of(answer)}),
        )
        for depth, answer in zip(DEPTHS, said, strict=False)
    ]


def _apart(name: str) -> list[list[float] | str]:
    """The answers of another process; if it ends badly, that is the last answer."""
    depths = map(str, DEPTHS)
    command = [sys.executable, "-c", _PROGRAM, WANTED[name][0], _FUNCTIONS[name], *depths]
    done = subprocess.run(command, capture_output=True, text=True)
    said: list[list[float] | str] = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        said.append(f"ended by {done.returncode}")
    return said
