# SPDX-License-Identifier: Apache-2.0
"""Models of layers, in the classes of several libraries: flatten and unflatten."""

from functools import partial
from typing import Any

import layers
from peers import Peers
from records import Record, Task
from timing import Effort, Work, contest

import pydag

COUNTS = (5, 50, 200)

FIELDS, SLOTS, DATACLASS = "pydag, __dict__", "pydag, __slots__", "pydag, dataclass"
JAX, EQUINOX, NNX = "jax dataclass", "equinox", "flax nnx"
OF_EQUINOX, OF_NNX = "pydag, equinox", "pydag, flax nnx"


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each number of layers."""
    if "jax" not in peers:
        return []
    return [Task(f"{count} layers", partial(_race, peers, effort, count)) for count in COUNTS]


def _race(peers: Peers, effort: Effort, count: int) -> list[Record]:
    array = partial(peers["jax"].numpy.ones, 4)
    flatten: dict[str, Work] = {}
    unflatten: dict[str, Work] = {}

    def with_pydag(name: str, model: Any) -> None:
        leaves, spec = pydag.dag_flatten(model)
        flatten[name] = Work(pydag.dag_flatten, model)
        unflatten[name] = Work(pydag.dag_unflatten, spec, leaves)

    for name, make in (
        (FIELDS, layers.of_fields),
        (SLOTS, layers.of_slotted_fields),
        (DATACLASS, layers.of_data_fields),
    ):
        with_pydag(name, make(count, array))

    def with_jax(name: str, model: Any) -> None:
        tree_util = peers["jax"].tree_util
        leaves, treedef = tree_util.tree_flatten(model)
        flatten[name] = Work(tree_util.tree_flatten, model)
        unflatten[name] = Work(tree_util.tree_unflatten, treedef, leaves)

    with_jax(JAX, layers.of_jax_dataclasses(peers)(count, array))
    if "equinox" in peers:
        with_jax(EQUINOX, layers.of_equinox_modules(peers)(count, array))
        with_pydag(OF_EQUINOX, layers.of_equinox_modules(peers)(count, array))
    if "flax" in peers:
        nnx, module = peers["flax"], layers.of_nnx_modules(peers)(count, array)
        with_pydag(OF_NNX, module)
        flatten[NNX] = Work(nnx.split, module)
        unflatten[NNX] = Work(nnx.merge, *nnx.split(module))
    return [
        Record.of("modules", {"work": work, "layers": count}, contest(contenders, effort))
        for work, contenders in (("flatten", flatten), ("unflatten", unflatten))
    ]
