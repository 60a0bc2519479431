# SPDX-License-Identifier: Apache-2.0
"""After a call nothing of it is alive: no tracer, no array, no garbage; nothing is traced again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import optax
import pytest
from jax_models import tied_under
from wrappers import APART, WRAPPERS

import pydag
import pydag.jaxinterop as pj
from pydag import jaxinterop

XS = jnp.ones((4, 3))


class Net(pj.Module):
    def __init__(self) -> None:
        self.w = jnp.ones((3, 3))
        self.u, self.n, self.key = self.w, 3, jax.random.key(0)


def loss(net: Any) -> Any:
    return (net.w * net.u).sum()


def written(net: Any) -> Any:
    net.w = net.u = net.w + 1
    return net.w.sum()


def pair() -> dict[str, Any]:
    w = jnp.ones(3)
    return {"a": w, "b": w}


def product(p: Any) -> Any:
    return (p["a"] * p["b"]).sum()


@pj.custom_vjp
def with_rule(p: Any) -> Any:
    return product(p)


with_rule.defvjp(lambda p: (product(p), p), lambda p, c: (pj.tree.map(lambda x: x * c, p),))


def injected() -> Any:
    rate = optax.cosine_decay_schedule(1e-2, 50)
    return pj.optimizer(
        optax.chain(
            optax.clip_by_global_norm(1.0),
            optax.inject_hyperparams(optax.adamw)(learning_rate=rate),
        )
    )


def masked() -> Any:
    return pj.optimizer(
        optax.masked(optax.adam(1e-3), lambda m: jax.tree.map(lambda x: x.ndim > 1, m))
    )


def trained(opt: Any) -> Callable[[Any, Any], Any]:
    def step(net: Any, state: Any) -> Any:
        updates, state = opt.update(pj.grad(loss)(net), state, net)
        return pj.apply_updates(net, updates), state

    return step


CALLS: dict[str, Callable[[], Any]] = {
    "jit": lambda: pj.jit(loss)(Net()),
    "jit, update_argnums": lambda: pj.jit(written, update_argnums=0)(Net()),
    "grad": lambda: pj.grad(loss)(Net()),
    "vmap": lambda: pj.vmap(lambda p, x: p["a"] * x, in_axes=(None, 0))(pair(), XS),
    "scan": lambda: pj.scan(lambda c, x: (c, x * c["a"]), pair(), XS),
    "cond": lambda: pj.cond(True, lambda p: p, lambda p: p, pair()),
    "checkpoint": lambda: pj.jit(pj.grad(pj.checkpoint(loss)))(Net()),
    "vjp": lambda: pj.vjp(loss, Net())[1](1.0),
    "jvp": lambda: pj.jvp(product, (pair(),), (pair(),)),
    "custom_vjp": lambda: pj.jit(pj.grad(with_rule))(pair()),
    "eval_shape": lambda: pj.eval_shape(loss, Net()),
    "refs": lambda: pj.jit(lambda r: r[0][...] + r[1][...])([jax.new_ref(XS)] * 2),
    "optimizer": lambda: pj.jit(trained(opt := injected()))(Net(), opt.init(Net())),
    "optimizer with a mask": lambda: pj.jit(trained(opt := masked()))(Net(), opt.init(Net())),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_tracer_is_kept(name: str) -> None:
    """`jax.checking_leaks()` finds nothing, whatever the wrapper."""
    with jax.checking_leaks():
        CALLS[name]()


@pytest.mark.parametrize("make", [injected, masked, lambda: pj.optimizer(optax.adam(1e-3))])
def test_updates_do_not_add_up(make: Callable[[], Any]) -> None:
    """A thousand eager updates leave no object and no array behind."""
    opt, weights = make(), {"w": jnp.ones((3, 3))}
    state = opt.init(weights)

    def train(steps: int) -> tuple[int, int]:
        nonlocal state
        for _ in range(steps):
            _, state = opt.update(weights, state, weights)
        gc.collect()
        return len(gc.get_objects()), len(jax.live_arrays())  # type: ignore[no-untyped-call]  # it has no types

    train(20)
    objects, arrays = train(1)
    more_objects, more_arrays = train(1000)
    assert more_arrays <= arrays
    assert more_objects - objects < 500


def init(params: Any) -> Any:
    return optax.EmptyState()


def update(updates: Any, state: Any, params: Any = None) -> Any:
    return updates, state


EVERY = WRAPPERS | APART


class Data:
    """Something that a function closes over, and no code of JAX's keeps."""


@pytest.fixture
def no_garbage_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def closing_over(data: Any) -> Callable[[Any], Any]:
    """A function of a tree."""

    def f(tree: Any) -> Any:
        assert data is not None
        return pydag.dag_map(lambda x: 2 * x, tree)

    return f


tied = tied_under("a", "b", lambda: jnp.ones((2, 2, 2)))


