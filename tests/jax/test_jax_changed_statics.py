# SPDX-License-Identifier: Apache-2.0
"""Static arguments that are changed after they were used, and leaves that become static."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import pytest

from pydag import jaxinterop


@dataclasses.dataclass(frozen=True)
class Frozen:
    """Compared and hashed by its fields."""

    n: Any


class Pair(NamedTuple):
    first: Any
    second: Any


def innermost(config: Any) -> Any:
    """The number in a nest of configurations."""
    while isinstance(config, Frozen | tuple):
        config = config.n if isinstance(config, Frozen) else config[0]
    return config


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(
    "wrap",
    [lambda c: c, lambda c: (c, 1), lambda c: Pair(c, 1), Frozen, lambda c: Frozen((Frozen(c),))],
)
def test_a_frozen_dataclass_that_was_changed(wrap: Any, by_name: bool) -> None:
    """It is another static argument then, also within tuples and other dataclasses."""
    options: Any = {"static_argnames": "c"} if by_name else {"static_argnums": 1}
    traces = []

    def f(x: Any, c: Any) -> Any:
        traces.append(innermost(c))
        return x * innermost(c)

    ours, config = jaxinterop.jit(f, **options), Frozen(2)
    given = wrap(config)

    def call() -> float:
        return float(ours(jnp.float32(3), c=given) if by_name else ours(jnp.float32(3), given))

    for _ in range(3):
        assert call() == 6
    for n, expected in [(5, 15), (2, 6), (5, 15)]:
        object.__setattr__(config, "n", n)
        for _ in range(3):
            assert call() == expected
    assert traces[:2] == [2, 5]


def test_leaves_that_are_static_in_turn() -> None:
    """A leaf that is text is not taken for the array that it was, whatever was called before."""
    f = jaxinterop.jit(lambda x, k: x, static_argnums=1)
    one = jnp.ones(1)
    for _ in range(2):
        for given, number in [(one, 1), ("text", 2), ("text", 1), (one, 2), (one, 1), ("text", 1)]:
            result = f(given, number)
            assert result == "text" if given == "text" else result.tolist() == [1]
    g = jaxinterop.jit(lambda tree: tree)
    assert g({"x": one, "mode": "train"})["mode"] == "train"
    assert g({"x": "none", "mode": "eval"}) == {"x": "none", "mode": "eval"}
    for _ in range(2):
        assert g({"x": "none", "mode": "train"}) == {"x": "none", "mode": "train"}
    assert g({"x": one, "mode": "eval"})["x"].tolist() == [1]


def test_a_type_error_of_the_function_is_raised_once() -> None:
    """What the function itself raises is no sign of a leaf that was taken for another."""
    calls = []

    def f(tree: Any) -> Any:
        calls.append(1)
        raise TypeError("mine")

    ours = jaxinterop.jit(f)
    for _ in range(2):
        with pytest.raises(TypeError, match="mine"):
            ours({"x": jnp.ones(1)})
    assert len(calls) == 2
