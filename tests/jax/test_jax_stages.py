"""The stages of a compiled function speak of the function as its user has it."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import stages

import pydag
from pydag import jaxinterop as pj

W = jnp.ones(3)


class Net(pj.Module):
    """A module with one array at two places, a number and a function."""

    a: Any
    b: Any

    def __init__(self, w: Any) -> None:
        self.a = self.b = w
        self.depth, self.activation = 3, jnp.tanh


@pj.register
@pydag.register_fields
class Record:
    """A record with one array at two places, and a number."""

    def __init__(self, w: Any) -> None:
        self.v = self.w = w
        self.n = 2.0


def f(params: Any, net: Any, record: Any, n: Any, *, k: Any) -> Any:
    """Uses all of its arguments, and returns modules, records and arrays."""
    return {"x": params["a"] * net.a * n, "net": net, "record": record, "k": (k, k * 1)}


def arguments() -> tuple[Any, ...]:
    """Of `f`: what is shared spans them; the last one is static."""
    return {"a": W, "b": W}, Net(W), Record(jnp.zeros(3)), 5


JITTED = pj.jit(f, static_argnums=3, donate_argnums=2)
K = jnp.ones(())


def every_stage() -> tuple[Any, Any, Any]:
    """Traced, lowered and compiled."""
    lowered = JITTED.lower(*arguments(), k=K)
    return JITTED.trace(*arguments(), k=K), lowered, lowered.compile()


def test_results_in_their_own_form() -> None:
    """Shapes stand at all places of an array, beside what JAX doesn't trace."""
    for stage in every_stage():
        info = stage.out_info
        assert (info["x"].shape, str(info["x"].dtype)) == ((3,), "float32")
        assert info["net"].a is info["net"].b
        assert (info["net"].depth, info["net"].activation) == (3, jnp.tanh)
        assert info["record"].v is info["record"].w


def test_all_else_is_that_of_jax() -> None:
    """It is about the distinct arrays."""
    traced, lowered, compiled = every_stage()
    assert [x.donated for x in jax.tree.leaves(lowered.args_info)] == [False, False, True, False]
    assert len(jax.tree.leaves(compiled.input_shardings)) == 4
    assert "module @jit_f" in lowered.as_text()
    assert len(traced.jaxpr.in_avals) == 4
    out = compiled(*arguments(), k=K)
    assert out["record"].v is out["record"].w


def test_what_was_traced_is_evaluated() -> None:
    """A traced function can be called."""
    data = jnp.arange(3.0)
    traced: Any = pj.jit(lambda p: {"x": p["a"] * data, "y": p["b"]}).trace({"a": W, "b": W})
    if not hasattr(stages.Traced, "closure_convert"):
        pytest.skip("this JAX can't")
    assert traced({"a": W, "b": W})["x"].tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(TypeError, match="was traced for arguments of another structure"):
        traced({"a": W, "b": W + 0})


def test_jax_export_says_what_to_export() -> None:
    """`jax.export` would pass the arguments in its own order: the error says what to do."""
    exported: Any = jax.export.export
    with pytest.raises(TypeError, match=r"Export jax\.jit of a function of the leaves"):
        exported(pj.jit(lambda p: p["a"]))({"a": W})


def test_analyses() -> None:
    """What the compiled program needs is JAX's answer: the array is there once."""
    compiled = pj.jit(lambda p: p["a"] + p["b"]).lower({"a": W, "b": W}).compile()
    assert compiled.memory_analysis().argument_size_in_bytes == math.prod(W.shape) * 4
    assert "ENTRY" in compiled.as_text()


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


def test_a_ref_that_was_traced_is_kept_as_a_shape() -> None:
    """The result that holds it is described; the ref and its content are gone."""
    content = jnp.zeros(5)
    model = {"ref": jax.new_ref(content), "x": W}
    ref = weakref.ref(model["ref"])
    traced = pj.jit(lambda m: {"same": m["ref"], "y": m["x"] + 1}).trace(model)
    del model
    gc.collect()
    assert ref() is None
    assert traced.out_info["same"].shape == (5,)
    assert traced.out_info["y"].shape == (3,)
