# SPDX-License-Identifier: Apache-2.0
"""The table of wrappers is the package's and the pages'; options; wrappers of one's own."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import checkify
from jax_models import tied_under
from wrappers import APART, WRAPPERS

import pydag
from pydag import jaxinterop

ROOT = Path(__file__).parents[2]
TABLE = {*WRAPPERS, *APART}


def test_it_has_all_wrappers() -> None:
    """Whatever `jaxinterop` shows of its rooms of wrappers, and nothing else."""
    shown = {name: getattr(jaxinterop, name) for name in vars(jaxinterop)["__all__"]}
    rooms = ("pydag.jaxinterop.wrappers.", "pydag.jaxinterop.compiled.jit")
    found = {
        n for n, thing in shown.items() if str(getattr(thing, "__module__", "")).startswith(rooms)
    }
    assert found == TABLE
    assert not WRAPPERS.keys() & APART.keys()


def test_the_list_of_functions_names_them() -> None:
    """Each leads into the reference."""
    text = (ROOT / "docs/functions.md").read_text("utf-8")
    assert set(re.findall(r"\[`pj\.(\w+)[^`]*`\]\(reference/jax\.md#", text)) >= TABLE


@pytest.mark.parametrize("name", APART)
def test_inside_and_outside(name: str) -> None:
    """What is one object outside is one inside, and the other way round."""
    w = jnp.full((2, 2), 3.0)
    seen: list[bool] = []

    def double(tree: Any) -> Any:
        seen.append(tree["a"] is tree["b"][0])
        assert (tree["name"], tree["function"]) == ("net", jnp.sin)
        twice = 2 * tree["a"]
        return {**tree, "a": twice, "b": [twice]}

    out = APART[name](double)({"a": w, "b": [w], "name": "net", "function": jnp.sin})
    assert seen
    assert all(seen)
    assert out["a"] is out["b"][0]
    assert (out["name"], out["function"]) == ("net", jnp.sin)
    assert jnp.array_equal(jnp.asarray(out["a"]), 2 * w)


def two(tree: Any) -> Any:
    """The sum of two leaves that are shared by accident, and are two here."""
    assert tree[0] is not tree[1]
    return [tree[0] + 1, tree[1] + 2]


def with_rule(f: Any) -> Any:
    """The function, with a rule that nobody asks for."""
    if isinstance(f, jaxinterop.custom_jvp):
        f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    else:
        f.defvjp(lambda x: (f(x), None), lambda saved, ct: (ct,))
    return f


j: Any = jaxinterop

# By way of each wrapper, with options, what a function of a tree gives that returns a tree like it.
WITH_OPTIONS: dict[str, Callable[..., Any]] = {
    "jit": lambda f, tree, **how: j.jit(f, **how)(tree),
    "vmap": lambda f, tree, **how: j.vmap(f, **how)(tree),
    "checkpoint": lambda f, tree, **how: j.checkpoint(f, **how)(tree),
    "vjp": lambda f, tree, **how: j.vjp(f, tree, **how)[0],
    "jvp": lambda f, tree, **how: j.jvp(f, (tree,), (tree,), **how)[0],
    "linearize": lambda f, tree, **how: j.linearize(f, tree, **how)[0],
    "cond": lambda f, tree, **how: j.cond(True, f, f, tree, **how),
    "switch": lambda f, tree, **how: j.switch(0, [f, f], tree, **how),
    "scan": lambda f, tree, **how: j.scan(lambda c, _: (f(c), None), tree, length=1, **how)[0],
    "fori_loop": lambda f, tree, **how: j.fori_loop(0, 1, lambda _, c: f(c), tree, **how),
    "while_loop": lambda f, tree, **how: j.while_loop(
        lambda c: c[-1] < 1, lambda c: [*f(c[:-1]), c[-1] + 1], [*tree, 0], **how
    )[:-1],
    "map": lambda f, tree, **how: j.map(f, tree, **how),
    "custom_jvp": lambda f, tree, **how: j.jit(with_rule(j.custom_jvp(f, **how)), **how)(tree),
    "custom_vjp": lambda f, tree, **how: j.jit(with_rule(j.custom_vjp(f, **how)), **how)(tree),
    "keep_sharing": lambda f, tree, **how: j.keep_sharing(jax.jit, **how)(f)(tree),
}


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_identity_of_nodes_only(name: str) -> None:
    """With `identity="nodes"` arrays that are shared by accident go in apart: everywhere."""
    z = jnp.zeros(2)
    found = WITH_OPTIONS[name](two, [z, z], identity="nodes")
    assert [leaf.tolist() for leaf in found] == [[1.0, 1.0], [2.0, 2.0]]


def test_identity_of_nodes_only_in_derivatives() -> None:
    """So does what they are differentiated by, and what is added to them."""
    z, how = jnp.zeros(2), {"identity": "nodes"}
    tree = [z, z]
    added = j.apply_updates(tree, [z + 1, z + 2], **how)
    assert [leaf.tolist() for leaf in added] == [[1.0, 1.0], [2.0, 2.0]]
    assert len(j.make_jaxpr(two, **how)(tree).in_avals) == 2
    gradient = j.grad(lambda t: jnp.sum(t[0] * 3 + t[1] * 5), **how)(tree)
    assert [leaf.tolist() for leaf in gradient] == [[3.0, 3.0], [5.0, 5.0]]
    for jacobian in (j.jacfwd, j.jacrev):
        rows = jacobian(lambda t: t[0][0] * 3 + t[1][0] * 5, **how)(tree)
        assert [row.tolist() for row in rows] == [[3.0, 0.0], [5.0, 0.0]]


class Box:
    """A node in the namespace `boxes` alone."""

    def __init__(self, content: Any) -> None:
        self.content = content


pydag.register_fields(Box, namespace="boxes")


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_a_namespace(name: str) -> None:
    """Classes of a namespace are nodes where a wrapper gets its name."""
    shared = Box(jnp.arange(2.0))

    def f(pair: Any) -> Any:
        assert pair[0] is pair[1]
        assert type(pair[0]) is Box
        return pair

    found = WITH_OPTIONS[name](f, [shared, shared], namespace="boxes")
    assert found[0] is found[1]
    assert type(found[0]) is Box
    assert found[0].content.tolist() == [0.0, 1.0]


tied = tied_under("a", "b", lambda: jnp.arange(3.0), name="net")


def double(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    assert tree["a"] is tree["b"]
    return pydag.dag_map(lambda x: x if isinstance(x, str) else 2 * x, tree)


def assert_doubled(tree: Any) -> None:
    """Asserts that the tree is what `double` makes."""
    assert tree["a"] is tree["b"]
    assert (tree["a"].tolist(), tree["name"]) == ([0.0, 2.0, 4.0], "net")


@pytest.mark.parametrize("name", ["jit", "vmap", "checkpoint", "named_call"])
def test_a_transformation(name: str) -> None:
    """A function that takes a function and gives one."""
    transformation = getattr(jax, name)
    assert_doubled(jaxinterop.keep_sharing(transformation)(double)(tied()))


def test_a_function_of_a_function_and_trees() -> None:
    """One that isn't a transformation is made one by `functools.partial`."""
    mapped = jaxinterop.keep_sharing(lambda f: functools.partial(jax.lax.map, f))
    assert_doubled(mapped(double)(tied()))


