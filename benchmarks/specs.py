# SPDX-License-Identifier: Apache-2.0
"""What can be done with a structure: hash, compare, print, pickle; and what it weighs."""

import ctypes
import operator
import pickle
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from models import NODE_COUNTS, Builder, skeletons
from peers import Peers
from records import Record, Task
from timing import Effort, Work, contest

import pydag

WORKS = (
    "hash",
    "== one after the other",
    "== equal",
    "== unequal",
    "repr",
    "pickle",
    "unpickle",
)


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each model."""
    return [Task(f"specs, {model}", partial(_race, peers, effort, model)) for model in NODE_COUNTS]


def _structures(peers: Peers) -> dict[str, Callable[[Any], Any]]:
    found: dict[str, Callable[[Any], Any]] = {"pydag": pydag.dag_structure}
    if "optree" in peers:
        found["optree"] = peers["optree"].tree_structure
    if "jax" in peers:
        found["jax"] = peers["jax"].tree_util.tree_structure
    return found


def _race(peers: Peers, effort: Effort, model: str) -> list[Record]:
    skeleton = skeletons()[model]
    tree, again = (Builder().module(skeleton) for _ in range(2))
    # These two have as many nodes, and part in the last but one.
    trees = tree, again, [tree, [0]], [again, (0,)]
    works: dict[str, dict[str, Work]] = {name: {} for name in WORKS}
    facts = {}
    for name, structure in _structures(peers).items():
        spec = structure(tree)
        for work, call in _works(structure, *trees).items():
            works[work][name] = call
        weight = _weight(structure, tree) if name != "pydag" else sys.getsizeof(spec)
        if weight is not None:
            facts[f"{name} bytes a node"] = weight / NODE_COUNTS[model]
        facts[f"{name} bytes pickled"] = len(pickle.dumps(spec, pickle.HIGHEST_PROTOCOL))
    return [
        Record.of("specs", {"work": work, "model": model}, contest(works[work], effort), **facts)
        for work in WORKS
    ]


def _works(
    structure: Callable[[Any], Any], tree: Any, again: Any, one: Any, other: Any
) -> dict[str, Work]:
    spec = structure(tree)
    data = pickle.dumps(spec, pickle.HIGHEST_PROTOCOL)

    return {
        "hash": Work(hash, spec),
        "== one after the other": Work(operator.eq, spec, structure(again)),
        "== equal": Work(operator.eq, spec, pickle.loads(data)),
        "== unequal": Work(operator.eq, structure(one), structure(other)),
        "repr": Work(repr, spec),
        "pickle": Work(pickle.dumps, spec, pickle.HIGHEST_PROTOCOL),
        "unpickle": Work(pickle.loads, data),
    }


def _weight(structure: Callable[[Any], Any], tree: Any) -> float | None:
    """What malloc gave for a structure, if the C library tells: Python objects don't count."""
    try:
        in_use = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    in_use.restype = _MallInfo
    kept = [structure(tree)]
    before = in_use()
    kept += [structure(tree) for _ in range(16)]
    after = in_use()
    taken = (after.uordblks + after.hblkhd) - (before.uordblks + before.hblkhd)
    return float(taken) / 16


class _MallInfo(ctypes.Structure):
    """`struct mallinfo2` of the GNU C library."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]
