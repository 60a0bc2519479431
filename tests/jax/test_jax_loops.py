"""`jaxinterop`'s loops: what is carried keeps its structure and its sharing."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from small_models import tied_under

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


def test_scan_options() -> None:
    """`length`, `reverse` and `unroll` reach JAX; nothing to scan over is None."""

    def body(carry: Any, x: Any) -> Any:
        assert x is None
        return double(carry), None

    carry, ys = jaxinterop.scan(body, tied(), length=3, unroll=2)
    assert_tied(carry, 8.0)
    assert ys is None
    _, ys = jaxinterop.scan(lambda c, x: (c, c + x), 0.0, jnp.arange(3.0), reverse=True)
    assert ys.tolist() == [0.0, 1.0, 2.0]


def test_while_loop() -> None:
    """Condition and body get a carry that is shared as the initial value."""

    def condition(carry: Any) -> Any:
        assert carry["a"] is carry["b"]
        return carry["a"] + carry["b"] < 10

    assert_tied(jaxinterop.while_loop(condition, double, tied()), 8.0)


def test_fori_loop() -> None:
    """With bounds that are known and with bounds that are not."""

    def body(i: Any, carry: Any) -> Any:
        assert carry["a"] is carry["b"]
        return pydag.dag_map(lambda x: x if isinstance(x, str) else x + i, carry)

    assert_tied(jaxinterop.fori_loop(0, 3, body, tied()), 4.0)
    assert_tied(jaxinterop.fori_loop(0, 3, body, tied(), unroll=True), 4.0)
    assert_tied(jaxinterop.jit(lambda n: jaxinterop.fori_loop(0, n, body, tied()))(3), 4.0)


def loops(body: Any, init: Any) -> list[Any]:
    """Calls of every loop with one body."""
    return [
        lambda: jaxinterop.scan(lambda c, _: (body(c), None), init, length=2),
        lambda: jaxinterop.while_loop(lambda c: True, body, init),
        lambda: jaxinterop.fori_loop(0, 2, lambda _, c: body(c), init),
    ]


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


def test_a_body_that_returns_no_pair() -> None:
    """`TypeError`, as in JAX."""
    with pytest.raises(TypeError, match="must return a pair"):
        jaxinterop.scan(lambda c, x: c, 0.0, length=2)


def test_weak_types_are_kept() -> None:
    """Python numbers are promoted as JAX promotes them."""
    init: Any = 0
    ours = jaxinterop.scan(lambda c, x: (c + x, c), init, jnp.arange(3.0))
    theirs = jax.lax.scan(lambda c, x: (c + x, c), init, jnp.arange(3.0))
    assert ours[0].dtype == theirs[0].dtype
    assert ours[1].tolist() == theirs[1].tolist()


def test_random_keys_are_carried() -> None:
    """Typed keys are arrays like others."""

    def body(carry: Any, _: Any) -> Any:
        key, now = jax.random.split(carry["key"])
        return {"key": key, "same": key}, jax.random.normal(now)

    key = jax.random.key(0)
    carry, ys = jaxinterop.scan(body, {"key": key, "same": key}, length=3)
    assert carry["key"] is carry["same"]
    assert len(set(ys.tolist())) == 3
