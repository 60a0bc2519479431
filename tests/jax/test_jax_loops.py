# SPDX-License-Identifier: Apache-2.0
"""Loops and branches: what is carried, chosen and stacked keeps its structure and sharing."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from jax_models import tied_under

import pydag
from pydag import jaxinterop

tied = tied_under("a", "b", lambda value=1.0: jnp.float32(value), name="net")


def double(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    return pydag.dag_map(lambda x: x if isinstance(x, str) else 2 * x, tree)


def assert_tied(tree: Any, value: float) -> None:
    """Asserts that the tree is as `tied`, with another number."""
    assert tree["a"] is tree["b"]
    assert (float(tree["a"]), tree["name"]) == (value, "net")


def test_scan() -> None:
    """Carry and slices are shared inside as outside; what is stacked is shared as in the body."""

    def body(carry: Any, x: Any) -> Any:
        assert carry["a"] is carry["b"]
        assert x["u"] is x["v"][0]
        assert x["kind"] == "slice"
        seen = carry["a"] + x["u"]
        return double(carry), {"s": seen, "t": seen, "kind": x["kind"]}

    u = jnp.arange(3.0)
    carry, ys = jaxinterop.scan(body, tied(), {"u": u, "v": [u], "kind": "slice"})
    assert_tied(carry, 8.0)
    assert ys["s"] is ys["t"]
    assert (ys["s"].tolist(), ys["kind"]) == ([1.0, 3.0, 6.0], "slice")


def loops(body: Any, init: Any) -> list[Any]:
    """Calls of every loop with one body."""
    return [
        lambda: jaxinterop.scan(lambda c, _: (body(c), None), init, length=2),
        lambda: jaxinterop.while_loop(lambda c: True, body, init),
        lambda: jaxinterop.fori_loop(0, 2, lambda _, c: body(c), init),
    ]


class Counted(jaxinterop.Module):
    """A module with a number."""

    def __init__(self) -> None:
        self.w, self.n = jnp.float32(1.0), 1


@pytest.mark.parametrize("loop", [0, 1, 2], ids=["scan", "while_loop", "fori_loop"])
def test_a_body_that_changes_structure(loop: int) -> None:
    """`TypeError`, as in JAX: other keys, another static leaf, an array for a static one."""
    for body, text in (
        (lambda c: {"w": c["w"]}, "must be structured alike"),
        (lambda c: [c], "must be structured alike"),
        (lambda c: {"w": [c["w"]], "name": "net"}, "must be structured alike"),
        (lambda c: {"w": c["w"], "name": "other"}, r"carry\['name'\] is 'net'\n.*: it is 'other'"),
        (lambda c: {"w": c["w"], "name": 1.0}, r"carry\['name'\] is 'net'\n.*: it is an array"),
    ):
        with pytest.raises(TypeError, match=text):
            loops(body, {"w": jnp.float32(1.0), "name": "net"})[loop]()
    with pytest.raises(TypeError, match=r"carry"):  # JAX's own, about the type of an array
        loops(lambda c: c * 0.5, jnp.int32(1))[loop]()

    def count(c: Any) -> Any:
        c.n += 1
        return c

    with pytest.raises(TypeError, match=r"carry\.n is 1\n  after it: it is 2\n  Make it an array"):
        loops(count, Counted())[loop]()


def doubled(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    assert tree["a"] is tree["b"]
    return pydag.dag_map(lambda x: x if isinstance(x, str) else 2 * x, tree)


tied_row = tied_under("a", "b", lambda: jnp.arange(4.0), name="net")


def add(x: Any, y: Any) -> Any:
    """The sum of two trees, shared as they are."""
    assert x["a"] is x["b"]
    assert y["a"] is y["b"]
    return pydag.dag_map(lambda p, q: p if isinstance(p, str) else p + q, x, y)


def test_associative_scan() -> None:
    """Both arguments of the function, and the result, are shared as the elements are."""
    out = jaxinterop.associative_scan(add, tied_row())
    assert out["a"] is out["b"]
    assert (out["a"].tolist(), out["name"]) == ([0.0, 1.0, 3.0, 6.0], "net")
    out = jaxinterop.associative_scan(add, tied_row(), reverse=True)
    assert out["a"].tolist() == [6.0, 6.0, 5.0, 3.0]
    w = jnp.ones((2, 3))
    rows = jaxinterop.associative_scan(lambda x, y: [x[0] + y[0]] * 2, [w, w], axis=1)
    assert rows[0].tolist() == [[1.0, 2.0, 3.0]] * 2


def test_branches_that_differ_are_traced_once() -> None:
    """Also where the error says in what their results differ, and when it is raised again."""
    traced: list[str] = []

    def first(tree: Any) -> Any:
        traced.append("first")
        return tree

    def second(tree: Any) -> Any:
        traced.append("second")
        return [tree]

    for _ in range(2):
        with pytest.raises(
            TypeError, match=r"first: branches\[0\], first at [\s\S]*same structure"
        ):
            jaxinterop.switch(jnp.int32(1), [first, second], tied())
    assert traced == ["first", "second"]


def test_map() -> None:
    """The function sees slices that are shared as the whole is."""

    def f(tree: Any) -> Any:
        assert tree["a"] is tree["b"]
        assert tree["a"].shape == ()
        out = tree["a"] * tree["b"]
        return {"x": out, "y": out, "name": tree["name"]}

    for batch_size in (None, 2, 3):
        out = jaxinterop.map(f, tied_row(), batch_size=batch_size)
        assert out["x"] is out["y"]
        assert (out["x"].tolist(), out["name"]) == ([0.0, 1.0, 4.0, 9.0], "net")
    assert jaxinterop.map(lambda x: x + 1, jnp.arange(2.0)).tolist() == [1.0, 2.0]
