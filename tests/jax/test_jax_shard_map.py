# SPDX-License-Identifier: Apache-2.0
"""Shardings of `jit`, and `shard_map`, on one device; test_jax_devices.py has eight."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from small_models import tied_under
from wrappers import MESH

import pydag
from pydag import jaxinterop

P: Any = jax.sharding.PartitionSpec


tied = tied_under("a", "b", lambda: jnp.arange(4.0), name="net", function=jnp.sin)


def double(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    assert tree["a"] is tree["b"]
    return {**tree, "a": (twice := 2 * tree["a"]), "b": twice}


def test_forms_of_the_decorator() -> None:
    """With a function, and with keywords alone; the name stays."""
    options = {"mesh": MESH, "in_specs": P("x"), "out_specs": P("x")}
    for mapped in (
        jaxinterop.shard_map(double, **options),
        jaxinterop.shard_map(**options)(double),
    ):
        out = mapped(tied())
        assert out["a"] is out["b"]
        assert (out["a"].tolist(), out["name"]) == ([0.0, 2.0, 4.0, 6.0], "net")
        assert out["function"] is jnp.sin
        assert mapped.__name__ == "double"


def test_specs_from_the_arguments() -> None:
    """Without `in_specs`, JAX takes the shardings that the arrays have."""
    explicit = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    w = jax.device_put(jnp.arange(4.0), NamedSharding(explicit, P("x")))
    mapped = jaxinterop.shard_map(lambda t: (2 * t[0], t[1]), mesh=explicit, out_specs=P("x"))
    assert mapped([w, w])[0].tolist() == [0.0, 2.0, 4.0, 6.0]


def test_prefixes() -> None:
    """Of the tuple of arguments and of the result; a list of specs is one, too."""
    mapped = jaxinterop.shard_map(
        lambda t, x: (double(t), {"x": x}),
        mesh=MESH,
        in_specs=[{"a": P("x"), "b": P("x"), "name": None, "function": P()}, P()],
        out_specs=(P("x"), {"x": P()}),
    )
    out, more = mapped(tied(), jnp.ones(3))
    assert out["a"] is out["b"]
    assert more["x"].tolist() == [1.0, 1.0, 1.0]


def test_specs_that_do_not_fit() -> None:
    """`ValueError` that says where."""
    with pytest.raises(ValueError, match=r"in_specs must be a tree prefix [\s\S]* at args\b"):
        jaxinterop.shard_map(double, mesh=MESH, in_specs=(P(), P()), out_specs=P())(tied())
    with pytest.raises(ValueError, match=r"out_specs must be a tree prefix [\s\S]* at result\b"):
        jaxinterop.shard_map(double, mesh=MESH, in_specs=P(), out_specs=(P(), P()))(tied())


AUTO = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
SPLIT = NamedSharding(AUTO, PartitionSpec("x"))  # type: ignore[no-untyped-call]  # JAX gives it no types
WHOLE = NamedSharding(AUTO, PartitionSpec())  # type: ignore[no-untyped-call]  # JAX gives it no types


def weights() -> dict[str, Any]:
    """One weight, used twice, and a bias."""
    w = jnp.ones((2, 2))
    return {"a": w, "b": w, "bias": jnp.zeros(2)}


def step(params: Any, x: Any, n: int = 1) -> Any:
    """Keeps the structure, and returns something else beside it."""
    return pydag.dag_map(lambda p: p - n * x, params), x


def test_prefixes_of_shardings() -> None:
    """In and out, as deep as one likes; a shared array is one input and one output."""
    shardings: dict[str, Any] = {
        "in_shardings": ({"a": SPLIT, "b": SPLIT, "bias": WHOLE}, None),
        "out_shardings": ({"a": SPLIT, "b": SPLIT, "bias": WHOLE}, None),
    }
    jitted = jaxinterop.jit(step, **shardings)
    out, _ = jitted(weights(), 1.0)
    assert out["a"] is out["b"]
    assert (out["a"].sharding, out["bias"].sharding) == (SPLIT, WHOLE)
    assert out["a"].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    lowered = jitted.lower(weights(), 1.0)
    program = lowered.as_text()
    assert program[: program.index("->")].count("%arg") == 3
    assert lowered.out_info[0]["a"] is lowered.out_info[0]["b"]
    out, _ = lowered.compile()(weights(), 1.0)
    assert out["a"] is out["b"]


def test_prefixes_beside_static_and_donated_arguments() -> None:
    """The tuple of shardings speaks of the arguments that are not static, as in JAX."""
    jitted = jaxinterop.jit(
        lambda n, params, x: step(params, x, n),
        static_argnums=0,
        donate_argnums=1,
        in_shardings=({"a": SPLIT, "b": SPLIT, "bias": WHOLE}, WHOLE),
        out_shardings=(SPLIT, WHOLE),
    )
    for n in (1, 2):
        params = jax.device_put(weights(), SPLIT)
        params["b"] = params["a"]
        out, x = jitted(n, params, jnp.float32(2.0))
        assert out["a"] is out["b"]
        assert float(out["a"][0, 0]) == 1.0 - 2 * n
        assert float(out["bias"][0]) == -2.0 * n
        assert float(x) == 2.0
        assert params["a"].is_deleted()


def test_shardings_that_do_not_fit() -> None:
    """`ValueError` that says where."""
    jitted = jaxinterop.jit(step, in_shardings=({"a": SPLIT, "c": WHOLE}, None))
    with pytest.raises(
        ValueError, match=r"jit in_shardings must be a tree prefix [\s\S]* at args\[0\]"
    ):
        jitted(weights(), 1.0)
