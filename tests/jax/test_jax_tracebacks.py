# SPDX-License-Identifier: Apache-2.0
"""How much of a traceback is pydag's; how leaves are named; what wide trees cost."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from operations import python_calls

import pydag
import pydag.jaxinterop as pj
from pydag import jaxinterop

PYDAG = str(Path(pydag.__file__).parent) + os.sep
OPTIMIZER = pj.optimizer(optax.add_decayed_weights(0.1))


class Net(pj.Module):
    """A model for two inputs, which fails for three."""

    def __init__(self) -> None:
        self.w = jnp.ones(2)

    def __call__(self, x: Any) -> Any:
        return jnp.sum(self.w * x)

    def step(self, carry: Any, x: Any) -> Any:
        return carry, self(x)


def loss(net: Any, x: Any) -> Any:
    """Fails by its shapes."""
    return net(x)


def _custom_vjp(net: Any, x: Any) -> Any:
    f = pj.custom_vjp(loss)
    f.defvjp(lambda net, x: (loss(net, x), None), lambda _, g: (None, None))
    return f(net, x)


def _custom_jvp(net: Any, x: Any) -> Any:
    f = pj.custom_jvp(loss)
    f.defjvp(lambda primals, tangents: (loss(*primals), tangents[1].sum()))
    return pj.grad(f, argnums=1)(net, x)


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "jit": pj.jit(loss),
    "grad": pj.grad(loss),
    "jacrev": pj.jacrev(loss),
    "vjp": lambda net, x: pj.vjp(loss, net, x),
    "vmap": lambda net, x: pj.vmap(loss, in_axes=(None, 0))(net, x[None]),
    "checkpoint": pj.checkpoint(loss),
    "cond": lambda net, x: pj.cond(True, loss, loss, net, x),
    "scan": lambda net, x: pj.scan(lambda net, x: (net, net(x)), net, x[None]),
    "while_loop": lambda net, x: pj.while_loop(lambda c: c[0](c[1]) > 0, lambda c: c, [net, x]),
    "fori_loop": lambda net, x: pj.fori_loop(0, 2, lambda i, c: [c[0], c[0](c[1])], [net, x]),
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "eval_shape": lambda net, x: pj.eval_shape(loss, net, x),
    "make_jaxpr": lambda net, x: pj.make_jaxpr(loss)(net, x),
    "optimizer": lambda net, x: OPTIMIZER.update(
        pj.tree.map(lambda _: x, net), OPTIMIZER.init(net), net
    ),
}
NESTED: dict[str, Callable[[Any, Any], Any]] = {
    "jit of grad": pj.jit(pj.grad(loss)),
    "grad of jit": pj.grad(pj.jit(loss)),
    "jit of grad of scan": pj.jit(
        lambda net, x: pj.grad(lambda net: pj.scan(net.step, x, x[None])[1].sum())(net)
    ),
    "vmap of checkpoint of cond": lambda net, x: pj.vmap(
        pj.checkpoint(lambda net, x: pj.cond(x.sum() > 0, loss, loss, net, x)), in_axes=(None, 0)
    )(net, x[None]),
}


def frames_of_ours(fails: Callable[[Any, Any], Any]) -> int:
    """How many frames of pydag's a user sees."""
    with pytest.raises((TypeError, ValueError)) as info:
        fails(Net(), jnp.ones(3))
    frames = traceback.extract_tb(info.value.__traceback__)
    return sum(frame.filename.startswith(PYDAG) for frame in frames)


@pytest.mark.parametrize("name", WAYS)
def test_a_shape_error_has_few_frames_of_pydag(name: str) -> None:
    """At most three, in each wrapper."""
    assert frames_of_ours(WAYS[name]) <= 3


@pytest.mark.parametrize("name", NESTED)
def test_nested_wrappers_add_few_frames(name: str) -> None:
    """At most six, where wrappers are nested."""
    assert frames_of_ours(NESTED[name]) <= 6


def test_the_users_own_frames_are_there() -> None:
    """The frames of the functions that the user wrote stay, innermost last."""
    with pytest.raises(TypeError) as info:
        WAYS["jit"](Net(), jnp.ones(3))
    own = [f.name for f in traceback.extract_tb(info.value.__traceback__) if f.filename == __file__]
    assert own[-2:] == ["loss", "__call__"]


@pytest.mark.parametrize("count", [1, 8, 9, 40])
@pytest.mark.parametrize("donated", [(), (1,)])
def test_errors_name_a_leaf_however_many_there_are(count: int, donated: tuple[int, ...]) -> None:
    """Few leaves are passed to JAX one by one, many as one argument: errors say the same."""
    model = {i: jnp.float32(i) for i in range(count)}

    def f(model: Any, _other: Any) -> Any:
        return 1 if model[count - 1] > 0 else 2

    with pytest.raises(jax.errors.TracerBoolConversionError) as raised:
        pj.jit(f, donate_argnums=donated)(model, jnp.ones(2))
    assert f"args[0][{count - 1}]" in str(raised.value)


@pytest.mark.parametrize("count", [7, 8, 9, 40])
def test_a_call_gives_each_leaf_its_own_place_however_many_there_are(count: int) -> None:
    """Beside the number from which on the leaves are one argument; with a shared leaf, too."""
    model = {i: jnp.float32(i) for i in range(count)} | {"again": None}
    model["again"] = model[0]
    jitted = pj.jit(lambda model: [model, model["again"] is model[0]])
    for _ in range(3):
        same, is_shared = jitted(model)
        assert [float(same[i]) for i in range(count)] == [float(i) for i in range(count)]
        assert same["again"] is same[0]
        assert bool(is_shared)


struct: Any = jax.ShapeDtypeStruct
HERE = jax.sharding.SingleDeviceSharding(jax.devices()[0])


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called meanwhile, of Python's and of C's."""
    return len(python_calls(work, ("call", "c_call")))


def first(tree: Any) -> Any:
    return tree["0.weight"]


def work_on(width: int, how: str) -> int:
    """The calls that the first trace for a dict with so many arrays takes."""
    names = [f"{i}.weight" for i in range(width)]
    tree = {name: struct((2,), "float32") for name in names}
    treatments: Any = dict.fromkeys(names, 0 if how == "axes" else HERE)
    if how == "axes":
        mapped = jaxinterop.vmap(first, in_axes=(treatments,))
        return calls_of(lambda: jaxinterop.eval_shape(mapped, tree))
    jitted: Any = {
        "in": lambda: jaxinterop.jit(first, in_shardings=(treatments,)),
        "out": lambda: jaxinterop.jit(lambda tree: tree, out_shardings=treatments),
    }[how]()
    return calls_of(lambda: jitted.trace(tree))


@pytest.mark.parametrize("how", ["axes", "in", "out"])
def test_trees_of_shardings_and_axes(how: str) -> None:
    """A sharding or an axis for each of four times as many names: about four times the work."""
    work_on(50, how)
    assert work_on(800, how) < 6 * work_on(200, how)


class Layer:
    """A module with an array and a number, which is configuration."""

    def __init__(self, weight: Any) -> None:
        self.weight, self.eps = weight, 1e-6


pydag.register_module(Layer)
