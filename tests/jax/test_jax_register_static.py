# SPDX-License-Identifier: Apache-2.0
"""Classes of `jax.tree_util.register_static`: nodes without children, opened by the core."""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
from pydag import jaxinterop
from pydag.jaxinterop.foreign import jax_private


def new_class() -> Any:
    class Mode:
        __slots__ = ("name",)

        def __init__(self, name: str) -> None:
            self.name = name

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Mode) and self.name == other.name

        def __hash__(self) -> int:
            return hash(self.name)

    return jax.tree_util.register_static(Mode)


@pytest.fixture(params=["the core", "JAX's functions"])
def mode(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A class of two: one that the core opens, and one of a JAX that does it otherwise."""
    if request.param != "the core":
        monkeypatch.setattr(jax_private, "_AS_WHOLE", [None, None])
    return new_class()


def python_calls(function: Callable[..., Any], *args: Any) -> int:
    """How many functions of Python run."""
    found = []
    sys.setprofile(lambda frame, event, arg: found.append(frame) if event == "call" else None)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return len(found)


def test_no_python_call_for_an_instance() -> None:
    """Neither to take apart nor to build, also where a tree is seen for the first time."""
    mode = new_class()
    pydag.dag_copy([{"mode": mode("known"), "x": 1.0}])  # a class is looked up once
    for size in (3, 30):
        tree = [{"mode": mode(str(i)), "x": 1.0} for i in range(size)]
        assert python_calls(pydag.dag_copy, tree) == 0
        leaves, spec = pydag.dag_flatten(tree)
        assert python_calls(pydag.dag_flatten, tree) == python_calls(spec.unflatten, leaves) == 0


def test_as_jax_has_it(mode: Any) -> None:
    """The leaves, the structure, and what is built again: the very instances."""
    one, other = mode("a"), mode("b")
    tree = {"m": one, "x": 1.0, "again": [one, other]}
    for _ in range(4):
        leaves, spec = pydag.dag_flatten(tree)
        assert leaves == jax.tree.leaves(tree) == [1.0]
        built = pydag.dag_unflatten(spec, [2.0])
        assert built["m"] is built["again"][0] is one
        assert built["again"][1] is other
        assert spec.num_shared == 1
    assert pydag.dag_paths(tree) == [("x",)]
    assert pydag.dag_map(lambda x: x + 1, tree)["x"] == 2.0


def test_a_function_is_compiled_for_each_value(mode: Any) -> None:
    """Static content belongs to what was compiled."""
    traced = []

    @jaxinterop.jit
    def f(tree: Any) -> Any:
        traced.append(tree["mode"].name)
        return tree["x"] * (2 if tree["mode"].name == "double" else 1)

    x = jnp.ones(2)
    for name, factor in (("double", 2), ("single", 1), ("double", 2)) * 2:
        assert f({"mode": mode(name), "x": x})[0] == factor
    assert traced == ["double", "single"]
