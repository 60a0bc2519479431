# SPDX-License-Identifier: Apache-2.0
"""The function that `jit` returns, its stages, jaxprs, and descriptions of arrays."""

from __future__ import annotations

import functools
import gc
import sys
import types
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_models import Net, tied_under
from operations import python_calls

import pydag
import pydag.jaxinterop as pj

W, X = jnp.ones(3), jnp.array([1.0, 2.0])


@pj.register
@pydag.register_fields
class Record:
    """A record with one array at two places, and a number."""

    def __init__(self, w: Any) -> None:
        self.v = self.w = w
        self.n = 2.0


def f(params: Any, net: Any, record: Any, n: Any, *, k: Any) -> Any:
    """Uses all of its arguments, and returns modules, records and arrays."""
    return {"x": params["a"] * net.w * n, "net": net, "record": record, "k": (k, k * 1)}


def arguments() -> tuple[Any, ...]:
    """Of `f`: what is shared spans them; the last one is static."""
    return {"a": W, "b": W}, Net(W), Record(jnp.zeros(3)), 5


JITTED = pj.jit(f, static_argnums=3, donate_argnums=2)
K = jnp.ones(())


def every_stage() -> tuple[Any, Any, Any]:
    """Traced, lowered and compiled."""
    lowered = JITTED.lower(*arguments(), k=K)
    return JITTED.trace(*arguments(), k=K), lowered, lowered.compile()


def test_all_else_is_that_of_jax() -> None:
    """The rest of a stage is about the distinct arrays."""
    traced, lowered, compiled = every_stage()
    assert [x.donated for x in jax.tree.leaves(lowered.args_info)] == [False, False, True, False]
    assert len(jax.tree.leaves(compiled.input_shardings)) == 4
    assert "module @jit_f" in lowered.as_text()
    assert len(traced.jaxpr.in_avals) == 4
    out = compiled(*arguments(), k=K)
    assert out["record"].v is out["record"].w


def test_jax_export_says_what_to_export() -> None:
    """`jax.export` would pass the arguments in its own order: the error says what to do."""
    exported: Any = jax.export.export
    with pytest.raises(TypeError, match=r"Export jax\.jit of a function of the leaves"):
        exported(pj.jit(lambda p: p["a"]))({"a": W})


@pytest.mark.parametrize("count", [2, 40])
def test_they_keep_no_array_of_the_call(count: int) -> None:
    """No stage keeps one: traced, lowered or compiled."""
    model = {i: jnp.full(3, float(i)) for i in range(count)}
    refs = [weakref.ref(array) for array in model.values()]
    traced = pj.jit(lambda model: model[0] + 1).trace(model)
    lowered = traced.lower()
    compiled = lowered.compile()
    del model
    gc.collect()
    assert [ref() for ref in refs] == [None] * count
    for stage in (traced, lowered, compiled):
        assert stage.out_info.shape == (3,)
    assert compiled({i: jnp.ones(3) + i * 0 for i in range(count)}).tolist() == [2.0, 2.0, 2.0]


tied = tied_under("encoder", "decoder", lambda: jnp.ones((2, 3)))


def loss(params: Any, x: Any) -> Any:
    """Uses the weight twice."""
    return jnp.sum((x @ params["encoder"]) @ params["decoder"].T)


DATA = jnp.ones((4, 2))


def test_make_jaxpr() -> None:
    """Two inputs: the weight and the data; plain JAX has three."""
    jaxpr: Any = pj.make_jaxpr(loss)(tied(), DATA)
    assert [str(aval) for aval in jaxpr.in_avals] == ["float32[2,3]", "float32[4,2]"]
    plain: Any = jax.make_jaxpr(loss)(tied(), DATA)
    assert len(plain.in_avals) == 3


class Duck:
    shape, dtype = (3,), np.dtype("float32")


ARRAY = jnp.arange(3.0)
STRUCT: Any = jax.ShapeDtypeStruct

DESCRIPTIONS = {
    "type": jax.typeof(ARRAY),
    "struct": STRUCT((3,), "float32"),
    "duck": Duck(),
    "namespace": types.SimpleNamespace(shape=(3,), dtype="float32"),
    "array": ARRAY,
}


