# SPDX-License-Identifier: Apache-2.0
"""`dag_copy`: new containers, shared as they were, around the same leaves or new ones."""

import copy
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
