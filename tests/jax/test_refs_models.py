# SPDX-License-Identifier: Apache-2.0
"""Models with refs: optimizers, copies, random generators, maps."""

from typing import Any

import pytest
from ref_writes import add_to, jax, jnp

import pydag
from pydag import jaxinterop as pj


class Net(pj.Module):
    """Two tied weights and a number."""

    def __init__(self) -> None:
        self.w = jnp.ones(3)
        self.v = self.w
        self.n = 3


def test_a_model_of_refs_trains_in_place() -> None:
    """One ref for a tied weight; a step that returns a loss and the optimizer's state."""
    optax = pytest.importorskip("optax")
    net = pj.tree.map(jax.new_ref, Net())
    assert net.w is net.v
    assert isinstance(net.w, jax.Ref)
    ref, opt = net.w, pj.optimizer(optax.sgd(0.25), wrt=jax.Ref)
    state = opt.init(net)

    @pj.jit
    def step(net: Net, state: Any) -> Any:
        loss, gradient = pj.value_and_grad(lambda n: (n.w[...] * n.v[...]).sum(), wrt="**")(net)
        updates, state = opt.update(gradient, state, net)
        again = pj.apply_updates(net, updates)
        assert again.w is net.w
        assert again.v is net.w
        return loss, state

    losses = []
    for _ in range(3):
        loss, state = step(net, state)
        losses.append(float(loss))
    assert losses == [3.0, 0.75, 0.1875]
    assert net.w is ref
    assert ref[...].tolist() == [0.125] * 3


def test_untie_makes_a_ref_of_its_own() -> None:
    """Its copy has a content of its own; `dag_copy` keeps the ref, being a leaf."""
    ref = jax.new_ref(jnp.zeros(2))
    tree = {"a": ref, "b": ref}
    copy = pydag.untie(tree, ("a",))
    copy["a"][...] = jnp.ones(2)
    assert copy["b"] is ref
    assert ref[...].tolist() == [0.0, 0.0]
    assert pydag.dag_copy(tree)["a"] is ref


def test_dag_update_writes_contents() -> None:
    """Where the target holds a ref it stays, and the content is written: of a ref, of an array."""
    ref, other = jax.new_ref(jnp.zeros(2)), jax.new_ref(jnp.ones(2))
    target = {"a": ref, "b": ref, "n": [1.0]}
    pydag.dag_update(target, {"a": other, "b": other, "n": [2.0]})
    assert target["a"] is ref
    assert target["n"] == [2.0]
    assert ref[...].tolist() == [1.0, 1.0]
    array = jnp.full(2, 5.0)
    pydag.dag_update(target, {"a": array, "b": array, "n": [3.0]})
    assert target["b"] is ref
    assert ref[...].tolist() == [5.0, 5.0]
    assert other[...].tolist() == [1.0, 1.0]


def test_dag_update_is_all_or_nothing() -> None:
    """A content that doesn't fit is an error with the path; nothing is written."""
    ref = jax.new_ref(jnp.zeros(2))
    target = {"n": [1.0], "r": ref, "s": jax.new_ref(jnp.zeros(2))}
    for wrong in (jnp.ones(3), jnp.ones(2, int), 1.0):
        with pytest.raises(ValueError, match=r"target\['s'\] is a ref of float32\[2\]"):
            pydag.dag_update(target, {"n": [2.0], "r": jnp.ones(2), "s": wrong})
    assert target["n"] == [1.0]
    assert ref[...].tolist() == [0.0, 0.0]


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


def test_a_ref_made_inside() -> None:
    """What `vmap` lets out comes out as JAX gives it."""
    out = pj.vmap(lambda x: {"new": jax.new_ref(x)})(jnp.arange(3.0))
    assert out["new"][...].tolist() == [0.0, 1.0, 2.0]


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
