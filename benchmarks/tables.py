# SPDX-License-Identifier: Apache-2.0
"""The eight tables of optree's README, on its nine models, also with a tenth of them shared."""

from functools import partial

from models import MAPPINGS, NODE_COUNTS, Builder, skeletons
from peers import WORKS, Peers, standard_works, works
from records import Record, Task
from timing import Effort, contest

import pydag


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each model, class of mappings, and for each of shared and not shared."""
    return [
        Task(
            f"{model}, {mapping}{', shared' if shared else ''}",
            partial(_race, peers, effort, model, mapping, shared),
        )
        for mapping in MAPPINGS
        for shared in (False, True)
        for model in NODE_COUNTS
    ]


def _race(peers: Peers, effort: Effort, model: str, mapping: str, shared: bool) -> list[Record]:
    skeleton = skeletons()[model]
    tree, *rests = (Builder(MAPPINGS[mapping], shared=shared).module(skeleton) for _ in range(3))
    nodes = pydag.dag_structure(tree).num_nodes
    if not shared:
        check_nodes(model, nodes)
    contenders = works(peers, tree, *rests) | (standard_works(tree) if shared else {})
    return [
        Record.of(
            "tables",
            {"work": work, "model": model, "mapping": mapping, "shared": shared},
            contest({name: own[work] for name, own in contenders.items() if work in own}, effort),
            nodes=nodes,
        )
        for work in WORKS
    ]


def check_nodes(model: str, nodes: int) -> None:
    """Raise, if a model isn't the published one."""
    if nodes != NODE_COUNTS[model]:
        raise AssertionError(
            f"{model} has {nodes} nodes where the published one has {NODE_COUNTS[model]}: "
            "benchmarks/models.py builds another tree"
        )
