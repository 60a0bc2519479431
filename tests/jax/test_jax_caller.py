# SPDX-License-Identifier: Apache-2.0
"""The function that `jit` returns, whose calls go straight to the core."""

from __future__ import annotations

import gc
import sys
import threading
import types
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parallel import outcomes

import pydag
import pydag._core as _core
import pydag.jaxinterop as pj

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


@straight
def test_a_closure_that_was_changed() -> None:
    """Another object in the closure is an error, at each call; the function's own works again."""
    function = compiled()
    [cell] = function.__closure__
    caller = cell.cell_contents
    for wrong in (5, None, cell):
        cell.cell_contents = wrong
        with pytest.raises(TypeError, match="closure of a function made by jit was changed"):
            function(jnp.ones(2))
    del cell.cell_contents
    with pytest.raises(TypeError, match="closure"):
        function(jnp.ones(2))
    cell.cell_contents = caller
    assert function(jnp.ones(2)).tolist() == [2, 2]


@straight
def test_a_function_without_a_closure() -> None:
    """Calls that lead nowhere are errors."""

    def function() -> None:
        raise AssertionError

    _core.lead_calls_to_caller(function)
    with pytest.raises(TypeError, match="closure"):
        function()


def test_what_a_caller_needs() -> None:
    """Objects of other types are refused when it is made."""
    [cell] = compiled().__closure__
    assert isinstance(cell.cell_contents, _core.JitCaller)
    arguments: dict[str, Any] = {
        "plans": _core.call_plans("", "all", None),
        "unties": _core.flag(),
        "note_untie": bool,
        "places": {},
        "static_numbers": [],
        "static_names": frozenset(),
        "run": bool,
        "recover": bool,
    }
    _core.jit_caller(**arguments)
    for name in ("plans", "unties", "places", "static_names"):
        with pytest.raises(TypeError, match="a JitCaller needs"):
            _core.jit_caller(**{**arguments, name: 5})
    with pytest.raises(TypeError, match="a JitCaller needs a function"):
        _core.lead_calls_to_caller(arguments["run"])


def test_keywords_of_a_class_of_their_own() -> None:
    """Keywords whose names are a subclass of `str` are the keywords of these names."""

    class Name(str):
        __slots__ = ()

    function = compiled()
    for _ in range(3):
        assert function(jnp.ones(2), **{Name("b"): 2.0}).tolist() == [3, 3]
        assert function(b=2.0, a=jnp.ones(2)).tolist() == [3, 3]


def test_threads_that_trace_at_once() -> None:
    """Each gets the names of its own arguments in JAX's error."""
    together, names = threading.Barrier(2), ("left", "right")

    def trace(i: int) -> None:
        def step(model: Any) -> Any:
            together.wait(300)
            return bool(model[names[i]])

        pj.jit(step)({names[i]: jnp.ones(())})

    for i, error in enumerate(outcomes(trace, 2)):
        assert f"['{names[i]}']" in str(error)
        assert names[1 - i] not in str(error)


def test_what_is_left_of_failed_calls() -> None:
    """A call that fails fails alike each time, and the next good one is right."""
    function = compiled()
    for _ in range(3):
        with pytest.raises(TypeError):
            function(jnp.ones(2), c=1)
        with pytest.raises(TypeError):
            function()
        assert function(jnp.ones(2)).tolist() == [2, 2]


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
        (ones, twos),
        (ones, ones),
        (twos, ones),
        ([ones], twos),
        ([ones], [ones]),
        (ones, None),
        (ones,),
        (),
        (1.5, 2.5),
        (1.5, 1.5),
        (numbers, twos),
        (ones, twos, ones),
        (ones, "text"),
        tuple(jnp.full(2, i) for i in range(20)),
    ]
    by_name: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((ones,), {"a": twos}),
        ((ones,), {"a": ones}),
        ((ones,), {"b": twos}),
        ((ones,), {"a": [twos]}),
        ((), {"a": ones, "b": twos}),
        ((), {"b": ones, "a": twos}),
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
