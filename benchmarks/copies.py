# SPDX-License-Identifier: Apache-2.0
"""Copies of state in which a tenth of the modules are shared, with the arrays and without."""

import copy
import pickle
from functools import partial

from models import NODE_COUNTS, Builder, skeletons
from peers import Peers
from records import Record, Task
from timing import Effort, Work, contest

import pydag

CONTAINERS, ARRAYS = "pydag, containers", "pydag, arrays too"
ARRAY_SIZE = 16


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each model."""
    return [Task(f"copies, {model}", partial(_race, peers, effort, model)) for model in NODE_COUNTS]


def _race(peers: Peers, effort: Effort, model: str) -> list[Record]:
    import numpy as np  # not needed to test the rest

    tree = Builder(leaf=lambda: np.ones(ARRAY_SIZE), shared=True).module(skeletons()[model])
    works = {
        CONTAINERS: Work(pydag.dag_copy, tree),
        ARRAYS: Work(partial(pydag.dag_copy, leaf=copy.copy), tree),
        "copy.deepcopy": Work(copy.deepcopy, tree),
        "pickle": Work(lambda x: pickle.loads(pickle.dumps(x, pickle.HIGHEST_PROTOCOL)), tree),
    }
    if "copium" in peers:
        works["copium"] = Work(peers["copium"].deepcopy, tree)
    return [Record.of("copies", {"model": model}, contest(works, effort))]
