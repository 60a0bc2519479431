# SPDX-License-Identifier: Apache-2.0
"""Trees of trees turned inside out: against optree, and what sharing means."""

import itertools
import re
from typing import Any

import pytest
import specimens as sp
import strategies
from hypothesis import assume, given
from hypothesis import strategies as st
from libraries import OURS, THEIRS, Side, agree, options, outcome, plain, trees
from strategies import thorough

import pydag

W, X, Y, Z = (sp.Opaque() for _ in range(4))
PAIR = [X, Y]
EMPTY: list[Any] = []
NAMES = [
    *("tree_transpose", "tree_transpose_map"),
    *("tree_transpose_map_with_path", "tree_transpose_map_with_accessor"),
]


def text(tree: Any) -> str:
    """The structure of a tree."""
    return repr(pydag.dag_structure(tree)).removeprefix("PyDagSpec(").removesuffix(")")


def spec(tree: Any) -> pydag.PyDagSpec:
    """The structure of a tree."""
    return pydag.dag_structure(tree)


@pytest.mark.parametrize(
    ("outer", "inner", "tree", "expected"),
    [
        (
            {"a": 1, "b": 2},
            [1, 2],
            {"a": [W, X], "b": [W, Y]},
            [{"a": W, "b": W}, {"a": X, "b": Y}],
        ),
        ([W, W], [1, 2], [PAIR, PAIR], [[X, X], [Y, Y]]),
        ([W, Z], (W, W), [(X, X), (Y, Y)], ([X, Y], [X, Y])),
        ([1, 2], ([W], W), [([X], X), ([Y], Y)], ([[X, Y]], [X, Y])),
        ([1, [2]], [1, (2, [])], [[W, (W, [])], [[W, (X, [])]]], [[W, [W]], ([W, [X]], [])]),
    ],
    ids=itertools.count(),
)
def test_leaves_stand_on_both_sides(outer: Any, inner: Any, tree: Any, expected: Any) -> None:
    """A leaf that several parts share stands wherever it belongs."""
    assert pydag.dag_transpose(spec(outer), spec(inner), tree) == expected


@pytest.mark.parametrize(
    ("outer", "inner", "tree", "paths"),
    [
        ({"a": 1, "b": 1}, [1, 2], {"a": PAIR, "b": PAIR}, "tree['a'] and tree['b'] are one list"),
        ([1, 1], [[1, 2]], [[PAIR], [PAIR]], "tree[0][0] and tree[1][0] are one list"),
        (
            [1, [1]],
            [1, []],
            [[W, EMPTY], [[X, EMPTY]]],
            "tree[0][1] and tree[1][0][1] are one list",
        ),
        ([1, 1], (1, [2]), [(1, (n := [2])), (3, n)], "tree[0][1] and tree[1][1] are one list"),
    ],
)
def test_nodes_do_not(outer: Any, inner: Any, tree: Any, paths: str) -> None:
    """A node that two parts share would be two afterwards: refused, with both paths."""
    with pytest.raises(pydag.SharingError, match=r"^two parts of the tree share a node") as info:
        pydag.dag_transpose(spec(outer), spec(inner), tree)
    assert paths in str(info.value)


def test_what_does_not_fit() -> None:
    """With sharing the tree is matched; a node in the place of a leaf gets optree's error."""
    with pytest.raises(ValueError, match=r"^list arity mismatch; expected: 2, got: 3; "):
        pydag.dag_transpose(spec([1, 1]), spec([1, 2]), [1, W, W])
    mismatch = (
        r"^Tree structure mismatch; expected: PyDagSpec\(\[\[\*, \*\], \[\*, \*\]\]\), "
        r"got: PyDagSpec\(\[\[&0 \*, \*0\], \[\*, \[\*\]\]\]\)\.$"
    )
    with pytest.raises(TypeError, match=mismatch):
        pydag.dag_transpose(spec([1, 1]), spec([1, 2]), [[W, W], [1, [2]]])
    with pytest.raises(pydag.SharingError, match="are one object"):
        pydag.dag_transpose(spec([W, W]), spec([1]), [[X], [Y]])


def test_map_runs_once_per_leaf() -> None:
    """The function runs once for each distinct leaf; what it shares is one part of the result."""
    calls: list[Any] = []

    def f(x: Any) -> Any:
        calls.append(x)
        return (x, x, [1])

    made = pydag.dag_transpose_map(f, [W, W, X])
    assert calls == [W, X]
    assert made == ([W, W, X], [W, W, X], [[1, 1, 1]])
    assert text(made).startswith("(&0 [&1 *, *1, *], *0, ")


