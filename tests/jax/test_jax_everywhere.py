# SPDX-License-Identifier: Apache-2.0
"""What holds for every wrapper of `jaxinterop`, and for one inside of another; random DAGs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from wrappers import IMPOSSIBLE, WRAPPERS

import pydag
from pydag import jaxinterop

every_wrapper = pytest.mark.parametrize("name", WRAPPERS)


def tied(value: float = 3.0) -> dict[str, Any]:
    """One array at two places, and leaves that JAX can't trace."""
    w = jnp.full((2, 2, 2), value)
    return {"a": w, "b": [w], "name": "net", "none": None, "function": jnp.sin}


def double(tree: Any) -> Any:
    """The tree with its array doubled."""
    assert tree["a"] is tree["b"][0]
    assert (tree["name"], tree["none"], tree["function"]) == ("net", None, jnp.sin)
    return {**tree, "a": (twice := 2 * tree["a"]), "b": [twice]}


def assert_tied(tree: Any, value: float) -> None:
    """Asserts that the tree is as `tied`, with another number."""
    assert tree["a"] is tree["b"][0]
    assert tree["a"].shape == (2, 2, 2)
    assert (tree["a"] == value).all()
    assert (tree["name"], tree["none"], tree["function"]) == ("net", None, jnp.sin)


@every_wrapper
def test_inside_and_outside(name: str) -> None:
    """What is one object outside is one inside, and the other way round."""
    assert_tied(WRAPPERS[name](double)(tied()), 6.0)


WITHOUT_IDENTITY = ("custom_jvp", "custom_vjp")  # in their results leaves have none


@every_wrapper
def test_around_every_other(name: str) -> None:
    """Wrappers may be nested in any order."""
    for inner, wrap in WRAPPERS.items():
        if (name, inner) not in IMPOSSIBLE and inner not in WITHOUT_IDENTITY:
            assert_tied(WRAPPERS[name](wrap(double))(tied()), 6.0)


@pytest.mark.parametrize("name", [n for n in WRAPPERS if ("grad", n) not in IMPOSSIBLE])
def test_a_gradient_through_it(name: str) -> None:
    """It is what it is without the wrapper, and tied; also compiled, and over one more axis."""

    def loss(tree: Any) -> Any:
        found = WRAPPERS[name](double)(tree)
        return jnp.sum(found["a"] * found["b"][0])

    gradient = jaxinterop.grad(loss)
    for found in (gradient(tied()), jaxinterop.jit(gradient)(tied())):
        assert found["a"] is found["b"][0]
        assert (found["a"] == 24.0).all()
        assert (found["name"], found["none"], found["function"]) == (None, None, None)
    w = jnp.full((2, 2, 2, 2), 3.0)
    mapped = jaxinterop.vmap(gradient)({**tied(), "a": w, "b": [w]})
    assert mapped["a"] is mapped["b"][0]
    assert (mapped["a"] == 24.0).all()


RETURNED_AS_GIVEN = [n for n in WRAPPERS if n not in ("scan", "fori_loop", "while_loop")]


@pytest.mark.parametrize("name", RETURNED_AS_GIVEN)
def test_what_is_returned(name: str) -> None:
    """An input, an alias of it and the same fresh object twice are what they are outside, too."""

    def f(tree: Any) -> Any:
        fresh = tree["a"] + 1
        layer = [fresh]
        return {
            "input": tree["a"],
            "alias": tree["b"][0],
            "fresh": fresh,
            "again": [layer, layer],
            "other": tree["a"] + 1,
        }

    given = tied()
    out = WRAPPERS[name](f)(given)
    assert out["input"] is out["alias"]
    assert out["fresh"] is out["again"][0][0]
    assert out["again"][0] is out["again"][1]
    assert len({id(out[key]) for key in ("input", "fresh", "other")}) == 3
    assert (out["other"] == 4.0).all()
    assert given["a"] is given["b"][0]


@every_wrapper
def test_trees_without_arrays(name: str) -> None:
    """Empty DAGs, None and leaves that JAX can't trace go in and come out.

    Where one differentiates by such leaves alone, that is an error.
    """
    by = ["grad", "value_and_grad", "hessian", "jacfwd", "jacrev"]
    text = {"a": (), "b": [None, "text"]}
    trees: list[Any] = [{}, [], None, text]
    for tree in trees:
        if name in ("vmap", "map"):
            found = WRAPPERS[name](lambda pair: pair)([tree, jnp.ones(2)])[0]
        elif tree is text and name in by:
            with pytest.raises(TypeError, match="nothing to differentiate by"):
                WRAPPERS[name](lambda t: t)(tree)
            continue
        else:
            found = WRAPPERS[name](lambda t: t)(tree)
        assert found == tree


@every_wrapper
def test_an_exception_inside(name: str) -> None:
    """It passes through as it is; the arguments and the next call are as before."""
    fails = True

    def f(tree: Any) -> Any:
        if fails:
            raise TypeError("mine")
        return double(tree)

    wrapped, tree = WRAPPERS[name](f), tied()
    with pytest.raises(TypeError, match=r"^mine"):
        wrapped(tree)
    assert_tied(tree, 3.0)
    fails = False
    assert_tied(wrapped(tree), 6.0)


@every_wrapper
def test_a_function_that_changes_its_argument(name: str) -> None:
    """It changes its own copy; also under `jax.disable_jit`, where the result is tied alike."""

    def f(tree: Any) -> Any:
        tree["a"] = tree["b"][0] = tree["a"] * 2
        return tree

    tree = tied()
    assert_tied(WRAPPERS[name](f)(tree), 6.0)
    with jax.disable_jit():
        if name not in ("shard_map", "switch"):
            assert_tied(WRAPPERS[name](f)(tree), 6.0)
    assert_tied(tree, 3.0)


@every_wrapper
def test_a_cycle(name: str) -> None:
    """`CycleError`, before JAX sees it."""
    cycle: list[Any] = [jnp.ones(2)]
    cycle.append(cycle)
    with pytest.raises(pydag.CycleError):
        WRAPPERS[name](lambda tree: tree)(cycle)
