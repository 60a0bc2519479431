# SPDX-License-Identifier: Apache-2.0
"""`donate_argnums` with `update_argnums`."""

from typing import Any

import jax.numpy as jnp

import pydag.jaxinterop as pj


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

    tree = {"w": jnp.ones(2), "rate": 0.5, "epoch": 3}
    for _ in range(2):
        pj.jit(run, update_argnums=0, donate_argnums=0)(tree)
    assert (tree["w"].tolist(), tree["rate"], tree["epoch"]) == ([0.25, 0.25], 0.5, 3)
    assert (type(tree["rate"]), type(tree["epoch"])) == (float, int)


def test_other_arguments_are_donated_as_ever() -> None:
    """An argument that isn't updated is donated whole; one array in both is the updated one's."""
    net, rest = Net(new_table()), {"a": jnp.ones(3), "b": jnp.ones(3)}

    def both(net: Any, rest: Any) -> Any:
        net.w = net.w + rest["a"]
        return {"a": 2 * rest["a"], "b": 2 * rest["b"]}

    pj.jit(both, update_argnums=0, donate_argnums=(0, 1))(net, rest)
    assert rest["a"].is_deleted()
    assert rest["b"].is_deleted()
    assert net.w.tolist() == [2.0, 2.0, 2.0]
    assert not net.count.is_deleted()
