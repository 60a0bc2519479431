# SPDX-License-Identifier: Apache-2.0
"""`LostTieWarning`: a compiled function that returns its argument with a tie lost."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
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


def test_as_an_error() -> None:
    """A filter that makes it an error makes it one at each call: nothing was compiled."""
    step = pj.jit(lambda model: plain(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error", LostTieWarning)
        for _ in range(2):
            with pytest.raises(LostTieWarning, match="tie lost"):
                step(tied())
    assert len(warned(lambda: step(tied()))) == 1


def test_a_part_of_the_result() -> None:
    """Somewhere in a result, of any argument, by keyword too, also of a gradient."""

    def step(scale: Any, *, model: Any) -> Any:
        return {"loss": scale, "new": [plain(model)]}

    [text] = warned(lambda: pj.jit(step)(1.0, model=tied()))
    assert "kwargs['model']['decoder']['w']" in text
    assert "result['new'][0]['encoder']" in text

    def total(model: Any) -> Any:
        return jnp.sum(model["encoder"] * model["decoder"]["w"])

    def halves(model: Any, name: Any) -> Any:
        return {**jax.grad(total)(model), "name": name}

    unnamed = {key: value for key, value in tied().items() if key != "name"}
    assert len(warned(lambda: pj.jit(jax.grad(total))(unnamed))) == 1
    assert warned(lambda: pj.jit(pj.grad(total))(unnamed)) == []
    assert warned(lambda: pj.jit(halves)(unnamed, "net")) == []  # another structure


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


def test_two_arguments_are_no_tie() -> None:
    """What is shared between arguments isn't shared in one."""
    w = jnp.ones(2)
    assert warned(lambda: pj.jit(lambda a, b: ([a, b + 1], [a + 1, b]))(w, w)) == []
    assert warned(lambda: pj.jit(lambda a, b: (a + 1, b + 2))(w, w)) == []


def test_no_identity_no_tie() -> None:
    """With `identity="nodes"` arrays are no objects."""
    assert warned(lambda: pj.jit(plain, identity="nodes")(tied())) == []


def test_untying_inside_of_another_compiled_function() -> None:
    """It is meant there, also when the inner function was compiled before."""
    inner = pj.jit(lambda model: pydag.untie(model, ("encoder",)))
    assert warned(lambda: inner(tied())) == []
    assert warned(lambda: pj.jit(lambda model: inner(model))(tied())) == []
    assert warned(lambda: [inner(tied()), inner(tied())]) == []


def test_sixty_levels() -> None:
    """It is linear in objects, not in paths."""
    tree: Any = [jnp.ones(2)]
    for _ in range(60):
        tree = [tree, tree]

    def untied_below(tree: Any) -> Any:
        new = pydag.dag_map(lambda x: x + 1, tree)
        top = new[0]
        new[0] = [top[0], top[1]]
        return new

    [text] = warned(lambda: pj.jit(untied_below)(tree))
    assert "args[0][0] and args[0][1] are one object" in text
    assert len(text) < 2000