@pytest.mark.parametrize("name", sorted(DESCRIPTIONS.keys() - {"type"}))
def test_arguments(name: str) -> None:
    """One that stands at two places is one array, inside and in the result."""
    what = DESCRIPTIONS[name]

    def f(p: Any) -> Any:
        assert p["a"] is p["b"]
        return [p["a"] * 2, p["a"], p["b"]]

    tree = {"a": what, "b": what}
    for shapes in (
        pj.eval_shape(f, tree),
        pj.jit(f).lower(tree).out_info,
        pj.jit(f).eval_shape(tree),
    ):
        assert [(s.shape, s.dtype) for s in shapes] == [((3,), "float32")] * 3
        assert shapes[1] is shapes[2]
    assert len(pj.make_jaxpr(f)(tree).jaxpr.invars) == 1


@pytest.mark.parametrize("kind", [jax.typeof, lambda x: jax.typeof(jax.new_ref(x))])
def test_types_of_jax_are_values(kind: Any) -> None:
    """JAX keeps one type for all arrays that have it: two places of it are two leaves."""
    types = {"a": kind(jnp.ones(3)), "b": kind(jnp.zeros(3))}
    for tree in (types, {"a": types["a"], "b": types["a"]}):
        assert len(pydag.dag_leaves(tree)) == 2
        assert pydag.dag_structure(tree).num_shared == 0


OFFSET = jnp.full(3, 7.0)
doubled: Any = jax.jit(lambda x: x * 2)
tripled: Any = jax.jit(lambda x: x * 3, inline=True)

PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "a constant": (lambda x: x + OFFSET, (ARRAY,), {}),
    "a function by jit": (lambda x: doubled(x) + OFFSET, (ARRAY,), {}),
    "that function": (doubled, (ARRAY,), {}),
    "one that is inlined": (lambda x: tripled(x) + OFFSET, (ARRAY,), {}),
    "that one": (tripled, (ARRAY,), {}),
    "trees": (lambda p: {"u": p["a"], "v": p["b"] + 1}, ({"a": ARRAY, "b": OFFSET},), {}),
    "numbers": (lambda x, n: x * n, (ARRAY, 3), {}),
    "a static number": (lambda x, n: x * n, (ARRAY, 3), {"static_argnums": 1}),
    "the last is static": (lambda x, n: x * n, (ARRAY, 3), {"static_argnums": (-1,)}),
    "an axis": (lambda x: jnp.sin(x) + jax.lax.axis_index("i"), (ARRAY,), {"axis_env": [("i", 4)]}),
    "shapes": (lambda x: x * 2, (STRUCT((2,), "float32"),), {}),
    "also the shape": (lambda x: {"z": x * 2}, (ARRAY,), {"return_shape": True}),
    "a derivative": (jax.grad(lambda x: (x * OFFSET).sum()), (ARRAY,), {}),
    "a loop": (lambda x: jax.lax.scan(lambda c, y: (c + y, c), x[0], x), (ARRAY,), {}),
    "no arguments": (lambda: OFFSET * 2, (), {}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_jaxpr_is_that_of_jax(name: str) -> None:
    """Jaxprs for trees that share nothing are equal to the letter."""
    function, args, options = PROGRAMS[name]
    wanted = jax.make_jaxpr(function, **options)(*args)  # type: ignore[no-untyped-call]  # JAX gives it no types
    found = pj.make_jaxpr(function, **options)(*args)
    assert str(found) == str(wanted)


AROUND: dict[str, Callable[[Any], Any]] = {
    "jit": jax.jit,
    "pj.jit": pj.jit,
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "pj.grad": lambda f: pj.grad(lambda x: f(x).sum()),
    "vmap": lambda f: lambda x: jax.vmap(f)(x[None]),
    "scan": lambda f: lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, length=1),
    "checkpoint": pj.checkpoint,
    "eval_shape": lambda f: lambda x: jax.eval_shape(f, x),
    "nothing": lambda f: f,
}


