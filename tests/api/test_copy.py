# SPDX-License-Identifier: Apache-2.0
"""`dag_copy`: new containers, shared as they were, around the same leaves or new ones."""

import copy
import functools
import types
from typing import Any

import numpy as np
import pytest
import specimens as sp
import strategies
from hypothesis import given
from isomorphism import difference
from strategies import thorough

import pydag


@thorough
@given(strategies.dags(), strategies.options)
def test_what_map_does(dag: Any, options: dict[str, Any]) -> None:
    """With `leaf` a copy is what `dag_map` makes, without it what it makes with the identity."""
    mapped = pydag.dag_map(lambda x: x, dag, **options)
    assert difference(pydag.dag_copy(dag, **options), mapped) == ""

    def leaf(x: Any) -> Any:
        return made.setdefault(id(x), sp.Opaque())

    made: dict[int, Any] = {}
    copied = pydag.dag_copy(dag, leaf=leaf, **options)
    assert difference(copied, pydag.dag_map(leaf, dag, **options)) == ""


def test_one_new_leaf_for_one_object() -> None:
    """`leaf` makes one array of one array, at all of its places; the old one is left alone."""
    w = np.arange(3.0)
    tree: dict[str, Any] = {"a": w, "b": [w]}
    out = pydag.dag_copy(tree, leaf=copy.copy)
    assert out["a"] is out["b"][0]
    out["a"] += 1
    assert (w.tolist(), out["a"].tolist()) == ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])


@pydag.register_fields
class Holder:
    """A node whose value is read by whoever refers to it."""

    def __init__(self, value: float) -> None:
        self.value = value

    def read(self) -> float:
        return self.value


COPIES = [
    pydag.dag_copy,
    lambda tree: pydag.dag_map(lambda x: x, tree),
    lambda tree: pydag.dag_unflatten(*pydag.dag_flatten(tree)[::-1]),
    lambda tree: pydag.reref(pydag.deref(tree)),
]


@pytest.mark.parametrize("copied", COPIES, ids=["copy", "map", "unflatten", "reref"])
def test_what_a_leaf_refers_to(copied: Any) -> None:
    """Keys, sets, bound methods, partials and other objects go on referring to the old one."""
    one = Holder(1.0)
    of_leaves = {
        "one": one,
        "keys": {one: 0.0},
        "set": {one},
        "frozenset": frozenset({one}),
        "method": one.read,
        "partial": functools.partial(Holder.read, one),
        "object": types.SimpleNamespace(one=one),
    }
    out = copied(of_leaves)
    out["one"].value = 2.0
    assert out["one"] is not one
    assert [next(iter(out[name])) is one for name in ("keys", "set", "frozenset")] == [True] * 3
    assert (out["method"](), out["partial"](), out["object"].one.value) == (1.0, 1.0, 1.0)
    # What containers and nodes hold is the new one.
    partial = pydag.functools.partial(Holder.read, one)
    out = copied({"one": one, "pairs": [(one, 0.0)], "partial": partial})
    out["one"].value = 2.0
    assert out["pairs"][0][0] is out["one"]
    assert out["partial"]() == 2.0


def test_options() -> None:
    """What a predicate keeps is a leaf to copy; with "nodes" each occurrence is copied."""
    inner, w = [1], sp.Opaque()
    tree: list[Any] = [inner, inner]
    out = pydag.dag_copy(tree, lambda x: x == [1], leaf=copy.copy)
    assert out[0] is out[1] is not inner
    tree = [w, w]
    out = pydag.dag_copy(tree, leaf=lambda _: sp.Opaque(), identity="nodes")
    assert out[0] is not out[1]


def test_leaf_that_raises() -> None:
    """What `leaf` raises passes through, with the place."""
    with pytest.raises(ZeroDivisionError) as info:
        pydag.dag_copy({"a": [1]}, leaf=lambda _: 1 / 0)
    assert "tree['a'][0]" in info.value.__notes__[0]
