# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: copies of what programs hold, as deep as `copy.deepcopy` copies."""

import copy
import dataclasses
import pickle
from functools import partial
from typing import Any

from models import Builder, skeletons
from peers import Peers
from rows import Row, at_most, steady
from timing import Effort, Work

import pydag


@pydag.register_fields
@dataclasses.dataclass
class Body:
    """A body of an object graph, with its place and its speed."""

    mass: float
    position: Any
    velocity: Any


@pydag.register_fields
@dataclasses.dataclass
class Spring:
    """Joins two bodies, which other springs hold, too."""

    one: Body
    other: Body
    stiffness: float


def _bridge(array: Any) -> Any:
    bodies = [Body(1.0, array(), array()) for _ in range(50)]
    springs = [Spring(bodies[i % 50], bodies[(i * 7 + 1) % 50], 2.0) for i in range(150)]
    return {"bodies": bodies, "springs": springs}


def _agent() -> Any:
    memory = {"role": "user", "tags": ["a", "b"], "tokens": 12}
    messages = [
        {"role": "assistant", "content": "x" * 20, "meta": {"usage": [1, 2, i], "shared": memory}}
        for i in range(200)
    ]
    return {"messages": messages, "memory": memory}


def _config() -> Any:
    layers = [{"heads": 4, "ff": [1, 2, 3], "act": "gelu"} for _ in range(12)]
    return {"model": {"dim": 4, "layers": layers}, "opt": {"lr": 1e-3, "betas": [0.9, 0.99]}}


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """All of them, beside the fastest of the others."""
    import numpy as np  # not needed to test the rest

    array = partial(np.ones, 16, np.float32)
    graphs = {
        "an object graph": (0.3, _bridge(array)),
        "an agent's state": (0.8, _agent()),
        "a config": (1.0, _config()),
        "a grid of 10,000 integers": (1.0, [[i * j for j in range(100)] for i in range(100)]),
        "a model's arrays": (0.97, Builder(leaf=array).module(skeletons()["ResNet18"])),
    }
    found = []
    for name, (target, graph) in graphs.items():
        works = {
            "pydag": Work(partial(pydag.dag_copy, deep=True), graph),
            "copy.deepcopy": Work(copy.deepcopy, graph),
            "pickle": Work(lambda x: pickle.loads(pickle.dumps(x, 5)), graph),
        }
        if "copium" in peers:
            works["copium"] = Work(peers["copium"].deepcopy, graph)
        found.append(at_most(f"deep copy of {name}", target, steady(works)))
    return found
