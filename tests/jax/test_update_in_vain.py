# SPDX-License-Identifier: Apache-2.0
"""Warnings about `update_argnums` where it writes nothing."""

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import flax.struct
import jax
import jax.numpy as jnp
import optax
import pytest

import pydag
import pydag.jaxinterop as pj

X = jnp.ones(3)
OPTIMIZER = pj.optimizer(optax.sgd(0.1))


class Net(pj.Module):
    """A model that can be changed."""

    def __init__(self) -> None:
        self.w = jnp.ones(3)


class Frozen(eqx.Module):
    """A model that can't."""

    w: Any


@flax.struct.dataclass
class State:
    """A state that can't."""

    w: Any


class Pair(NamedTuple):
    """Two values."""

    w: Any
    b: Any


def first(tree: Any) -> Any:
    """Something that is computed from a tree."""
    return jnp.sum(pj.tree.leaves(tree)[0])


@pytest.mark.parametrize(
    "tree", [X, (X, X), Pair(X, X), Frozen(X), State(X), Frozen((X, Pair(X, None)))]
)
def test_where_nothing_can_be_changed(tree: Any) -> None:
    """The warning names the argument and the cure, once for each trace; grad warns, too."""
    f = pj.jit(lambda model, tree: first(tree), update_argnums=(0, 1))
    with pytest.warns(UserWarning, match=r"args\[1\].*nothing can be changed") as told:
        f(Net(), tree)
    assert len(told) == 1
    assert "Return the new value" in str(told[0].message)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(Net(), tree)
    with pytest.warns(UserWarning, match="update_argnums names args"):
        pj.grad(first, update_argnums=0)(tree)
    with pytest.warns(UserWarning, match=r"update_argnames names kwargs\['tree'\]"):
        pj.jit(lambda *, tree: first(tree), update_argnames="tree")(tree=tree)


def test_where_something_can_be_changed() -> None:
    """An object somewhere below is enough; refs are written anyway, and None is nothing."""

    def f(*trees: Any) -> Any:
        return first(trees)

    ref = jax.new_ref(X)
    trees = ([X], {"a": X}, (Net(), X), Frozen([X]), pj.Dag((X,)), OPTIMIZER.init(Net()), ref, None)
    pj.jit(f, update_argnums=tuple(range(len(trees))))(*trees)


def trained(step: Any) -> Any:
    """A model after one call of a step that updates it."""
    model = Net()
    step(model, OPTIMIZER.init(model))
    return model


def new_model(model: Any, state: Any) -> Any:
    """What one step of training makes."""
    gradient = pj.grad(lambda model: jnp.sum(model.w**2))(model)
    updates, _ = OPTIMIZER.update(gradient, state, model)
    return pj.apply_updates(model, updates)


def test_a_model_that_is_rebound_is_warned_about() -> None:
    """`model = apply_updates(model, ...)` changes no object, and nothing is trained."""

    @pj.jit(update_argnums=0)
    def step(model: Any, state: Any) -> Any:
        model = new_model(model, state)
        return jnp.sum(model.w)

    with pytest.warns(pj.LostUpdateWarning, match=r"makes a new object of args\[0\]") as told:
        model = trained(step)
    assert model.w.tolist() == [1, 1, 1]
    assert "pydag.dag_update(model, pj.apply_updates(model, updates))" in str(told[0].message)


def test_a_new_model_that_is_written_or_returned_is_not_warned_about() -> None:
    """It is written into the object, or is the result; or the argument isn't one to be updated."""

    @pj.jit(update_argnums=0)
    def writes(model: Any, state: Any) -> None:
        pydag.dag_update(model, new_model(model, state))

    @pj.jit(update_argnums=0)
    def assigns(model: Any, state: Any) -> None:
        model.w = new_model(model, state).w

    @pj.jit(update_argnums=0)
    def returns(model: Any, state: Any) -> Any:
        return new_model(model, state)

    @pj.jit
    def tries(model: Any, state: Any) -> Any:
        return jnp.sum(new_model(model, state).w)

    for step in (writes, assigns):
        assert trained(step).w.tolist() == pytest.approx([0.8] * 3)
    for step in (returns, tries):
        assert trained(step).w.tolist() == [1, 1, 1]
