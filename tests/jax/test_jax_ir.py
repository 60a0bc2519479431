"""What JAX makes of a DAG can be looked at: a shared weight is one input, and one output."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
from small_models import tied_under

import pydag
from pydag import jaxinterop

tied = tied_under("encoder", "decoder", lambda: jnp.ones((2, 3)))


def loss(params: Any, x: Any) -> Any:
    """Uses the weight twice."""
    return jnp.sum((x @ params["encoder"]) @ params["decoder"].T)


X = jnp.ones((4, 2))


def inputs_of(text: str) -> list[str]:
    """The arguments of the main function in StableHLO."""
    found = re.search(r"func.func public @main\((.*?)\) ->", text)
    assert found is not None
    return re.findall(r"tensor<[^>]*>", found[1])


def outputs_of(text: str) -> list[str]:
    """The results of the main function in StableHLO, where there are several."""
    found = re.search(r"func.func public @main\(.*?\) -> \((.*?)\) {\n", text)
    assert found is not None
    return re.findall(r"tensor<[^>]*>", found[1])


def test_make_jaxpr() -> None:
    """Two inputs: the weight and the data; plain JAX has three."""
    jaxpr: Any = jaxinterop.make_jaxpr(loss)(tied(), X)
    assert [str(aval) for aval in jaxpr.in_avals] == ["float32[2,3]", "float32[4,2]"]
    plain: Any = jax.make_jaxpr(loss)(tied(), X)
    assert len(plain.in_avals) == 3


def test_the_text_of_a_jaxpr() -> None:
    """It is that of the function of one weight."""
    ours = jaxinterop.make_jaxpr(lambda p: p["encoder"] * p["decoder"])(tied())
    assert str(ours) == str(jax.make_jaxpr(lambda w: w * w)(tied()["encoder"]))


def test_lowered_text() -> None:
    """What the compiler gets has one input for the weight."""
    text = jaxinterop.jit(loss).lower(tied(), X).as_text()
    assert inputs_of(text) == ["tensor<2x3xf32>", "tensor<4x2xf32>"]
    assert len(inputs_of(jax.jit(loss).lower(tied(), X).as_text())) == 3


def test_compiled_text() -> None:
    """So has what comes out of the compiler."""
    text = jaxinterop.jit(loss).lower(tied(), X).compile().as_text()
    entry = text[text.index("ENTRY") :]
    assert len(re.findall(r" parameter\(\d\)", entry)) == 2


def test_the_gradient() -> None:
    """One input, one output, and the addition of the two uses in between."""
    gradient = jaxinterop.grad(loss)
    jaxpr: Any = jaxinterop.make_jaxpr(gradient)(tied(), X)
    assert [str(aval) for aval in jaxpr.in_avals] == ["float32[2,3]", "float32[4,2]"]
    assert [str(aval) for aval in jaxpr.out_avals] == ["float32[2,3]"]
    assert "add_any" in str(jaxpr)
    text = jaxinterop.jit(gradient).lower(tied(), X).as_text()
    assert inputs_of(text) == ["tensor<2x3xf32>", "tensor<4x2xf32>"]
    assert text.count("stablehlo.add ") == 1


def test_a_training_step() -> None:
    """Under `jit`, with donation: as many buffers in and out as there are arrays."""

    def step(params: Any, x: Any) -> Any:
        value, gradient = jaxinterop.value_and_grad(loss)(params, x)
        return pydag.dag_map(lambda p, g: p - g, params, gradient), value

    lowered = jaxinterop.jit(step, donate_argnums=0).lower(tied(), X)
    assert inputs_of(lowered.as_text()) == ["tensor<2x3xf32>", "tensor<4x2xf32>"]
    assert lowered.as_text().count("tf.aliasing_output") == 1
    assert len(outputs_of(lowered.as_text())) == 2


def test_a_loop() -> None:
    """The loop carries the weight once, and vmap, cond and checkpoint take it once."""
    w = jnp.float32(1.0)
    params = {"a": w, "b": w}

    def double(tree: Any) -> Any:
        return pydag.dag_map(lambda x: x * 2, tree)

    for function in (
        lambda p: jaxinterop.fori_loop(0, 3, lambda _, c: double(c), p),
        lambda p: jaxinterop.scan(lambda c, _: (double(c), None), p, length=3)[0],
        lambda p: jaxinterop.while_loop(lambda c: c["a"] < 3, double, p),
        lambda p: jaxinterop.cond(True, double, lambda t: t, p),
        jaxinterop.checkpoint(double),
    ):
        jaxpr: Any = jaxinterop.make_jaxpr(function)(params)
        assert len(jaxpr.in_avals) == len(jaxpr.out_avals) == 1


def test_options_of_make_jaxpr() -> None:
    """Static arguments, the environment of axes, and the shape of the result."""

    def f(n: int, p: Any) -> Any:
        assert type(n) is int
        return {"out": p["encoder"] * n, "same": p["decoder"], "name": "net"}

    jaxpr, shape = jaxinterop.make_jaxpr(f, static_argnums=0, return_shape=True)(3, tied())
    assert len(jaxpr.in_avals) == 1
    assert (shape["out"].shape, shape["name"]) == ((2, 3), "net")
    lax: Any = jax.lax
    text = jaxinterop.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 2)])(1.0)
    assert "psum" in str(text)


def test_eval_shape() -> None:
    """Shapes in, shapes out, shared inside as outside; what is no array comes back."""

    def f(params: Any, *, x: Any) -> Any:
        assert params["encoder"] is params["decoder"]
        out = x @ params["encoder"]
        return {"a": out, "b": [out], "name": "net", "none": None}

    w = jax.eval_shape(lambda: tied()["encoder"])
    out = jaxinterop.eval_shape(f, {"encoder": w, "decoder": w}, x=X)
    assert out["a"] is out["b"][0]
    assert (out["a"].shape, out["name"], out["none"]) == ((4, 3), "net", None)
    assert type(out["a"]) is jax.ShapeDtypeStruct


def test_eval_shape_traces_once() -> None:
    """For one function and structure."""
    traces: list[str] = []

    def f(params: Any) -> Any:
        traces.append("trace")
        return params

    for _ in range(2):
        jaxinterop.eval_shape(f, tied())
    assert traces == ["trace"]
