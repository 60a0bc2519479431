# SPDX-License-Identifier: Apache-2.0
"""The way into a compiled function and out of it: the core's, with one frame of Python."""

import gc
import sys
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from operations import python_calls

import pydag
import pydag.jaxinterop as pj
from pydag import _core


def model() -> dict[str, Any]:
    w = jnp.ones(2)
    return {"a": w, "b": [w, jnp.zeros(2)], "c": {"w": w}}


def test_one_python_call() -> None:
    """A compiled function of arrays is called, and its result built, without a Python function.

    Before Python 3.12, within one.
    """
    step = pj.jit(lambda m: pydag.dag_map(lambda x: 2 * x, m))
    tree = model()
    for _ in range(3):
        step(tree)
    names = python_calls(lambda: step(tree))
    assert len(names) == (1 if sys.version_info >= (3, 12) else 2), names


def test_result_is_a_pytree_of_jax() -> None:
    """JAX takes a result apart and puts it together; the core makes the DAG of it."""
    leaves, spec = pydag.dag_flatten(model())
    result = _core.make_result(spec, leaves)
    doubled = jax.tree.map(lambda x: 2 * x, result)
    assert _core.open_result(doubled)[1] is spec
    tree = _core.build_result(doubled)
    assert tree["a"] is tree["b"][0] is tree["c"]["w"]
    assert tree["a"][0] == 2
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(result)]
    assert paths == ["['a']", "['b'][1]"]


@pytest.mark.parametrize(
    "arguments",
    [(1, []), (pydag.dag_structure([1]), 5), (pydag.dag_structure([1]), None), (), (1,)],
)
def test_result_of_something_else(arguments: Any) -> None:
    """A result consists of a spec and a tuple or list; what is no result is built already."""
    with pytest.raises(TypeError):
        _core.make_result(*arguments)
    with pytest.raises(TypeError):
        _core.open_result(arguments)
    assert _core.build_result(arguments) is arguments


def test_result_with_leaves_missing() -> None:
    """A result whose leaves don't fit its spec is refused when the DAG is made."""
    with pytest.raises(ValueError, match="Too few leaves"):
        _core.build_result(_core.make_result(pydag.dag_structure([1, 2]), (1,)))


def test_result_is_collected() -> None:
    """A result that holds itself is garbage like anything else."""

    class Leaf:
        pass

    leaf: Any = Leaf()
    leaf.result = _core.make_result(pydag.dag_structure([1]), [leaf])
    gone = weakref.ref(leaf)
    del leaf
    gc.collect()
    assert gone() is None


def test_what_the_way_in_raises() -> None:
    """A cycle is found by the core, and a function's own TypeError is the caller's."""
    step = pj.jit(lambda m: m["a"] + 1)
    tree = model()
    step(tree)
    tree["c"]["itself"] = tree["c"]
    with pytest.raises(pydag.CycleError):
        step(tree)

    def fails(_: Any) -> Any:
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        pj.jit(fails)(model())


def test_a_leaf_that_is_no_array_any_more() -> None:
    """Where an array was, a string makes the function be traced anew; and then an array again."""
    seen: list[type] = []

    @pj.jit
    def step(tree: Any) -> Any:
        seen.append(type(tree["x"]))
        return tree

    for leaf in (jnp.ones(2), "text", jnp.ones(2), "text", "other"):
        assert step({"x": leaf})["x"] is leaf or not isinstance(leaf, str)
    assert [cls is str for cls in seen] == [False, True, True]


class Asked:
    """A node that its own functions open."""

    def __init__(self, x: Any, note: Any) -> None:
        self.x, self.note = x, note


def test_a_call_follows_a_structure_whose_nodes_are_asked() -> None:
    """Each is asked once in a call; a function is traced anew where one gives another answer."""
    asked: list[Any] = []
    traced: list[Any] = []

    def flatten(node: Asked) -> tuple[Any, Any]:
        asked.append(node)
        return (node.x,), tuple(node.note)

    pydag.register_pydag_node(
        Asked, flatten, lambda note, children: Asked(children[0], list(note)), namespace="asked"
    )

    @pj.jit(namespace="asked")
    def double(node: Asked) -> Any:
        traced.append(node.note)
        return 2 * node.x

    def check(note: list[Any], times_traced: int) -> None:
        assert double(Asked(jnp.ones(2), note)).tolist() == [2.0, 2.0]
        assert len(traced) == times_traced

    check([1, "a"], 1)
    check([1, "a"], 1)
    check([True, "a"], 2)  # equal, and of another type
    check([2, "a"], 3)
    for note in ([1, "a"], [True, "a"], [2, "a"], [2, "a"], [1, "a"]):
        asked.clear()
        check(note, 3)
        assert len(asked) == 1