@pytest.mark.parametrize("name", AROUND)
def test_what_a_jaxpr_closes_over_is_a_constant(name: str) -> None:
    """Tracers from around it are constants, too: `jax.core.eval_jaxpr` takes arguments alone."""
    inside: Any = []

    def f(y: Any) -> Any:
        def program(p: Any) -> Any:
            return [p["a"] * y + p["b"] + OFFSET]

        tree = {"a": ARRAY, "b": ARRAY}
        found: Any = pj.make_jaxpr(program)(tree)
        wanted: Any = jax.make_jaxpr(lambda x: program({"a": x, "b": x}))(ARRAY)
        inside.append((str(found), str(wanted)))
        jaxpr = getattr(found, "jaxpr", found)
        return jax.core.eval_jaxpr(jaxpr, found.consts, ARRAY)[0]

    AROUND[name](f)(OFFSET)
    assert [found == wanted for found, wanted in inside] == [True] * len(inside)


# --- stages ---
def test_stages_are_called_with_the_users_trees() -> None:
    """trace, lower and compile; out_info has the structure and the ties of the result."""

    def f(tree: Any) -> Any:
        new = tree["a"] + 1
        return {"new": new, "same": new, "name": "text"}

    compiled = pj.jit(f)
    traced = compiled.trace({"a": X, "b": X})
    for info in (
        traced.out_info,
        traced.lower().out_info,
        traced.lower().compile().out_info,
        compiled.eval_shape({"a": X, "b": X}),
        pj.eval_shape(f, {"a": X, "b": X}),
    ):
        assert (info["new"].shape, info["name"]) == ((2,), "text")
        assert info["new"] is info["same"]
    assert len(traced.jaxpr.jaxpr.invars) == 1
    run = compiled.lower({"a": X, "b": X}).compile()
    out = run({"a": X, "b": X})
    assert out["new"] is out["same"]
    assert out["new"].tolist() == [2.0, 3.0]
    with pytest.raises(TypeError, match=r"args\[0\]\['a'\] and args\[0\]\['b'\](.|\n)*two objects"):
        run({"a": X, "b": X + 1})
    run = pj.jit(lambda x, n: x, static_argnums=1).lower(X, 3).compile()
    with pytest.raises(TypeError, match=r"args\[1\]\n  first:  3\n  second: 4"):
        run(X, 4)


def test_shapes_stand_for_arrays_in_stages() -> None:
    """What has a shape and a dtype is traced, lowered and compiled as an array."""
    shape = jax.eval_shape(lambda: X)
    compiled = pj.jit(lambda t: t["a"] * 2).lower({"a": shape}).compile()
    assert compiled({"a": X}).tolist() == [2.0, 4.0]


def test_clear_cache_compiles_anew() -> None:
    """The next call compiles again, as in JAX."""
    traces = []

    @pj.jit
    def f(tree: Any) -> Any:
        traces.append(1)
        return tree["a"]

    f({"a": X})
    f({"a": X})
    f.clear_cache()
    f({"a": X})
    assert len(traces) == 2


def double(tree: Any) -> Any:
    """The tree with all of its numbers doubled."""
    return pydag.dag_map(lambda x: x * 2, tree)


# The problem, in eight lines.


# Identity.
def test_sixty_levels_of_sharing() -> None:
    """`t = [t, t]`, sixty times, is one array on both sides of the boundary."""
    tree: Any = [jnp.float32(1.0)]
    for _ in range(60):
        tree = [tree, tree]
    out = pj.jit(double)(tree)
    assert out[0] is out[1]
    assert pydag.dag_leaves(out) == [2.0]


# When it traces.
def test_the_name_is_seen_in_what_was_compiled() -> None:
    """The compiled function has the name of the Python function."""

    def descend(x: Any) -> Any:
        return x * 2

    assert "jit_descend" in pj.jit(descend).lower(1.0).as_text()


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
    """The compiled function is bound, and referred to weakly, as any function."""
    function = compiled()
    assert isinstance(function, types.FunctionType)

    class Owner:
        method = pj.jit(lambda self, x: 2 * x, static_argnums=0)

    assert Owner().method(jnp.ones(2)).tolist() == [2, 2]
    without_signature: Any = pj.jit(dict)
    assert without_signature(a=1.0) == {"a": 1.0}
    parts: Any = function.__code__, function.__globals__, "copy", None, function.__closure__
    copy = types.FunctionType(*parts)
    assert (copy(jnp.ones(2)).tolist(), copy(1.0, b=2.0).item()) == ([2, 2], 3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'c'"):
        copy(1.0, c=2.0)
    parts[-1][0].cell_contents = None
    with pytest.raises(TypeError):
        function(1.0)
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
    """The name is another function's; what it computes, and its stages, are its own."""

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
