# SPDX-License-Identifier: Apache-2.0
"""Iterators and views: JAX sees no arrays in them, so they are refused, with what to pass."""

import collections
import functools
import itertools
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag.jaxinterop as pj

W = jnp.ones(2)

HIDING: dict[str, Callable[[Any], Any]] = {
    "values": lambda x: {"a": x}.values(),
    "items": lambda x: {"a": x}.items(),
    "ordered values": lambda x: collections.OrderedDict(a=x).values(),
    "proxy": lambda x: types.MappingProxyType({"a": x}),
    "list iterator": lambda x: iter([x]),
    "generator": lambda x: (y for y in [x]),
    "map": lambda x: map(jnp.sin, [x]),
    "zip": lambda x: zip([x], [x], strict=True),
    "enumerate": lambda x: enumerate([x]),
    "reversed": lambda x: reversed([x]),
    "chain": lambda x: itertools.chain([x]),
    "cycle": lambda x: itertools.cycle([x]),
}


def first(x: Any) -> Any:
    return 1.0


@pytest.mark.parametrize("make", HIDING.values(), ids=HIDING.keys())
def test_arguments(make: Any) -> None:
    """One that hides arrays is an error of every wrapper, with its path and the cure."""
    scan = functools.partial(pj.scan, lambda c, x: (c, x), 0.0, length=1)
    for call in (pj.jit(first), pj.grad(first), pj.vmap(first), pj.checkpoint(first), scan):
        with pytest.raises(TypeError, match=r"^(args\[0\]|xs)\['p'\] is (a view|an it)") as caught:
            call({"p": make(W)})
        assert "Pass a list, a tuple or a dict that holds the arrays" in str(caught.value)


@pytest.mark.parametrize("make", [lambda: iter([1.0]), lambda: {"a": 1.0}.values()])
def test_what_is_mapped_over(make: Any) -> None:
    """To differentiate by one, to map over it or to scan it is an error, whatever is in it."""
    for call in (
        lambda: pj.grad(lambda x, y: jnp.sum(x), argnums=(0, 1))(W, make()),
        lambda: pj.vjp(lambda x, y: x, W, make()),
        lambda: pj.vmap(lambda x, y: x)(W, make()),
        lambda: pj.vmap(lambda x, y: x, in_axes=(0, 0))(W, make()),
        lambda: pj.scan(lambda c, x: (c, x), 0.0, make(), length=1),
    ):
        with pytest.raises(TypeError, match=r"can't be (differentiated by|mapped over|scanned)"):
            call()
    assert pj.vmap(lambda x, y: x, in_axes=(0, None))(W, make()).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("make", HIDING.values(), ids=HIDING.keys())
def test_results(make: Any) -> None:
    """A result with one is an error with its path."""
    for call in (pj.jit, pj.vmap):
        with pytest.raises(TypeError, match=r"^result\['r'\] is (a view|an iterator)"):
            call(lambda x: {"r": make(x)})(W)


def test_an_iterator_in_a_result() -> None:
    """It is an error also where it holds no array: who called could take its items but once."""
    with pytest.raises(TypeError, match=r"result\[1\] is an object of builtins.*, an iterator"):
        pj.jit(lambda x: (x, iter([1, 2])))(W)


def closing_over(x: Any) -> Any:
    return lambda: x * 2


class Holder:
    def __init__(self, x: Any) -> None:
        self.x = x


LEADING: dict[str, Callable[[Any], Any]] = {
    "closure": closing_over,
    "closure of a closure": lambda x: closing_over(closing_over(x)),
    "default": lambda x: lambda y=x: y,
    "keyword default": lambda x: lambda *, y=x: y,
    "closure over a holder": lambda x: closing_over(Holder([x])),
    "partial of a closure": lambda x: functools.partial(closing_over(x)),
    "bound method": lambda x: x.sum,
    "object": Holder,
    "class": lambda x: type("C", (), {"x": x}),
    "exception": ValueError,
    "slice": lambda x: slice(x, None),
}


@pytest.mark.parametrize("make", LEADING.values(), ids=LEADING.keys())
def test_results_that_lead_to_a_tracer(make: Any) -> None:
    """It would be dead for the caller, so it is an error with the way to it."""
    with pytest.raises(TypeError, match=r"result\['r'\]\S* is f32\[2\]"):
        pj.jit(lambda x: {"r": make(x)})(W)


def test_functions_in_results() -> None:
    """One that closes over concrete arrays is a constant, as before."""
    assert pj.jit(lambda x: closing_over(W))(W)().tolist() == [2.0, 2.0]


def test_arrays_of_objects() -> None:
    """They are refused where they hold arrays."""
    with pytest.raises(TypeError, match=r"args\[0\] is an array of objects, and holds an array"):
        pj.jit(first)(np.array([W, None], dtype=object))


def test_empty_cells() -> None:
    """A function whose variable isn't set yet is looked through like others."""

    def maker(x: Any) -> Any:
        def function() -> Any:
            return later

        if x is None:
            later = 1
        return function

    assert callable(pj.jit(maker)(W))
    assert isinstance(jax.jit(lambda x: x)(W), jax.Array)
