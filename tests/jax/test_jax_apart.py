# SPDX-License-Identifier: Apache-2.0
"""Structures with classes of other libraries, in which shared objects come apart."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest

nnx: Any = pytest.importorskip("flax.nnx")
equinox: Any = pytest.importorskip("equinox")
optax: Any = pytest.importorskip("optax")

import jax
import jax.numpy as jnp

import pydag.jaxinterop as pj
from pydag import _core
from pydag.structure.apart import apart
from pydag.structure.listing import Listing


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Pair:
    a: jax.Array
    b: jax.Array


MADE: dict[str, Callable[[], Any]] = {
    "nnx": lambda: nnx.Linear(2, 3, rngs=nnx.Rngs(0)),
    "equinox": lambda: equinox.nn.Linear(2, 3, key=jax.random.key(0)),
    "optax": lambda: optax.adam(0.1).init({"w": jnp.ones(2)}),
    "dataclass": lambda: Pair(jnp.ones(2), jnp.zeros(2)),
    "Dag": lambda: pj.Dag({"w": jnp.ones(2), "name": "x"}),
}


@pytest.mark.parametrize("name", MADE)
def test_an_instance_comes_apart(name: str) -> None:
    """One instance at two places becomes two, of the same class and of the same structure."""
    one = MADE[name]()
    tree = [one, one]
    spec = _core.structure(tree)

    def place(position: int, state: int, children: Sequence[int]) -> Sequence[int]:
        return children if position == 0 else [state] * len(children)

    found = apart(Listing.of(spec), spec, 0, place)
    leaves = _core.leaves(tree)
    first, second = _core.unflatten(found.spec, [leaves[i] for i in found.leaves])
    assert type(first) is type(second) is type(one)
    assert first is not second or isinstance(one, tuple)
    assert _core.structure(first) == _core.structure(second) == _core.structure(one)
    assert found.leaves == [*range(len(leaves)), *range(len(leaves))]