def test_what_has_the_form_of_the_arguments() -> None:
    """It comes as a pair of positional and keyword arguments."""
    args, kwargs = jaxinterop.keep_sharing(jax.grad)(lambda p, q: p["a"] * p["b"] * q)(
        {"a": jnp.float32(2.0), "b": jnp.float32(3.0)}, q=5.0
    )
    assert args == ({"a": 15.0, "b": 10.0},)
    assert kwargs == {"q": 6.0}


def test_identity_and_namespace() -> None:
    """They are said where the transformation is wrapped."""
    jit = jaxinterop.keep_sharing(jax.jit, identity="nodes")
    w = jnp.ones(2)

    def apart(x: Any, y: Any) -> Any:
        assert x is not y
        return x + y

    assert jit(apart)(w, w).tolist() == [2.0, 2.0]


MORE: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "beside it": (lambda f: lambda t: ("more", f(t)), lambda out: out[1]),
    "in a dict": (lambda f: lambda t: {"z": f(t), "a": 3}, lambda out: out["z"]),
    "in a list": (lambda f: lambda t: [[f(t)], None], lambda out: out[0][0]),
    "several results": (lambda f: lambda t: (f(t), f(t)), lambda out: out[1]),
    "by jit": (lambda f: jax.jit(lambda t: (f(t), 1)), lambda out: out[0]),
    "checkify": (checkify.checkify, lambda out: out[1]),
    "its shape": (lambda f: lambda t: [jax.eval_shape(f, t)], lambda out: out[0]),
    "mapped": (
        lambda f: lambda t: (jax.vmap(f, axis_size=2, in_axes=None)(t), 0),
        lambda out: out[0],
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_a_transformation_that_returns_more_than_the_result(name: str) -> None:
    """What it returns comes out, and in it the result, tied."""
    transformation, result_of = MORE[name]
    w = jnp.float32(3.0)
    out = result_of(
        jaxinterop.keep_sharing(transformation)(
            lambda p: {"d": p["b"], "c": [p["a"]], "e": "text"}
        )({"a": w, "b": w})
    )
    assert list(out) == ["d", "c", "e"]
    assert out["c"][0] is out["d"]
    assert out["e"] == "text"


def test_a_transformation_that_returns_a_value_and_a_derivative() -> None:
    """The derivative has the form of the arguments."""
    w = jnp.float32(3.0)
    value, ((gradient,), kwargs) = jaxinterop.keep_sharing(jax.value_and_grad)(
        lambda p: p["a"] * p["b"]
    )({"a": w, "b": w})
    assert (float(value), float(gradient["a"]), kwargs) == (9.0, 6.0, {})
    assert gradient["a"] is gradient["b"]


def test_a_check_that_fails() -> None:
    """The error of `checkify` comes beside the result."""

    def checked(p: Any) -> Any:
        checkify.check(p["a"] > 3, "too small")
        return {"x": p["a"]}

    error, out = jaxinterop.keep_sharing(checkify.checkify)(checked)({"a": jnp.float32(1.0)})
    assert "too small" in error.get()
    assert float(out["x"]) == 1.0
