# SPDX-License-Identifier: Apache-2.0
"""Mistakes that many make once: what the errors say to do."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import pydag

TREE = {"a": [1.0], "b": [2.0]}


def negative(x: float) -> float:
    return -x


@pytest.mark.parametrize(
    "function",
    [
        pydag.dag_map,
        pydag.dag_map_with_path,
        pydag.dag_map_with_accessor,
        pydag.dag_map_,
        pydag.dag_map_with_path_,
        pydag.dag_map_with_accessor_,
        pydag.dag_broadcast_map,
        pydag.dag_broadcast_map_with_path,
        pydag.dag_broadcast_map_with_accessor,
        pydag.dag_transpose_map,
        pydag.dag_transpose_map_with_path,
        pydag.dag_transpose_map_with_accessor,
        pydag.dag_reduce,
    ],
)
def test_swapped_arguments(function: Callable[..., Any]) -> None:
    """A tree in the place of the function: which one comes first, and the call as it should be."""
    name = function.__name__
    with pytest.raises(TypeError) as raised:
        function(TREE, negative)
    assert str(raised.value) == (
        f"{name} takes the function first and then the tree, but the first argument can't be "
        f"called: {{'a': [1.0], 'b': [2.0]}}\n  Swap them: {name}(f, tree)."
    )


class Unknown:
    """Nobody registered it."""

    def __init__(self) -> None:
        self.name, self.w = "w", np.ones(2)


def test_an_unregistered_class() -> None:
    """Where a function fails at an object that holds arrays, a note says how to open it."""
    for tree in (Unknown(), {"a": [np.ones(2), Unknown()]}):
        with pytest.raises(TypeError, match="unsupported operand") as raised:
            pydag.dag_map(lambda x: x * 2, tree)
        assert raised.value.__notes__[0] == (
            "The leaf is an object of the class Unknown, which is not registered, and holds "
            "arrays, as in its attribute 'w': pydag.register_fields(Unknown) makes such "
            "objects nodes."
        )
    with pytest.raises(AttributeError) as failed:
        pydag.dag_map_with_path(lambda path, x: x.shape, [Unknown()])
    assert "raised while mapping tree[0]" in failed.value.__notes__
    assert len(failed.value.__notes__) == 2


class Plain:
    """Nobody registered it, and it holds a list."""

    def __init__(self) -> None:
        self.parts = [1.0]


def test_an_unregistered_class_without_arrays() -> None:
    """The note is there whatever the object holds; other leaves, and functions, get none."""
    wrapped = functools.wraps(negative)(lambda x: x)
    for leaf, notes in ((Plain(), 2), ("text", 1), (negative, 1), (wrapped, 1), (object(), 1)):
        with pytest.raises(TypeError, match="unsupported operand") as raised:
            pydag.dag_map(lambda x: x - 1, [leaf])
        assert len(raised.value.__notes__) == notes
        if notes == 2:
            assert raised.value.__notes__[0] == (
                "The leaf is an object of the class Plain, which is not registered: "
                "pydag.register_fields(Plain) makes such objects nodes."
            )


def test_a_spec_of_optree() -> None:
    """optree's spec is named as what it is, where ours is expected; and not by its address."""
    tree: Any = TREE
    spec: Any = optree.tree_structure(tree)
    with pytest.raises(TypeError, match="Expected a PyDagSpec, got optree's PyTreeSpec"):
        pydag.dag_unflatten(spec, [1.0, 2.0])
    with pytest.raises(TypeError, match="Expected a PyDagSpec, got optree's PyTreeSpec"):
        pydag.retie(spec, TREE)
    with pytest.raises(TypeError, match=r"PyTreeSpec. Take pydag.dag_structure\(tree\)"):
        pydag.dag_transpose(spec, spec, TREE)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: pydag.dag_map(negative, TREE, none_leaf=1),  # type: ignore[call-overload]  # the point
            "dag_map() got an unexpected keyword argument 'none_leaf'. "
            "Did you mean 'none_is_leaf'?",
        ),
        (
            lambda: pydag.dag_leaves(TREE, isleaf=None),  # type: ignore[call-overload]  # the point
            "dag_leaves() got an unexpected keyword argument 'isleaf'. Did you mean 'is_leaf'?",
        ),
        (
            lambda: pydag.view(TREE, dept=2),  # type: ignore[call-arg]  # the point
            "view() got an unexpected keyword argument 'dept'. Did you mean 'depth'?",
        ),
        (
            lambda: pydag.dag_mask(TREE, "*a*", lazy=1),  # type: ignore[call-arg]  # the point
            "dag_mask() got an unexpected keyword argument 'lazy'",
        ),
    ],
)
def test_unknown_keywords(call: Callable[[], Any], message: str) -> None:
    """The error for a keyword that is unknown names the function and a similar keyword."""
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "call",
    [
        lambda: pydag.dag_mask(TREE, "c*"),
        lambda: pydag.dag_mask(TREE, ["c*", "d*"]),
        lambda: pydag.dag_map(negative, TREE, where="c*"),
        lambda: pydag.dag_partition("c*", TREE),
    ],
)
def test_patterns_of_no_path(call: Callable[[], Any]) -> None:
    """A pattern that no path matches is an error that names paths which exist, as with `wrt=`."""
    with pytest.raises(
        ValueError, match=r"no path matches the pattern 'c\*'\n  the nearest"
    ) as raised:
        call()
    assert "['a'][0]" in str(raised.value)