@pytest.mark.usefixtures("no_garbage_collector")
@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_in_a_cycle(name: str) -> None:
    """The wrapper, once and again, is in none, nor is what was made for the function."""
    data = Data()
    f = closing_over(data)
    wrapped = EVERY[name](f)
    wrapped(tied())
    wrapped(tied())
    EVERY[name](f)(tied())
    alive = weakref.ref(data)
    del data, f, wrapped
    assert alive() is None


BY_JAX = {"scan", "fori_loop", "while_loop", "map", "cond", "switch"}
"""JAX keeps what it traced for them, of whatever function."""


@pytest.mark.parametrize("count", [2, 40])
@pytest.mark.parametrize("name", [name for name in EVERY if name not in BY_JAX])
def test_no_program_outlives_its_function(name: str, count: int) -> None:
    """JAX keeps nothing of what was traced for a function that is gone, of few arrays or many."""
    tree = {"tied": (w := jnp.ones((2, 2, 2)))} | {f"{i}": w + i for i in range(count)} | {"w": w}

    def variables() -> int:
        for _ in range(3):
            EVERY[name](closing_over(Data()))(tree)
        gc.collect()
        return sum(isinstance(x, jax.extend.core.Var) for x in gc.get_objects())

    assert variables() == variables()


named = tied_under("a", "b", lambda: jnp.ones((2, 2, 2)), name="net")


def double(tree: Any) -> Any:
    """The tree with its array doubled."""
    return pydag.dag_map(lambda x: x if isinstance(x, str) else 2 * x, tree)


def untied() -> dict[str, Any]:
    """The same with two arrays."""
    return {**named(), "b": jnp.ones((2, 2, 2))}


def calls(name: str, traces: list[str]) -> Callable[[Any], Any]:
    """A call of a wrapper with functions that are nobody else's, and stay the same.

    Args:
        traces: Where the functions note that they run.
    """

    def body(tree: Any) -> Any:
        traces.append("trace")
        return double(tree)

    def scanned(carry: Any, _: Any) -> Any:
        return body(carry), None

    def counted(_: Any, carry: Any) -> Any:
        return body(carry)

    def is_small(carry: Any) -> Any:
        return carry["a"][0, 0, 0] < 3

    ways: dict[str, Callable[[Any], Any]] = {
        "scan": lambda tree: jaxinterop.scan(scanned, tree, length=2),
        "fori_loop": lambda tree: jaxinterop.fori_loop(0, 2, counted, tree),
        "while_loop": lambda tree: jaxinterop.while_loop(is_small, body, tree),
        "cond": lambda tree: jaxinterop.cond(True, body, body, tree),
        "switch": lambda tree: jaxinterop.switch(0, [body, body], tree),
        "jit": lambda tree: jaxinterop.jit(body)(tree),
        "checkpoint": lambda tree: jaxinterop.checkpoint(body)(tree),
        "keep_sharing": lambda tree: jaxinterop.keep_sharing(jax.jit)(body)(tree),
    }
    return ways[name]


@pytest.mark.parametrize(
    "name",
    ["scan", "fori_loop", "while_loop", "cond", "switch", "jit", "checkpoint", "keep_sharing"],
)
def test_a_function_is_traced_once(name: str) -> None:
    """One structure and sharing is traced once, called and wrapped again outside of `jit`."""
    traces: list[str] = []
    call = calls(name, traces)
    call(named())
    first = len(traces)
    assert first > 0
    call({**(tree := named()), "a": (w := 2 * tree["a"]), "b": w})
    assert len(traces) == first
    call(untied())
    assert len(traces) == 2 * first


STEPS = 10_000


class Fields:
    """An object of attributes."""

    def __init__(self) -> None:
        self.w, self.b = jnp.ones(2), jnp.ones(2)


pydag.register_fields(Fields, ["w", "b"])

MODELS: dict[str, Callable[[], Any]] = {
    "dict": lambda: {"w": jnp.ones(2), "b": jnp.ones(2)},
    "register_fields": Fields,
}


def squares(model: Any) -> Any:
    """The sum of the squares."""
    return sum((x**2).sum() for x in pydag.dag_leaves(model))


@contextmanager
def collections() -> Iterator[list[str]]:
    """A list that grows by one item for each collection of the garbage collector."""
    found: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(f"generation {info['generation']}")

    gc.collect()
    gc.callbacks.append(note)
    try:
        yield found
    finally:
        gc.callbacks.remove(note)


@pytest.mark.parametrize("name", MODELS)
def test_steps_set_off_no_collection(name: str) -> None:
    """Ten thousand training steps leave no tracked object behind that wakes the collector."""
    gradient = jaxinterop.grad(squares)
    step: Any = jaxinterop.jit(
        lambda model: pydag.dag_map(lambda w, d: w - 0.001 * d, model, gradient(model))
    )
    model = step(step(MODELS[name]()))
    with collections() as found:
        for _ in range(STEPS):
            model = step(model)
    assert found == []
