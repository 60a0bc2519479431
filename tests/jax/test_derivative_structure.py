# SPDX-License-Identifier: Apache-2.0
"""A derivative has, to JAX, the structure of what it is for: by every way out of a wrapper."""

import gc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from pydag.jaxinterop.packed.seen import is_any_derivative_seen
from pydag.structure.copies import copy_listeners

import pydag
import pydag.jaxinterop as pj


class Net(pj.Module):
    """Has what no derivative has: numbers, text, a function, an integer, a key; and a tie."""

    def __init__(self) -> None:
        self.w = jnp.ones(3)
        self.u, self.power, self.name, self.act = self.w, 3, "net", jnp.tanh
        self.count, self.key = jnp.int32(0), jax.random.key(0)


@pydag.register_module
class Registered:
    def __init__(self) -> None:
        self.w, self.power = jnp.ones(3), 3


MODELS: dict[str, Callable[[], Any]] = {
    "pj.Module": Net,
    "register_module": Registered,
    "in a dict": lambda: {"net": Net(), "others": [Registered(), jnp.ones(3)]},
}


def loss(model: Any) -> Any:
    floats = [x for x in pj.tree.leaves(model) if jnp.issubdtype(x.dtype, jnp.floating)]
    return sum(jnp.sum(x**3) for x in floats)


def gradient(model: Any) -> Any:
    return pj.grad(loss)(model)


def stacked(model: Any) -> Any:
    return pj.tree.map(lambda x: jnp.stack([x, x]), model)


def halved(model: Any) -> Any:
    return pj.tree.map(lambda x: 0.5 * x, gradient(model))


adam = pj.optimizer(optax.adam(0.1))


def updates(model: Any) -> Any:
    return adam.update(gradient(model), adam.init(model), model)[0]


@pj.custom_vjp
def with_rule(model: Any) -> Any:
    return loss(model)


with_rule.defvjp(lambda m: (loss(m), gradient(m)), lambda g, c: (g,))


# From a function that makes a derivative of a model to that derivative, as the way brings it out.
WAYS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "eager": lambda f, m: f(m),
    "jit": lambda f, m: pj.jit(f)(m),
    "jit, called again": lambda f, m: [g := pj.jit(f), g(m), g(m)][2],
    "jit, update_argnums": lambda f, m: pj.jit(f, update_argnums=0)(m),
    "jit, donate_argnums": lambda f, m: pj.jit(f, donate_argnums=0)(pj.tree.copy(m)),
    "jit, out_shardings": lambda f, m: pj.jit(f, out_shardings=None)(m),
    "jit, a tree of out_shardings": lambda f, m: pj.jit(
        lambda m: (f(m), loss(m)), out_shardings=(None, None)
    )(m)[0],
    "jit, ref in the result": lambda f, m: pj.jit(lambda m, r: (f(m), r))(
        m, jax.new_ref(jnp.zeros(2))
    )[0],
    "jit, ref that is written": lambda f, m: pj.jit(
        lambda m, r: [r.__setitem__(..., r[...] + 1), f(m)][1]
    )(m, jax.new_ref(jnp.zeros(2))),
    "jit in jit": lambda f, m: pj.jit(lambda m: pj.jit(f)(m))(m),
    "lower and compile": lambda f, m: pj.jit(f).lower(m).compile()(m),
    "checkpoint": lambda f, m: pj.checkpoint(f)(m),
    "checkpoint in jit": lambda f, m: pj.jit(pj.checkpoint(f))(m),
    "cond": lambda f, m: pj.cond(True, f, f, m),
    "cond, zeros": lambda f, m: pj.cond(True, f, lambda m: pj.tree.map(jnp.zeros_like, f(m)), m),
    "switch": lambda f, m: pj.switch(1, [f, f], m),
    "scan": lambda f, m: pj.scan(lambda c, _: (c, f(m)), 0.0, length=1)[1],
    "scan, the carry": lambda f, m: pj.scan(
        lambda c, _: (pj.tree.map(jnp.add, c, f(m)), None), f(m), length=2
    )[0],
    "fori_loop": lambda f, m: pj.fori_loop(0, 2, lambda i, c: f(m), f(m)),
    "while_loop": lambda f, m: pj.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, f(m)), (0, f(m))
    )[1],
    "vmap": lambda f, m: pj.vmap(f)(stacked(m)),
    "vmap, a tree of out_axes": lambda f, m: pj.vmap(lambda m: (f(m), loss(m)), out_axes=(0, 0))(
        stacked(m)
    )[0],
    "value_and_grad, aux": lambda f, m: pj.value_and_grad(lambda m: (loss(m), f(m)), has_aux=True)(
        m
    )[0][1],
    "grad, aux": lambda f, m: pj.grad(lambda m: (loss(m), f(m)), has_aux=True)(m)[1],
    "vjp, aux": lambda f, m: pj.vjp(lambda m: (loss(m), f(m)), m, has_aux=True)[2],
    "eval_shape": lambda f, m: pj.eval_shape(f, m),
    "keep_sharing": lambda f, m: pj.keep_sharing(jax.jit)(f)(m),
    "through an argument": lambda f, m: pj.checkpoint(lambda g: g)(f(m)),
    "pj.tree.map": lambda f, m: pj.tree.map(lambda x: 2 * x, f(m)),
    "pj.tree.copy": lambda f, m: pj.tree.copy(f(m)),
    "pj.tree.unflatten": lambda f, m: (lambda x: pj.tree.unflatten(x[1], x[0]))(
        pj.tree.flatten(f(m))
    ),
    "dag_map": lambda f, m: pydag.dag_map(lambda x: 2 * x, f(m)),
    "dag_map, an average": lambda f, m: pydag.dag_map(lambda a, b: (a + b) / 2, f(m), f(m)),
    "dag_map_with_path": lambda f, m: pydag.dag_map_with_path(lambda _, x: 2 * x, f(m)),
    "dag_map, some": lambda f, m: pydag.dag_map(lambda x: 2 * x, f(m), where="*w"),
    "dag_copy": lambda f, m: pydag.dag_copy(f(m)),
    "dag_copy of a copy": lambda f, m: pydag.dag_copy(pydag.dag_copy(f(m))),
    "dag_map in jit": lambda f, m: pj.jit(lambda m: pydag.dag_map(lambda x: 2 * x, f(m)))(m),
    "in a list of many": lambda f, m: pydag.dag_map(lambda x: 2 * x, [1, f(m), jnp.ones(2)])[1],
    "jax.tree.map": lambda f, m: jax.tree.map(lambda x: 2 * x, f(m)),
    "jax.jit": lambda f, m: jax.jit(f)(m),
}

DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "a gradient": gradient,
    "value_and_grad": lambda m: pj.value_and_grad(loss)(m)[1],
    "wrt": lambda m: pj.grad(loss, wrt="*w")(m),
    "a cotangent": lambda m: pj.vjp(loss, m)[1](jnp.ones(()))[0],
    "a tangent": lambda m: pj.jvp(lambda m: m, (m,), (pj.grad(loss)(m),))[1],
    "a tangent of linearize": lambda m: pj.linearize(lambda m: m, m)[1](pj.grad(loss)(m)),
    "of a function with a rule": pj.grad(with_rule),
    "updates": updates,
    "a scaled gradient": halved,
}


def has_structure_of(derivative: Any, model: Any) -> bool:
    one: Any = jax.tree.structure(derivative)
    other: Any = jax.tree.structure(model)
    return bool(one == other)


def dropped(derivative: Any) -> int:
    """How many leaves JAX sees in it that are None."""
    return sum(x is None for x in jax.tree.leaves(derivative, is_leaf=lambda x: x is None))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_a_gradient_by_every_way(name: str, way: str) -> None:
    """`jax.tree.map` takes the model and its gradient together, whatever brought the latter out."""
    model = MODELS[name]()
    found = WAYS[way](gradient, model)
    like = stacked(model) if way.startswith("vmap") else model
    nones = jax.tree.structure(found, is_leaf=lambda x: x is None)
    expected: Any = jax.tree.structure(like)
    assert nones == expected
    if dropped(found) == 0:
        assert has_structure_of(found, like)
    both = jax.tree.map(
        lambda x, g: x if g is None else g, like, found, is_leaf=lambda x: x is None
    )
    assert has_structure_of(both, like)


@pytest.mark.parametrize("way", ["eager", "jit", "checkpoint", "cond", "scan", "jit in jit"])
@pytest.mark.parametrize("kind", DERIVATIVES)
def test_every_derivative(kind: str, way: str) -> None:
    """So do cotangents, tangents, updates and averages of them."""
    model = Net()
    found = WAYS[way](DERIVATIVES[kind], model)
    expected: Any = jax.tree.structure(model)
    assert jax.tree.structure(found, is_leaf=lambda x: x is None) == expected
    assert found.power is None


def test_who_hands_on_notes_is_forgotten() -> None:
    """Once no derivative is left, `dag_map` and `dag_copy` have nobody to tell."""
    gc.collect()
    found = gradient(Net())
    assert copy_listeners
    del found
    gc.collect()
    if not is_any_derivative_seen():  # another test may have left one
        pydag.dag_copy([Registered(), None])
        assert not copy_listeners


def test_a_map_that_fills_in_what_is_none() -> None:
    """A tree in which something stands for None is no derivative."""
    found = pydag.dag_map(lambda x: 0 if x is None else x, gradient(Net()), none_is_leaf=True)
    assert (found.power, found.name) == (0, 0)
    assert jax.tree.map(lambda x: x, found).power == 0


def test_what_a_derivative_of_another_model_says() -> None:
    """A compiled function that gets a derivative says nothing of the model that it was made for."""
    twice = pj.jit(lambda g: pj.tree.map(lambda x: 2 * x, g))
    for power in (3, 5):
        model = Registered()
        model.power = power
        assert twice(gradient(model)).power is None


def test_branches_of_which_one_has_a_note() -> None:
    """A derivative and a tree that was made by hand, with None where it has None, are alike."""

    def by_hand(model: Any) -> Any:
        made = Registered()
        made.w, made.power = jnp.zeros(3), None  # type: ignore[assignment]  # as a derivative has
        return made

    model = Registered()
    for branches in ((gradient, by_hand), (by_hand, gradient)):
        for chosen in (True, False):
            found = pj.cond(chosen, *branches, model)
            assert found.power is None
            assert found.w.shape == (3,)


def test_a_structure_is_that_of_the_data() -> None:
    """`pj.tree.structure` doesn't tell a derivative from a tree that holds the same."""
    made = Registered()
    made.power = None  # type: ignore[assignment]  # as a derivative has
    assert pj.tree.structure(gradient(Registered())) == pj.tree.structure(made)
    assert hash(pj.tree.structure(gradient(Registered()))) == hash(pj.tree.structure(made))