def test_result_that_shares_less() -> None:
    """The first result says what is shared; others may share more, but not less."""

    def f(x: Any) -> Any:
        return (x, x) if x is W else (x, Z)

    with pytest.raises(pydag.SharingError, match=r"tree\[0\] and tree\[1\] are one object") as info:
        pydag.dag_transpose_map(f, [W, X])
    assert "pass inner_treespec" in str(info.value)
    assert pydag.dag_transpose_map(f, [X, W]) == ([X, W], [Z, W])
    assert pydag.dag_transpose_map(f, [W, X], inner_treespec=spec((1, 2))) == ([W, X], [W, Z])


@thorough
@given(st.tuples(trees, trees, trees), st.tuples(options, options), st.booleans(), st.booleans())
def test_transpose_agrees(
    drawn: tuple[Any, Any, Any], both: tuple[Any, Any], same: bool, fits: bool
) -> None:
    """Results, errors and their first lines, where nothing is shared, for any structures."""

    def work(side: Side) -> Any:
        outer = side.structure(drawn[0], **both[0])
        inner = side.structure(drawn[1], **both[not same])
        tree = drawn[2]
        if fits:
            spec = outer.compose(inner)
            tree = spec.unflatten(range(len(spec)))
        return side.tree("transpose")(outer, inner, tree)

    agree(work)


@thorough
@given(trees, trees, options, st.sampled_from(NAMES[1:]), st.booleans())
def test_maps_agree(tree: Any, inner: Any, same: Any, name: str, is_given: bool) -> None:
    """Results, errors and their first lines, and what the function is called with."""

    def work(side: Side) -> Any:
        log: list[Any] = []
        shape = side.structure(inner, **same)

        def f(*arguments: Any) -> Any:
            log.append(plain(arguments))
            return shape.unflatten([(len(log), i) for i in range(len(shape))])

        chosen = {"inner_treespec": shape} if is_given else {"is_leaf": lambda x: type(x) is tuple}
        function = side.tree(name.removeprefix("tree_"))
        return outcome(lambda: function(f, tree, tree, **same, **chosen)), log

    agree(work)


dags = strategies.dags(strategies.BUILTIN + strategies.CUSTOM + strategies.FIELDS, max_nodes=4)


@thorough
@given(dags, dags)
def test_transpose_is_the_other_composition(first: Any, second: Any) -> None:
    """What one of any two structures holds of the other comes out as the other holds it.

    An inner object of a class without identity can't stand in two places of the outer one.
    """
    outer, inner = (pydag.dag_structure(x, namespace=sp.NAMESPACE) for x in (first, second))
    assume(not (outer.num_shared and re.search(r"\bLoose(Module)?\b", str(inner))))
    assume(len(outer) and len(inner))
    leaves = [sp.Opaque() for _ in range(len(outer) * len(inner))]
    made = pydag.dag_transpose(outer, inner, outer.compose(inner).unflatten(leaves))
    found, structure = pydag.dag_flatten(made, namespace=sp.NAMESPACE)
    turned = [leaves[k * len(inner) + j] for j in range(len(inner)) for k in range(len(outer))]
    assert list(map(id, found)) == list(map(id, turned))
    assert structure == inner.compose(outer)


def test_without_sharing_leaves_are_counted() -> None:
    """A tree without sharing of which only the number of leaves fits is taken, as by optree."""

    def work(side: Side) -> Any:
        outer, inner = side.structure([1, 2]), side.structure((1, 2))
        return side.tree("transpose")(outer, inner, [1, [2, 3], 4])

    assert work(OURS) == work(THEIRS) == ([1, 3], [2, 4])


def test_namespaces_that_differ() -> None:
    """Structures of two namespaces aren't transposed."""
    specs = []
    for namespace in ("one", "two"):
        cls = type("Node", (), {})
        pydag.register_pydag_node(cls, lambda x: ((1,), None), lambda *_: None, namespace=namespace)
        specs.append(pydag.dag_structure(cls(), namespace=namespace))
    with pytest.raises(ValueError, match="namespace"):
        pydag.dag_transpose(specs[0], specs[1], 1)
