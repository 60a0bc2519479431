"""`jaxinterop.shard_map` on one device; tests/jax/test_jax_devices.py has eight."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from small_models import tied_under
from wrappers import MESH

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
