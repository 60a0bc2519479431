# SPDX-License-Identifier: Apache-2.0
"""Refs and `jit`, models with refs, maps: passed once, returned as they are, written as arrays."""

from typing import Any

import pytest
from jax_models import Net
from ref_writes import add_to, jax, jnp

import pydag
from pydag import jaxinterop as pj


def test_what_is_only_read_is_not_donated() -> None:
    """The content of a ref that is read stays the very array; of a written one it is replaced."""
    read, written = jax.new_ref(jnp.ones(2)), jax.new_ref(jnp.zeros(2))
    step = pj.jit(lambda m: add_to(m["w"], m["r"][...]))
    contents = []
    for _ in range(3):
        step({"r": read, "w": written})
        contents.append(read.unsafe_buffer_pointer())
    assert len(set(contents)) == 1
    assert written[...].tolist() == [3.0, 3.0]


def test_other_arguments_may_write_more() -> None:
    """A static flag, or another shape, may decide which refs are written."""
    ref, other = jax.new_ref(jnp.zeros(2)), jax.new_ref(jnp.zeros(2))

    def run(m: Any, x: Any, is_training: bool) -> Any:
        if is_training:
            add_to(m["a"], 1.0)
        if x.ndim:
            add_to(m["b"], x)
        return m["a"][...].sum() + m["b"][...].sum()

    step = pj.jit(run, static_argnums=2)
    model = {"a": ref, "b": other}
    scalar, vector = jnp.float32(1.0), jnp.ones(2)
    rounds = [(scalar, False), (scalar, True), (vector, False), (vector, True), (scalar, False)]
    assert [float(step(model, x, flag)) for x, flag in rounds] == [0.0, 2.0, 4.0, 8.0, 8.0]


def test_a_ref_of_a_kind_goes_the_way_of_jax() -> None:
    """Refs with a kind are passed as they are, once; the same function takes both sorts."""
    plain = jax.new_ref(jnp.zeros(2))
    special = jax.new_ref(jnp.zeros(2), kind="no_grad_no_remat")

    @pj.jit(donate_argnums=0)
    def step(m: Any) -> Any:
        add_to(m["a"], 1.0)
        return m

    for ref in (plain, special, plain, special):
        assert step({"a": ref, "b": ref})["b"] is ref
    assert plain[...].tolist() == special[...].tolist() == [2.0, 2.0]


def test_nested_functions_hand_refs_on() -> None:
    """Under another `jit`, plain or ours, a ref is passed once, and comes back."""
    ref = jax.new_ref(jnp.zeros(()))
    inner = pj.jit(lambda m: (add_to(m["a"], 1.0), m)[1])

    @pj.jit
    def outer(m: Any) -> Any:
        again = inner(m)
        assert again["a"] is m["a"]
        return inner(again)

    assert outer({"a": ref, "b": ref})["b"] is ref
    jax.jit(lambda r: inner({"a": r, "b": r})["a"][...])(ref)
    assert float(ref[...]) == 3.0


def test_stages() -> None:
    """`eval_shape`, `trace`, `lower`, `compile`, and what was compiled, take refs."""
    ref = jax.new_ref(jnp.zeros(2))
    model = {"a": ref, "b": ref}

    def run(m: Any) -> Any:
        add_to(m["a"], 1.0)
        return m, m["b"][...].sum()

    step = pj.jit(run)
    shapes, total = step.eval_shape(model)
    assert shapes["a"] is shapes["b"]
    assert shapes["a"].shape == (2,)
    assert total.shape == ()
    compiled = step.trace(model).lower().compile()
    out, total = compiled(model)
    assert out["a"] is ref
    assert float(total) == 2.0
    assert ref[...].tolist() == [1.0, 1.0]
    assert pj.eval_shape(run, model)[0]["a"].shape == (2,)
    jaxpr, shape = pj.make_jaxpr(run, return_shape=True)(model)
    assert len(jaxpr.in_avals) == 1
    assert shape[0]["b"].shape == (2,)
    assert ref[...].tolist() == [1.0, 1.0]


def test_a_dag_of_refs() -> None:
    """Plain JAX sees a ref once in a `Dag`, which gives it back."""
    ref = jax.new_ref(jnp.zeros(2))
    dag = pj.Dag({"a": ref, "b": ref})
    jax.jit(lambda d: add_to(d.tree["a"], 1.0))(dag)
    assert jax.tree.leaves(dag) == [ref]
    assert dag.tree["b"] is ref
    assert ref[...].tolist() == [1.0, 1.0]
    assert pj.jit(lambda d: d)(dag).tree["a"] is ref


@pytest.mark.skipif(not hasattr(jax, "freeze"), reason="this JAX has no freeze")
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_frozen_ref_keeps_what_was_frozen(before: int) -> None:
    """Calls that write into a ref after `jax.freeze` leave the array that this gave as it was."""

    @pj.jit
    def add(ref: Any) -> None:
        ref[...] += 1

    ref = jax.new_ref(jnp.zeros(2))
    for _ in range(before):
        add(ref)
    frozen = jax.freeze(ref)
    for _ in range(3):
        add(ref)
    assert frozen.tolist() == [before, before]
    assert ref[...].tolist() == [before + 3, before + 3]


def test_contents_are_updated_where_they_are() -> None:
    """The memory of a content that nobody else has is that of the new content, at every call."""

    @pj.jit
    def add(ref: Any) -> None:
        ref[...] += 1

    ref = jax.new_ref(jnp.zeros(1000))
    add(ref)
    places = {ref.unsafe_buffer_pointer()}
    for _ in range(4):
        add(ref)
        places.add(ref.unsafe_buffer_pointer())
    assert len(places) == 1


def test_a_model_of_refs_trains_in_place() -> None:
    """One ref for a tied weight; a step that returns a loss and the optimizer's state."""
    optax = pytest.importorskip("optax")
    net = pj.tree.map(jax.new_ref, Net(jnp.ones(3)))
    assert net.w is net.tied
    assert isinstance(net.w, jax.Ref)
    ref, opt = net.w, pj.optimizer(optax.sgd(0.25), wrt=jax.Ref)
    state = opt.init(net)

    @pj.jit
    def step(net: Net, state: Any) -> Any:
        loss, gradient = pj.value_and_grad(lambda n: (n.w[...] * n.tied[...]).sum(), wrt="**")(net)
        updates, state = opt.update(gradient, state, net)
        again = pj.apply_updates(net, updates)
        assert again.w is net.w
        assert again.tied is net.w
        return loss, state

    losses = []
    for _ in range(3):
        loss, state = step(net, state)
        losses.append(float(loss))
    assert losses == [3.0, 0.75, 0.1875]
    assert net.w is ref
    assert ref[...].tolist() == [0.125] * 3


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
