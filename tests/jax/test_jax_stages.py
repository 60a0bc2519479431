# SPDX-License-Identifier: Apache-2.0
"""The stages of a compiled function, jaxprs, and what stands for an array where it is described."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_models import Net, tied_under

import pydag
from pydag import jaxinterop
from pydag import jaxinterop as pj

W = jnp.ones(3)


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
    """It is about the distinct arrays."""
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
    """Neither what was traced, nor lowered, nor compiled."""
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
    jaxpr: Any = jaxinterop.make_jaxpr(loss)(tied(), DATA)
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
    """Of trees that share nothing, to the letter."""
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
    """Also tracers of what runs around it: `jax.core.eval_jaxpr` takes the arguments alone."""
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
