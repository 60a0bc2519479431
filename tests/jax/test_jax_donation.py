# SPDX-License-Identifier: Apache-2.0
"""Donation: a shared buffer is donated once; what isn't written of an updated argument stays."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from small_models import tied_under

import pydag
import pydag.jaxinterop as pj
from pydag import jaxinterop

tied = tied_under("a", "b", lambda: jnp.ones((2, 2)))


def both_changed(params: Any, state: Any, x: Any = 1.0) -> Any:
    """Uses everything once."""
    return pydag.dag_map(lambda p: p - x, params), pydag.dag_map(lambda s: s + x, state)


def test_a_tied_weight_is_donated() -> None:
    """Its buffer is deleted, and the result is right and tied, both_changed after both_changed."""
    jitted = jaxinterop.jit(both_changed, donate_argnums=(0, 1))
    params, state = tied(), [jnp.zeros(3)]
    for _ in range(3):
        given = params["a"], state[0]
        params, state = jitted(params, state)
        assert all(array.is_deleted() for array in given)
        assert params["a"] is params["b"]
    assert params["a"].tolist() == [[-2.0, -2.0], [-2.0, -2.0]]
    assert state[0].tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    "options",
    [{"donate_argnums": 1}, {"donate_argnames": "state"}, {"donate_argnums": (-2,)}],
)
def test_only_what_is_meant_is_donated(options: Any) -> None:
    """By number, by name, and counted from the end."""
    params, state, x = tied(), [jnp.zeros(3)], jnp.float32(1)
    jaxinterop.jit(both_changed, **options)(params, state, x)
    assert state[0].is_deleted()
    assert not params["a"].is_deleted()
    assert not x.is_deleted()


def test_one_array_in_two_donated_arguments() -> None:
    """It is donated once."""
    w = jnp.ones((2, 2))
    params, state = jaxinterop.jit(both_changed, donate_argnums=(0, 1))([w], [w])
    assert w.is_deleted()
    assert params[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert state[0].tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_what_is_not_traced_may_be_in_both() -> None:
    """A static leaf or an empty container isn't donated, so it may stand anywhere."""
    config, empty = "net", ()
    shared: list[Any] = []
    params: list[Any] = [config, empty, shared, jnp.ones(2)]
    state: list[Any] = [config, empty, shared, jnp.ones(2)]
    f = jaxinterop.jit(lambda p, s: (p[3] + 1, s[3] * 2), donate_argnums=0)
    assert f(params, state)[1].tolist() == [2.0, 2.0]
    assert params[3].is_deleted()
    assert not state[3].is_deleted()


def test_donation_beside_static_arguments() -> None:
    """Numbers mean the arguments as they are written, static ones included."""

    def f(name: str, params: Any, n: int, x: Any) -> Any:
        return pydag.dag_map(lambda p: p * n + x, params)

    params, x = tied(), jnp.float32(1)
    out = jaxinterop.jit(f, static_argnums=(0, 2), donate_argnums=1)("net", params, 3, x)
    assert params["a"].is_deleted()
    assert not x.is_deleted()
    assert out["a"] is out["b"]
    assert float(out["a"][0, 0]) == 4.0


class Net(pj.Module):
    def __init__(self, table: Any) -> None:
        self.table, self.w, self.count = table, jnp.ones(3), jnp.int32(0)
        self.frozen = jnp.full(3, 2.0)


def step(net: Any, x: Any) -> Any:
    net.w = net.w + x
    net.count = net.count + 1
    return net.table.sum() + net.w.sum()


def new_table() -> Any:
    return jnp.arange(12.0).reshape(4, 3) + 0.0


def test_what_is_not_written_stays_alive() -> None:
    """A frozen leaf of a donated argument comes out in its own buffer, and nothing is left over."""
    net = Net(new_table())
    buffers = net.table.unsafe_buffer_pointer(), net.frozen.unsafe_buffer_pointer()
    f = pj.jit(step, update_argnums=0, donate_argnums=0)
    for _ in range(3):
        old = net.w
        f(net, 1.0)
        assert old.is_deleted()
    assert (net.w.tolist(), int(net.count)) == ([4.0, 4.0, 4.0], 3)
    assert net.frozen.tolist() == [2.0, 2.0, 2.0]
    assert net.table.tolist() == new_table().tolist()
    after = net.table.unsafe_buffer_pointer(), net.frozen.unsafe_buffer_pointer()
    assert after == buffers


def test_numbers_are_not_donated() -> None:
    """A number of a dict that isn't written stays what it is."""

    def run(tree: Any) -> None:
        tree["w"] = tree["w"] * tree["rate"]

    tree: dict[str, Any] = {"w": jnp.ones(2), "rate": 0.5, "epoch": 3}
    for _ in range(2):
        pj.jit(run, update_argnums=0, donate_argnums=0)(tree)
    assert (tree["w"].tolist(), tree["rate"], tree["epoch"]) == ([0.25, 0.25], 0.5, 3)
    assert (type(tree["rate"]), type(tree["epoch"])) == (float, int)
