# SPDX-License-Identifier: Apache-2.0
"""`LostTieWarning`, and copies that come apart in silence."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest

import pydag
from pydag import jaxinterop as pj
from pydag.jaxinterop import LostTieWarning


def tied() -> dict[str, Any]:
    w = jnp.ones((2, 3))
    return {"encoder": w, "decoder": {"w": w}, "name": "net"}


def plain(model: Any) -> Any:
    """What unties: JAX's own map."""
    return {**jax.tree.map(lambda x: x * 2, {**model, "name": None}), "name": model["name"]}


def warned(call: Callable[[], Any]) -> list[str]:
    """The warnings about lost ties."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, LostTieWarning)]


def test_the_text() -> None:
    """It names the function, both places on both sides, and what to do; at the function's line."""
    step = pj.jit(plain)
    with pytest.warns(LostTieWarning) as caught:
        step(tied())
    [told] = caught
    text = str(told.message)
    assert text.startswith(f"plain at {__file__}:{plain.__code__.co_firstlineno} returns what")
    assert "given: args[0]['decoder']['w'] and args[0]['encoder'] are one object" in text
    assert "returned: result['decoder']['w'] and result['encoder'] are two" in text
    for cure in ("pj.tree.map", "pj.tree.copy", "pydag.untie"):
        assert cure in text
    assert (told.filename, told.lineno) == (__file__, plain.__code__.co_firstlineno)


def test_once_for_each_trace() -> None:
    """A call that is cached says nothing; another trace says it again, and so does `lower`."""
    step = pj.jit(lambda model: plain(model))
    assert len(warned(lambda: step(tied()))) == 1
    assert warned(lambda: step(tied())) == []
    other = {**tied(), "more": jnp.ones(1)}
    assert len(warned(lambda: [step(other), step(other)])) == 1
    assert len(warned(lambda: pj.jit(lambda m: plain(m)).lower(tied()))) == 1


def test_a_part_of_the_result() -> None:
    """Somewhere in a result, of any argument, by keyword too, also of a gradient."""

    def step(scale: Any, *, model: Any) -> Any:
        return {"loss": scale, "new": [plain(model)]}

    [text] = warned(lambda: pj.jit(step)(1.0, model=tied()))
    assert "kwargs['model']['decoder']['w']" in text
    assert "result['new'][0]['encoder']" in text

    def total(model: Any) -> Any:
        return jnp.sum(model["encoder"] * model["decoder"]["w"])

    unnamed = {key: value for key, value in tied().items() if key != "name"}
    assert len(warned(lambda: pj.jit(jax.grad(total))(unnamed))) == 1
    assert warned(lambda: pj.jit(pj.grad(total))(unnamed)) == []


@pytest.mark.parametrize(
    "function",
    [
        lambda model: [model["encoder"] + 1, model["decoder"]["w"] + 2],  # another structure
        lambda model: {**model, "encoder": jnp.sum(model["encoder"])},  # another shape
        lambda model: {**model, "encoder": model["encoder"].astype(int)},  # another type
        lambda model: {**plain(model), "name": "other"},  # another constant
        lambda model: plain(pydag.untie(model, ("encoder",))),
    ],
)
def test_nothing_is_said(function: Any) -> None:
    """Where the tie is kept, the result is something else, or untying is meant."""
    assert warned(lambda: pj.jit(function)(tied())) == []


def test_untying_inside_of_another_compiled_function() -> None:
    """It is meant there, also when the inner function was compiled before."""
    inner = pj.jit(lambda model: pydag.untie(model, ("encoder",)))
    assert warned(lambda: inner(tied())) == []
    assert warned(lambda: pj.jit(lambda model: inner(model))(tied())) == []
    assert warned(lambda: [inner(tied()), inner(tied())]) == []


class Policy(pj.Module):
    """A model with two weights, one of which is at two places."""

    def __init__(self) -> None:
        self.embed = self.unembed = jnp.arange(3.0) + 1
        self.bias = jnp.ones(3)
        self.steps = jnp.int32(0)

    def __call__(self) -> Any:
        return jnp.sum(self.embed * self.unembed + self.bias)


def distance(tree: Any) -> Any:
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

    def distance(tree: Any) -> Any:
        return tree["policy"]() - jax.lax.stop_gradient(tree["ref"]())

    [text] = told(lambda: pj.grad(distance, wrt="['policy']*")(tree))
    assert "wrt selects args[0]['policy'].bias, and with it args[0]['ref'].bias" in text
    assert "pj.tree.copy" in text
    jitted = pj.jit(pj.grad(distance, wrt="['policy']*"))
    assert len(told(lambda: [jitted(tree), jitted(tree)])) == 1
    [text] = told(lambda: pj.optimizer(optax.sgd(1), wrt="['policy']*").init(tree))
    assert "params['policy'].bias" in text
    assert (
        told(lambda: pj.jacrev(distance, wrt=["['ref'].bias"])(tree)) == []
    )  # it is one leaf alone


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
    assert told(lambda: pj.grad(distance, wrt=wrt)(tree)) == []
