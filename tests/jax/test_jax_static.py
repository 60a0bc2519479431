# SPDX-License-Identifier: Apache-2.0
"""Static leaves and static arguments: part of what a function is compiled for."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import pydag
from pydag import jaxinterop


class Config:
    """Compared and hashed by its content."""

    def __init__(self, name: Any) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def test_a_value_that_changes_is_compared_again() -> None:
    """A leaf or argument that is the same object, with another hash, is another value."""
    config, names = Config("a"), []
    leaf = jaxinterop.jit(lambda tree: names.append(tree["config"].name))
    argument = jaxinterop.jit(lambda config: names.append(config.name), static_argnums=0)
    for name in ("a", "a", "b", "b"):
        config.name = name
        leaf({"config": config})
        argument(config)
    assert names == ["a", "a", "b", "b"]


def test_arrays_of_text_in_the_place_of_numbers() -> None:
    """Their class doesn't tell them apart: the core gives JAX text; the error names the path."""
    f = jaxinterop.jit(lambda tree: tree["w"])
    for _ in range(2):
        for x in (np.array([1.0]), np.array([2.0])):
            assert f({"x": x, "w": 1.0}) == 1.0
        with pytest.raises(TypeError, match=r"args\[0\]\['x'\]"):
            f({"x": np.array(["a"]), "w": 1.0})


def test_static_arguments_by_number_and_by_name() -> None:
    """The other is inferred from the signature; a negative number counts from the end."""

    def power(x: Any, n: int) -> Any:
        assert type(n) is int
        return x**n

    for options in ({"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": (1,)}):
        f = jaxinterop.jit(power, **options)
        assert f(3.0, 2) == f(3.0, n=2) == f(x=3.0, n=2) == 9.0
    assert jaxinterop.jit(power, static_argnums=-1)(3.0, 2) == 9.0


def test_a_cycle_in_the_result() -> None:
    """A result that contains itself is an error as well."""

    @jaxinterop.jit
    def f(x: Any) -> Any:
        out: list[Any] = [x]
        out.append(out)
        return out

    with pytest.raises(pydag.CycleError, match=r"itself: result\[1\] is the list at result\n"):
        f(1.0)


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


FLOATS = np.array([1.0, 2.0], np.float32)
TEXTS = np.array(["a", "b"])


def subclass() -> Any:
    """A class that pydag has never seen."""
    return type("Sub", (np.ndarray,), {})


def record(values: Any) -> Any:
    return values.view(np.recarray)


@pytest.mark.parametrize("text_first", [True, False])
def test_each_array_is_asked_whatever_came_first(text_first: bool) -> None:
    """An array of floats is differentiated by, and one of text is not, whichever came first."""
    cls = subclass()
    floats, texts = FLOATS.view(cls), TEXTS.view(cls)

    def of_text() -> None:
        with pytest.raises(TypeError, match="is an array of"):
            jaxinterop.jit(lambda tree: tree["x"])({"x": texts})

    def of_floats() -> None:
        gradient = jaxinterop.grad(lambda tree: (tree["x"] ** 2).sum())({"x": floats})
        np.testing.assert_array_equal(gradient["x"], [2.0, 4.0])
        np.testing.assert_array_equal(jaxinterop.jit(lambda t: 2 * t["x"])({"x": floats}), [2, 4])

    steps = [of_text, of_floats, of_text, of_floats]
    for step in steps if text_first else steps[1:]:
        step()


def test_a_record_array_is_asked_by_its_dtype() -> None:
    """A record array with one plain dtype is an array, one with fields is not."""
    fields = np.array([(1, 2.0)], [("a", "i4"), ("b", "f4")])
    with pytest.raises(TypeError, match="is an array of"):
        jaxinterop.tree.leaves({"x": record(fields)})
    (leaf,) = jaxinterop.tree.leaves({"x": record(FLOATS)})
    np.testing.assert_array_equal(leaf, FLOATS)
