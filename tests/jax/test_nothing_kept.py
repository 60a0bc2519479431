# SPDX-License-Identifier: Apache-2.0
"""After a call nothing of it is alive: no tracer, and no array that the call has made."""

import gc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest

import pydag.jaxinterop as pj

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
