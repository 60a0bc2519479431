# SPDX-License-Identifier: Apache-2.0
"""The warning about a number of a module that a function is compiled for again and again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import jax.numpy as jnp
import pytest

from pydag import jaxinterop as pj

W = jnp.ones(3)


class Net(pj.Module):
    def __init__(self, **parts: Any) -> None:
        self.w = W
        vars(self).update(parts)


def said(calls: Iterable[tuple[Any, ...]], **options: Any) -> list[str]:
    """What is said when a function is called with these arguments, one after the other."""

    def step(*args: Any) -> Any:
        return jnp.float32(0)

    compiled = pj.jit(step, **options)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for args in calls:
            compiled(*args)
    assert all(warning.filename == __file__ for warning in caught)
    assert all(warning.category is UserWarning for warning in caught)
    return [str(warning.message) for warning in caught]


CHANGING: dict[str, tuple[Callable[[int], Any], str]] = {
    # what changes: (the argument of call i, what is said at the fourth compilation)
    "a number": (lambda i: Net(rate=0.5 * i), "args[0].rate, a number of a module: 0.0, 0.5, 1.0"),
    "a count": (lambda i: [Net(), Net(n=i)], "args[0][1].n, a number of a module: 0, 1, 2, 3"),
    "in a list": (lambda i: Net(rates=[0.5, i]), "args[0].rates[1], a number of a module: 0, 1, 2"),
    "beside a text that changes": (
        lambda i: Net(n=i, name=f"step{i}", is_training=i % 2 == 0),
        "args[0].n, a number of a module: 0, 1, 2, 3",
    ),
}


@pytest.mark.parametrize("name", CHANGING)
def test_a_number_that_was_another_one_each_time(name: str) -> None:
    """The fourth trace warns, once, with the path, the values and the cure; not a sooner one."""
    make, expected = CHANGING[name]
    assert said((make(i), W) for i in range(3)) == []
    [text] = said((make(i), W) for i in range(9))
    assert text.startswith("step at ")
    assert expected in text
    assert "Make it an array" in text


NOT_TOLD: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "shapes": lambda i: (jnp.ones(i + 1), Net(n=1)),
    "a flag and a mode": lambda i: (
        Net(is_training=i % 2 == 0, mode=("train", "eval")[i // 2 % 2]),
    ),
    "three numbers": lambda i: (Net(n=i % 3),),
    "a text": lambda i: (Net(tag=f"step{i}"),),
    "a function": lambda i: (Net(act=lambda x: x),),
    "a length": lambda i: (Net(losses=[W] * i),),
    "keys": lambda i: ({f"step{i}": W},),
    "a number that is data": lambda i: ({"rate": 0.5 * i}, float(i)),
    "static arguments": lambda i: (W, i),
    "models of other classes": lambda i: ([Net(n=i), {"n": i}, [Net(n=i)]][i % 3],),
}


@pytest.mark.parametrize("name", NOT_TOLD)
def test_what_is_not_told(name: str) -> None:
    """Whatever else a function is compiled for: JAX's own log explains it."""
    static = {"static_argnums": 1} if name.startswith("static") else {}
    assert said(map(NOT_TOLD[name], range(12)), **static) == []


def test_a_large_model() -> None:
    """A structure that is exponentially long when unfolded is looked at once for each object."""
    node: Any = [W]
    for _ in range(60):
        node = [node, node]
    [text] = said((node, Net(n=i)) for i in range(4))
    assert "args[1].n, a number" in text
