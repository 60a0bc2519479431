"""Parallel copies: parts that hold the same objects leaf by leaf, though nobody meant a tie."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
import pytest

import pydag
import pydag.jaxinterop as pj


class Policy(pj.Module):
    """A model with two weights, one of which is at two places."""

    def __init__(self) -> None:
        self.embed = self.unembed = jnp.arange(3.0) + 1
        self.bias = jnp.ones(3)
        self.steps = jnp.int32(0)

    def __call__(self) -> Any:
        return jnp.sum(self.embed * self.unembed + self.bias)


@pydag.register_fields
@dataclasses.dataclass
class State:
    """A training state."""

    params: Any
    target: Any


def loss(tree: Any) -> Any:
    """Of two policies."""
    first, second = tree.values() if isinstance(tree, dict) else tree
    return first() - jax.lax.stop_gradient(second())


def told(call: Callable[[], Any], category: type[Warning] = pj.SharedSelectionWarning) -> list[str]:
    """The warnings of a class."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, category)]


COPIES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda m: m,
    "dag_copy": pydag.dag_copy,
    "copy": copy.copy,
    "astype": lambda m: pj.tree.map(lambda x: x.astype(x.dtype), m),
    "stop_gradient": lambda m: pj.tree.map(jax.lax.stop_gradient, m),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_selection_that_divides_copies_is_told(name: str) -> None:
    """By a derivative and by an optimizer, with both places and the cure."""
    model = Policy()
    tree = {"policy": model, "ref": COPIES[name](model)}

    def loss(tree: Any) -> Any:
        return tree["policy"]() - jax.lax.stop_gradient(tree["ref"]())

    [text] = told(lambda: pj.grad(loss, wrt="['policy']*")(tree))
    assert "wrt selects args[0]['policy'].bias, and with it args[0]['ref'].bias" in text
    assert "pj.tree.copy" in text
    jitted = pj.jit(pj.grad(loss, wrt="['policy']*"))
    assert len(told(lambda: [jitted(tree), jitted(tree)])) == 1
    [text] = told(lambda: pj.optimizer(optax.sgd(1), wrt="['policy']*").init(tree))
    assert "params['policy'].bias" in text
    assert told(lambda: pj.jacrev(loss, wrt=["['ref'].bias"])(tree)) == []  # it is one leaf alone


@pytest.mark.parametrize(
    ("tree", "wrt"),
    [
        ({"policy": Policy(), "ref": Policy()}, "['policy']*"),
        ({"policy": (m := Policy()), "ref": pj.tree.copy(m)}, "['policy']*"),
        ({"policy": m, "ref": m}, "*.bias"),
        ({"policy": m, "ref": m}, None),
        ({"policy": m, "ref": m}, Policy),
        ({"policy": m, "ref": m}, lambda leaf: jnp.ndim(leaf) > 0),
        ({"policy": m, "ref": m}, ["*.bias", "*.embed"]),
        ({"policy": m, "ref": m}, ["['policy'].bias", "['ref'].bias"]),
    ],
    ids=["two", "copied", "both", "all", "class", "predicate", "list", "each"],
)
def test_other_selections_are_not(tree: Any, wrt: Any) -> None:
    """Copies that are copies, and selections that take both or ask about the leaf alone."""
    assert told(lambda: pj.grad(loss, wrt=wrt)(tree)) == []


def half(tree: Any) -> Any:
    """Another tree, with ties kept."""
    return pydag.dag_map(lambda x: x / 2 if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)


class Pair(NamedTuple):
    """A pair of states."""

    h: Any
    c: Any


MODEL = Policy()
APART: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "a record": (lambda s: State(s.params, half(s.target)), State(MODEL, MODEL)),
    "a record of copies": (
        lambda s: State(s.params, half(s.target)),
        State(MODEL, pydag.dag_copy(MODEL)),
    ),
    "a dict in a dict": (
        lambda s: {"m": {"a": s["m"]["a"], "b": half(s["m"]["b"])}},
        {"m": {"a": MODEL, "b": MODEL}},
    ),
    "a namedtuple of trees in a dict": (
        lambda s: {"s": Pair(s["s"].h + 1, s["s"].c + 2)},
        {"s": Pair(*[jnp.zeros(2)] * 2)},
    ),
    "a tuple": (lambda s: (s[0] + 1, s[1] + 2), (jnp.zeros(2),) * 2),
}


@pytest.mark.parametrize("name", APART)
def test_copies_come_apart_in_silence(name: str) -> None:
    """Copies of the first step that are two after it are no lost tie; one more trace at most."""
    step, state = APART[name]
    traces = []

    def counted(state: Any) -> Any:
        traces.append(1)
        return step(state)

    jitted = pj.jit(counted)

    def run(state: Any) -> None:
        for _ in range(4):
            state = jitted(state)

    assert told(lambda: run(state), UserWarning) == []
    assert len(traces) <= 2


def test_ties_that_are_meant_are_told() -> None:
    """A layer that a module has twice, items of a list, leaves of a dict, ties inside of copies."""

    class Layer(pj.Module):
        def __init__(self) -> None:
            self.w, self.b = jnp.ones(2), jnp.zeros(2)

    class Net(pj.Module):
        def __init__(self) -> None:
            self.one = self.two = Layer()

    def plain(tree: Any) -> Any:
        return jax.tree.map(lambda x: x * 2, tree)

    layer = {"w": jnp.ones(2), "b": jnp.zeros(2)}
    w = jnp.ones(2)
    tied = {"v": w, "w": w}

    def lost(tree: Any) -> int:
        return len(told(lambda: pj.jit(lambda t: plain(t))(tree), pj.LostTieWarning))

    def untied(net: Any) -> Any:
        net = pydag.dag_copy(net)
        net.two = pydag.dag_map(jnp.negative, net.two)
        return net

    assert len(told(lambda: pj.jit(untied)(Net()), pj.LostTieWarning)) == 1
    trees: dict[str, Any] = {"list": [layer, layer], "leaves": {"h": w, "c": w}}
    trees["inside"] = {"state": {"one": tied, "two": tied}}
    assert {name: lost(tree) for name, tree in trees.items()} == dict.fromkeys(trees, 1)
