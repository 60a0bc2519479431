# SPDX-License-Identifier: Apache-2.0
"""`jaxinterop.jit`, and the function that it returns, whose calls go straight to the core."""

from __future__ import annotations

import functools
import gc
import sys
import types
import weakref
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from operations import python_calls

import pydag
import pydag.jaxinterop as pj
from pydag import jaxinterop


def doubled(tree: Any) -> Any:
    """The tree with all of its numbers doubled."""
    return pydag.dag_map(lambda x: x * 2, tree)


# The problem, in eight lines.


# Identity.


def test_sixty_levels_of_sharing() -> None:
    """`t = [t, t]`, sixty times, is one array on both sides of the boundary."""
    tree: Any = [jnp.float32(1.0)]
    for _ in range(60):
        tree = [tree, tree]
    out = jaxinterop.jit(doubled)(tree)
    assert out[0] is out[1]
    assert pydag.dag_leaves(out) == [2.0]


# When it traces.


def test_the_name_is_seen_in_what_was_compiled() -> None:
    """The compiled function has the name of the Python function."""

    def descend(x: Any) -> Any:
        return x * 2

    assert "jit_descend" in jaxinterop.jit(descend).lower(1.0).as_text()


def model() -> dict[str, Any]:
    w = jnp.ones(2)
    return {"a": w, "b": [w, jnp.zeros(2)], "c": {"w": w}}


def test_one_python_call() -> None:
    """A compiled function of arrays is called, and its result built, without a Python function.

    Before Python 3.12, within one.
    """
    step = pj.jit(lambda m: pydag.dag_map(lambda x: 2 * x, m))
    tree = model()
    for _ in range(3):
        step(tree)
    names = python_calls(lambda: step(tree))
    assert len(names) == (1 if sys.version_info >= (3, 12) else 2), names


straight = pytest.mark.skipif(sys.version_info < (3, 12), reason="calls run the function's code")


def compiled() -> Any:
    """A new one, called once."""
    function: Any = pj.jit(lambda a, b=1.0: a + b)
    function(jnp.ones(2))
    return function


def test_it_is_a_function() -> None:
    """It is bound, and referred to weakly, as any function."""
    function = compiled()
    assert isinstance(function, types.FunctionType)

    class Owner:
        method = pj.jit(lambda self, x: 2 * x, static_argnums=0)

    assert Owner().method(jnp.ones(2)).tolist() == [2, 2]
    ref = weakref.ref(function)
    del function
    gc.collect()
    assert ref() is None


def plain(x: Any) -> Any:
    """No compiled function."""
    return x - 1


OTHERS: dict[str, Any] = {
    "compiled": pj.jit(plain),
    "compiled by JAX": jax.jit(plain),
    "plain": plain,
    "a wrapper": pj.vmap(plain),
    "with options": pj.jit(plain, static_argnames="x"),
    "a method": pj.jit(type("Owner", (), {"method": plain})().method),
    "a class": Counter,
}


@pytest.mark.parametrize("name", OTHERS)
def test_functools_wraps_around_a_compiled_function(name: str) -> None:
    """Its name is another function's; what it computes, and its stages, are its own."""

    def make() -> Any:
        def double(x: Any) -> Any:
            return 2 * x

        return functools.wraps(OTHERS[name])(pj.jit(double))

    function = make()
    gc.collect()
    assert function.__name__ == OTHERS[name].__name__
    for x in (1.0, 3.0, jnp.float32(4.0)):
        assert float(function(x)) == 2 * x
        assert float(function.lower(x).compile()(x)) == 2 * x
    assert function.eval_shape(1.0).shape == ()
    assert function._cache_size() == 2
    function.clear_cache()
    assert function._cache_size() == 0
    assert float(function(1.0)) == 2.0


def test_functools_wraps_of_a_compiled_function() -> None:
    """A function that is named after it has no stages of it, and calls what it likes."""
    compiled = pj.jit(plain)

    @functools.wraps(compiled)
    def function(x: Any) -> Any:
        return compiled(x) * 10

    assert float(function(3.0)) == 20.0
    assert not hasattr(function, "lower")
    assert not hasattr(pj.vmap(compiled), "lower")
    assert float(pj.jit(function).lower(3.0).compile()(3.0)) == 20.0


def test_bare_arguments_between_others() -> None:
    """Calls with arrays alone tell their arguments apart from those of any other call."""
    traced: list[Any] = []

    class Pair:
        def __init__(self, x: Any) -> None:
            self.x = x

    def last_two(*args: Any, **named: Any) -> list[Any]:
        traced.append(args)
        return [*args, *named.values()][-2:]

    def values(tree: Any) -> list[Any]:
        return [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(tree)]

    function: Any = pj.jit(last_two)
    ones, twos, numbers = jnp.ones(2), 2 * jnp.ones(2), np.ones(2)
    calls: list[tuple[Any, ...]] = [
        *((ones, twos), (ones, ones), ([ones], twos), ([ones], [ones]), (ones, None), (ones,), ()),
        *((1.5, 2.5), (1.5, 1.5), (numbers, twos), (ones, twos, ones), (ones, "text")),
        tuple(jnp.full(2, i) for i in range(20)),
    ]
    by_name: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        *(((ones,), {"a": x}) for x in (twos, ones, [twos])),
        *(((ones,), {"b": twos}), ((), {"a": ones, "b": twos}), ((), {"b": ones, "a": twos})),
        ((ones,), {"b": twos, "".join(["", "a"]): numbers}),
    ]
    calls_of_both = [*((args, {}) for args in calls), *by_name]
    for args, named in calls_of_both:
        function(*args, **named)
    num_traced = len(traced)
    for args, named in [*calls_of_both, *reversed(calls_of_both), *calls_of_both]:
        result = function(*args, **named)
        given = [*args, *named.values()][-2:]
        assert values(result) == values(given)
        if len(given) > 1 and isinstance(given[0], jax.Array):
            assert (result[0] is result[-1]) == (given[0] is given[1])
    assert len(traced) == num_traced, "compiled again"

    pair = Pair(ones)
    with pytest.raises(TypeError, match="Pair"):
        function(pair, twos)
    pydag.register_fields(Pair, ("x",))
    assert function(pair, twos)[0].x.tolist() == [1, 1]
