# SPDX-License-Identifier: Apache-2.0
"""Flatten where short cuts don't help: leaves held elsewhere, new keys, structures never seen."""

import itertools
from functools import partial
from typing import Any

from models import MAPPINGS, NODE_COUNTS, Builder, array, fresh_key, skeletons
from peers import Peers, flattens
from records import Record, Task
from timing import Effort, Work, contest, fresh_contest

import pydag

HELD = "flatten, leaves held elsewhere"
FRESH = "flatten, all keys new"
UNSEEN = "flatten, never seen before"


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """Three tasks for each model and class of mappings."""
    return [
        Task(f"{model}, {mapping}, {what}", partial(race, peers, effort, model, mapping))
        for what, race in (("held", _held), ("fresh", _fresh), ("unseen", _unseen))
        for mapping in MAPPINGS
        for model in NODE_COUNTS
    ]


def _held(peers: Peers, effort: Effort, model: str, mapping: str) -> list[Record]:
    """A leaf whose only reference is its slot can't be shared; these have another one."""
    held: list[Any] = []

    def leaf() -> Any:
        held.append(array())
        return held[-1]

    tree = Builder(MAPPINGS[mapping], leaf=leaf).module(skeletons()[model])
    contenders = {name: Work(flatten, tree) for name, flatten in flattens(peers).items()}
    outcome = contest(contenders, effort)
    return [Record.of("cold", {"work": HELD, "model": model, "mapping": mapping}, outcome)]


def _fresh(peers: Peers, effort: Effort, model: str, mapping: str) -> list[Record]:
    """A new tree for each call; every key in it is a string of its own. The structure is known."""
    skeleton = skeletons()[model]

    def make() -> Any:
        return Builder(MAPPINGS[mapping], key=fresh_key).module(skeleton)

    pydag.clear_caches()
    outcome = fresh_contest(make, flattens(peers), effort)
    return [Record.of("cold", {"work": FRESH, "model": model, "mapping": mapping}, outcome)]


def _unseen(peers: Peers, effort: Effort, model: str, mapping: str) -> list[Record]:
    """The same, but with keys of a text that no other tree has. The classes are known."""
    skeleton, numbers = skeletons()[model], itertools.count()

    def make() -> Any:
        number = next(numbers)
        return Builder(MAPPINGS[mapping], key=lambda name: f"{name} {number}").module(skeleton)

    outcome = fresh_contest(make, flattens(peers), effort)
    return [Record.of("cold", {"work": UNSEEN, "model": model, "mapping": mapping}, outcome)]
