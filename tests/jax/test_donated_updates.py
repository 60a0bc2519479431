# SPDX-License-Identifier: Apache-2.0
"""`donate_argnums` with `update_argnums`: what is written is donated, what stays lives on."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest

import pydag
import pydag.jaxinterop as pj


class Net(pj.Module):
    def __init__(self, table: Any) -> None:
        self.table, self.w, self.count = table, jnp.ones(3), jnp.int32(0)


def step(net: Any, x: Any) -> Any:
    net.w = net.w + x
    net.count = net.count + 1
    return net.table.sum() + net.w.sum()


def new_table() -> Any:
    return jnp.arange(12.0).reshape(4, 3) + 0.0


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("is_named", [False, True])
def test_what_stays_lives_on(is_named: bool) -> None:
    """A frozen table that somebody else holds is neither donated nor returned; weights are."""
    traces: list[None] = []

    def traced(net: Any, x: Any) -> Any:
        traces.append(None)
        return step(net, x)

    chosen: Any = {"update_argnames": "net", "donate_argnames": "net"}
    f = pj.jit(traced, **(chosen if is_named else {"update_argnums": 0, "donate_argnums": 0}))
    table = new_table()
    net, other = Net(table), Net(table)
    for i in range(3):
        w, count = net.w, net.count
        assert float(f(net=net, x=1.0) if is_named else f(net, 1.0)) == 66.0 + 3 * (i + 2)
        assert w.is_deleted()
        assert count.is_deleted()
        assert net.table is table
    assert len(traces) == 1
    assert not table.is_deleted()
    assert float(other.table.sum()) == 66.0
    assert int(net.count) == 3


def test_the_compiled_program() -> None:
    """It has one result for each leaf that is written, and takes their memory for it."""
    f = pj.jit(step, update_argnums=0, donate_argnums=0)
    lowered = f.lower(Net(new_table()), 1.0)
    assert lowered.as_text().count("tf.aliasing_output") == 2
    net = Net(table := new_table())
    w = net.w
    lowered.compile()(net, 1.0)
    assert (w.is_deleted(), table.is_deleted(), net.table is table) == (True, False, True)


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


def test_writes_that_depend_on_shapes() -> None:
    """A leaf that is written for some shapes alone is never lost for others."""

    def sometimes(net: Any, x: Any) -> Any:
        net.count = net.count + 1
        if x.ndim:
            net.w = net.w + x
        return net.w.sum()

    f = pj.jit(sometimes, update_argnums=0, donate_argnums=0)
    net = Net(new_table())
    for x, total in ((jnp.ones(3), 6.0), (jnp.ones(()), 6.0), (jnp.ones(3), 9.0), (1.0, 9.0)):
        assert float(f(net, jnp.asarray(x))) == total
        assert float(net.w.sum()) == total
    assert int(net.count) == 4


def test_static_leaves_and_other_structures() -> None:
    """What is written is known for each key by itself."""

    def by_flag(p: Any, net: Any) -> Any:
        name = "a" if net.flag else "b"
        p[name] = p[name] + 1
        return p["a"].sum()

    class Flag(pj.Module):
        def __init__(self, flag: bool) -> None:
            self.flag = flag

    f = pj.jit(by_flag, update_argnums=0, donate_argnums=0)
    p = {"a": jnp.zeros(2), "b": jnp.zeros(2)}
    for flag in (True, False, True, False):
        f(p, Flag(flag))
    assert (p["a"].tolist(), p["b"].tolist()) == ([2.0, 2.0], [2.0, 2.0])
    more = {"a": jnp.zeros(2), "b": jnp.zeros(2), "c": (c := jnp.zeros(2))}
    f(more, Flag(True))
    f(p, Flag(True))
    assert more["c"] is c
    assert not c.is_deleted()


def test_refs_beside() -> None:
    """Refs are updated in place as ever, in one call with donated updates."""
    ref = jax.new_ref(jnp.zeros(3))

    def with_ref(net: Any, ref: Any) -> Any:
        ref[...] = ref[...] + net.w
        return step(net, 1.0)

    f = pj.jit(with_ref, update_argnums=0, donate_argnums=0)
    net = Net(table := new_table())
    for _ in range(3):
        f(net, ref)
    assert ref[...].tolist() == [6.0, 6.0, 6.0]
    assert net.table is table
    assert net.w.tolist() == [4.0, 4.0, 4.0]


def test_inside_another_function() -> None:
    """In a function that is traced nothing is donated, and the update comes out of both."""
    inner = pj.jit(step, update_argnums=0, donate_argnums=0)
    net = Net(table := new_table())
    for _ in range(2):
        pj.jit(lambda net: inner(net, 1.0), update_argnums=0)(net)
    assert (net.table is table, net.w.tolist()) == (True, [3.0, 3.0, 3.0])


def test_a_run_with_a_frozen_part() -> None:
    """A step that trains in place keeps what it doesn't train."""
    opt = pj.optimizer(optax.adam(0.1), wrt="w")
    net = Net(table := new_table())
    run: Any = {"net": net, "state": opt.init(net)}

    def train(run: Any) -> Any:
        gradient = pj.grad(lambda net: (net.w * net.table).sum(), wrt="w")(run["net"])
        updates, run["state"] = opt.update(gradient, run["state"], run["net"])
        pydag.dag_update(run["net"], pj.apply_updates(run["net"], updates))

    f = pj.jit(train, update_argnums=0, donate_argnums=0)
    mu = run["state"][0].mu
    for _ in range(3):
        w = net.w
        f(run)
        assert w.is_deleted()
    assert net.table is table
    assert not table.is_deleted()
    assert run["state"][0].mu is mu
    assert int(run["state"][0].count) == 3