def test_a_pattern_for_an_empty_tree() -> None:
    """In a tree without leaves, and beside a pattern that matches, it is no mistake."""
    assert pydag.dag_mask(TREE, ["*a*", "c*"]) == {"a": [True], "b": [False]}
    assert pydag.dag_mask({"a": []}, "b*") == {"a": []}


def test_shapes_that_are_tied() -> None:
    """Arrays of different shapes can't be one array: `tie` raises, with both, and ties nothing."""
    tree = {
        "a": [np.zeros((2, 3))],
        "b": [np.zeros(3)],
        "c": [np.zeros((2, 3), np.float32)],
        "d": [1],
    }
    with pytest.raises(ValueError, match="one shape") as raised:
        pydag.tie(tree, ("a",), ("b",))
    assert str(raised.value) == (
        "arrays that are tied must have one shape\n"
        "  tree['a'][0]: f64[2,3]\n  tree['b'][0]: f64[3]\n"
        "  Put an array of another shape there with dag_replace."
    )
    tied = pydag.tie(tree, ("a",), ("c",), ("d",))
    assert tied["a"] is tied["c"] is tied["d"]


def test_shapes_that_are_updated() -> None:
    """An array isn't written over by one of another shape; then nothing is written at all."""
    tree = {"a": np.zeros(2), "b": np.zeros(3), "c": 1.0}
    before = dict(tree)
    with pytest.raises(ValueError, match="shapes that are there") as raised:
        pydag.dag_update(tree, {"a": np.ones(2), "b": np.ones(4), "c": 2.0})
    assert str(raised.value) == (
        "an update writes arrays of the shapes that are there\n"
        "  tree['b']: f64[3]\n  source: f64[4]\n"
        "  Assign an array of another shape to the attribute or item itself."
    )
    assert all(tree[name] is before[name] for name in tree)
    pydag.dag_update(tree, {"a": np.ones(2, np.float32), "b": 5.0, "c": np.ones(7)})
    assert tree["b"] == 5.0


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: pydag.dag_mask(TREE, "*typo*"),
        lambda: pydag.files.load("no such file.safetensors"),
        lambda: pydag.files.save("x.safetensors", {"f": object()}),
    ],
)
def test_tracebacks_end_where_pydag_is_called(mistake: Callable[[], Any]) -> None:
    """At most three frames of the package are in the traceback of a mistake."""
    pytest.importorskip("safetensors")
    with pytest.raises((ValueError, TypeError, OSError)) as raised:
        mistake()
    folder = pydag.__path__[0]
    assert sum(str(entry.path).startswith(folder) for entry in raised.traceback) <= 3
