# SPDX-License-Identifier: Apache-2.0
"""Refs that are mapped over, and those that aren't."""

from typing import Any

import pytest
from ref_writes import add_to, jax, jnp

from pydag import jaxinterop as pj


def write(model: Any, x: Any) -> Any:
    add_to(model["a"], x)
    return model, x


def test_a_mapped_ref() -> None:
    """A ref with an axis is mapped once, written by each, and comes back itself."""
    ref = jax.new_ref(jnp.zeros(3))
    for out_axes in (0, ({"a": 0, "b": 0}, 0)):
        out, _ = pj.vmap(write, out_axes=out_axes)({"a": ref, "b": ref}, jnp.arange(3.0))
        assert out["a"] is ref
        assert out["b"] is ref
    assert ref[...].tolist() == [0.0, 2.0, 4.0]


def test_a_ref_without_an_axis() -> None:
    """It may be read, and comes back; what writes into it is JAX's error."""
    ref = jax.new_ref(jnp.float32(2.0))
    model, xs = {"a": ref, "b": ref}, jnp.arange(3.0)

    def run(m: Any, x: Any) -> Any:
        return m, m["b"][...] * x

    out, values = pj.vmap(run, in_axes=(None, 0))(model, xs)
    assert out["a"] is ref
    assert values.tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(Exception, match="unbatched array reference"):
        pj.vmap(write, in_axes=(None, 0))(model, xs)


def test_two_axes_for_one_ref() -> None:
    """One ref at two places has one axis."""
    ref = jax.new_ref(jnp.zeros((2, 2)))
    with pytest.raises(ValueError, match="one object is both"):
        pj.vmap(lambda m: m["a"][...], in_axes=({"a": 0, "b": 1},))({"a": ref, "b": ref})


def test_a_ref_made_inside() -> None:
    """What `vmap` lets out comes out as JAX gives it."""
    out = pj.vmap(lambda x: {"new": jax.new_ref(x)})(jnp.arange(3.0))
    assert out["new"][...].tolist() == [0.0, 1.0, 2.0]


def test_a_loop_with_a_ref_under_vmap() -> None:
    """A mapped ref in the carry of a loop under `vmap`."""
    ref = jax.new_ref(jnp.zeros(3))

    def run(r: Any, x: Any) -> Any:
        return pj.scan(lambda c, _: ((add_to(c, x), c)[1], None), r, length=2)[0]

    assert pj.vmap(run)(ref, jnp.arange(3.0)) is ref
    assert ref[...].tolist() == [0.0, 2.0, 4.0]


def test_shard_map() -> None:
    """Under `jit`, as in JAX: the ref is sharded as the spec says, and comes back."""
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("x")
    sharding = jax.sharding.NamedSharding(mesh, spec)
    ref = jax.new_ref(jax.device_put(jnp.zeros(2), sharding))
    run = pj.jit(pj.shard_map(write, mesh=mesh, in_specs=spec, out_specs=spec))
    for _ in range(2):
        out, _ = run({"a": ref, "b": ref}, jnp.arange(2.0))
        assert out["a"] is ref
        assert out["b"] is ref
    assert ref[...].tolist() == [0.0, 2.0]
    assert ref.sharding.is_equivalent_to(sharding, 1)


def test_map_over_slices() -> None:
    """`jaxinterop.map` of a function that writes into a ref from around it."""
    ref = jax.new_ref(jnp.zeros(()))
    pj.map(lambda x: add_to(ref, x), jnp.arange(4.0))
    assert float(ref[...]) == 6.0
