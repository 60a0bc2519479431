# SPDX-License-Identifier: Apache-2.0
"""Refs are one object everywhere; contents in `jit`, maps, derivatives, stages."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jax_models import Net
from ref_writes import add_to, jax, jnp

import pydag
import pydag.jaxinterop as pj


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
    """The ref may be read, and comes back; what writes into it is JAX's error."""
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
    """The ref is sharded under `jit` as the spec says, and comes back, as in JAX."""
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


X = jnp.arange(1.0, 4.0)
Function = Callable[..., Any]


def count(tree: Any) -> None:
    """Counts a call in a ref."""
    tree["count"][...] = tree["count"][...] + 1


def refs() -> dict[str, Any]:
    """One ref at two places."""
    ref = jax.new_ref(jnp.int32(0))
    return {"count": ref, "same": ref}


WRAPPERS: dict[str, Callable[[Function, Any], Any]] = {
    "jit": lambda f, r: pj.jit(f)(r, X),
    "grad": lambda f, r: pj.grad(f, argnums=1)(r, X),
    "vjp": lambda f, r: pj.vjp(lambda x: f(r, x), X)[1](1.0),
    "jit of grad": lambda f, r: pj.jit(pj.grad(f, argnums=1))(r, X),
    "checkpoint": lambda f, r: pj.checkpoint(f)(r, X),
    "grad of checkpoint": lambda f, r: pj.grad(pj.checkpoint(f), argnums=1)(r, X),
    "jit of grad of checkpoint": lambda f, r: pj.jit(pj.grad(pj.checkpoint(f), argnums=1))(r, X),
    "cond": lambda f, r: pj.cond(True, f, lambda r, x: x.sum(), r, X),
    "switch": lambda f, r: pj.switch(0, [f, lambda r, x: x.sum()], r, X),
    "grad of cond": lambda f, r: pj.grad(
        lambda x: pj.cond(True, f, lambda r, x: x.sum(), r, x)
    )(X),
    "scan": lambda f, r: pj.scan(lambda c, x: (c, f(c, x)), r, X[:1]),
    "grad of scan": lambda f, r: pj.grad(
        lambda x: pj.scan(lambda c, x: (c, f(c, x)), r, x)[1].sum()
    )(X[:1]),
    "fori_loop": lambda f, r: pj.fori_loop(0, 1, lambda i, c: (c[0], f(*c) + c[1]), (r, X)),
    "while_loop": lambda f, r: pj.while_loop(
        lambda c: c[0]["count"][...] < 1, lambda c: (c[0], f(*c) + c[1]), (r, X)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_ref_is_one_object_and_written_once(name: str) -> None:
    """The ref may be at many places, in every wrapper, also where JAX runs the body twice."""
    tree, seen = refs(), []

    def fun(r: Any, x: Any) -> Any:
        seen.append(r["count"] is r["same"])
        count(r)
        return jnp.sin(x).sum()

    WRAPPERS[name](fun, tree)
    assert int(tree["count"][...]) == 1
    assert set(seen) == {True}


@pytest.mark.parametrize("name", ["jit", "checkpoint", "cond", "switch"])
def test_a_ref_comes_back_as_itself(name: str) -> None:
    """The caller's ref stands at each place of a result."""
    tree = refs()
    calls: dict[str, Function] = {
        "jit": lambda f: pj.jit(f)(tree),
        "checkpoint": lambda f: pj.checkpoint(f)(tree),
        "cond": lambda f: pj.cond(True, f, f, tree),
        "switch": lambda f: pj.switch(0, [f, f], tree),
    }
    out = calls[name](lambda t: {"a": t["same"], "b": [t["count"]]})
    assert out["a"] is tree["count"]
    assert out["b"][0] is tree["count"]


def test_a_ref_that_the_function_made_comes_out_of_jit_as_a_fresh_one() -> None:
    """One fresh ref stands for all places that it has in the result."""

    @pj.jit
    def make(x: Any) -> Any:
        ref = jax.new_ref(x)
        ref[...] = ref[...] * 2
        return {"a": ref, "b": ref}

    one, two = make(X), make(X)
    assert one["a"] is one["b"]
    assert one["a"] is not two["a"]
    assert one["a"][...].tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("writes", [False, True])
def test_calls_of_jit_in_a_row(writes: bool) -> None:
    """Refs may be read or written, in turn with arrays at one place, donated, with shardings."""
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])

    def step(tree: Any) -> Any:
        value = tree["x"][...] + 1
        if writes and not isinstance(tree["x"], jax.Array):
            tree["x"][...] = value
        return tree["x"], [value.sum()]

    for options in ({}, {"donate_argnums": 0}, {"out_shardings": (None, [device])}):
        made: dict[str, Any] = dict(options)
        function, ref = pj.jit(step, **made), jax.new_ref(jnp.zeros(2))
        for number in range(1, 4):
            same, (total,) = function({"x": ref})
            assert same is ref
            assert float(total) == (2.0 * number if writes else 2.0)
            assert float(function({"x": jnp.zeros(2)})[1][0]) == 2.0


def test_donation_says_nothing_about_refs() -> None:
    """A ref that is donated and kept is no conflict, since its content is donated anyway."""
    ref = jax.new_ref(jnp.zeros(2))

    def add(a: Any, b: Any) -> None:
        a["r"][...] = b["r"][...] + 1

    function = pj.jit(add, donate_argnums=0)
    for _ in range(2):
        function({"r": ref}, {"r": ref})
    assert ref[...].tolist() == [2.0, 2.0]


def test_jit_writes_nothing_if_the_function_raises() -> None:
    """The contents are as they were."""
    tree = refs()

    def fun(t: Any) -> None:
        count(t)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pj.jit(fun)(tree)
    assert int(tree["count"][...]) == 0


def stash(library: Any) -> Function:
    """A rule that writes its cotangent into a ref: JAX's own example."""
    fun: Any = library.custom_vjp(lambda ref, x: x)

    def backward(ref: Any, g: Any) -> Any:
        ref[...] = ref[...] + g
        return None, g

    fun.defvjp(lambda ref, x: (x, ref), backward)
    return lambda ref, x: fun(ref, x)


STAGED: dict[str, Function] = {
    "scan": lambda body, x: pj.scan(lambda c, t: (body(c) * t, None), x.sum(), x)[0],
    "cond": lambda body, x: pj.cond(x.sum() > 0, lambda x: body(x.sum()), lambda x: x.sum(), x),
    "fori_loop": lambda body, x: pj.fori_loop(0, 3, lambda i, c: body(c), x.sum()),
}


@pytest.mark.parametrize("library", [jax, pj], ids=["JAX's rule", "pydag's rule"])
@pytest.mark.parametrize("outer", ["grad", "jit of grad"])
@pytest.mark.parametrize("name", STAGED)
def test_a_rule_may_write_backward_beside_a_write_forward(
    name: str, outer: str, library: Any
) -> None:
    """In staged functions JAX writes each once: as often as they run."""
    if name == "cond" and jax.__version_info__ < (0, 12):
        pytest.skip("this JAX differentiates no branches with refs")
    counter, grads, rule = jax.new_ref(jnp.int32(0)), jax.new_ref(0.0), stash(library)

    def body(c: Any) -> Any:
        counter[...] = counter[...] + 1
        return rule(grads, jnp.sin(c))

    gradient = pj.grad(lambda x: STAGED[name](body, x))
    (pj.jit(gradient) if outer == "jit of grad" else gradient)(X)
    assert int(counter[...]) == (1 if name == "cond" else 3)
    assert float(grads[...]) != 0.0


@pytest.mark.parametrize("name", ["jit", "checkpoint", "cond", "scan"])
def test_a_ref_passed_and_closed_over(name: str) -> None:
    """Where it is passed as its content, the two would be two: JAX's error; else they are one."""
    tree = refs()

    def fun(r: Any, x: Any) -> Any:
        tree["count"][...] = r["same"][...] + 1
        return x.sum()

    if name == "jit":
        with pytest.raises(ValueError, match=r"args\[0\]\['count'\]"):
            WRAPPERS[name](fun, tree)
    elif name != "checkpoint":
        WRAPPERS[name](fun, tree)
        assert int(tree["same"][...]) == 1


def plumbing(x: Any, model: Any) -> Any:
    """A loss that counts its calls in a ref."""
    add_to(model["a"], 1.0)
    return x["w"] ** 2, model


def given() -> tuple[Any, Any, Any]:
    """A ref, a model that holds it twice, and parameters."""
    ref = jax.new_ref(jnp.zeros(()))
    return ref, {"a": ref, "b": ref}, {"w": jnp.float32(3.0)}


@pytest.mark.parametrize("is_compiled", [False, True])
def test_an_aux_hands_on_the_ref(is_compiled: bool) -> None:
    """The ref in an aux is the caller's; it is written once."""
    ref, model, x = given()
    f = pj.value_and_grad(plumbing, has_aux=True)
    (value, out), gradient = (pj.jit(f) if is_compiled else f)(x, model)
    assert out["a"] is ref
    assert out["b"] is ref
    assert float(ref[...]) == 1.0
    assert float(value) == 9.0
    assert float(gradient["w"]) == 6.0


def test_vjp_jvp_linearize() -> None:
    """Cotangents and tangents have None at refs; what is given there may be anything."""
    ref, model, x = given()
    value, pullback, out = pj.vjp(plumbing, x, model, has_aux=True)
    assert out["a"] is ref
    assert float(value) == 9.0
    assert pullback(jnp.float32(1.0)) == ({"w": 6.0}, {"a": None, "b": None})
    one = {"w": jnp.float32(1.0)}
    (value, out), (tangent, nothing) = pj.jvp(plumbing, (x, model), (one, {"a": None, "b": None}))
    assert out["b"] is ref
    assert float(tangent) == 6.0
    assert nothing == {"a": None, "b": None}
    (value, out), linear = pj.linearize(plumbing, x, model)
    assert out["b"] is ref
    assert linear(one, {"a": None, "b": None}) == (6.0, {"a": None, "b": None})
    assert float(ref[...]) == 3.0


@pytest.mark.parametrize("is_compiled", [False, True])
def test_wrt_selects_a_ref(is_compiled: bool) -> None:
    """The content at the call, an array, has the derivative; a write reaches the caller."""
    ref = jax.new_ref(jnp.float32(3.0))

    def loss(m: Any) -> Any:
        value = m["a"][...] * m["b"][...]
        add_to(m["a"], 1.0)
        return value

    f = pj.value_and_grad(loss, wrt="**")
    value, gradient = (pj.jit(f) if is_compiled else f)({"a": ref, "b": ref})
    assert float(value) == 9.0
    assert isinstance(gradient["a"], jax.Array)
    assert gradient["a"] is gradient["b"]
    assert float(gradient["a"]) == 6.0
    assert float(ref[...]) == 4.0


def test_refs_alone() -> None:
    """Nothing but refs, and none selected, is an error that says what to do."""
    _, model, _ = given()
    with pytest.raises(TypeError, match=r"refs alone.*\n.*wrt="):
        pj.grad(lambda m: m["a"][...])(model)


# --- rules that write on the way back ---
def ten_times() -> Any:
    """`w * x`, with a derivative that is ten times too large for `w`, a hundred times for `x`."""
    f = pj.custom_vjp(lambda m, x: m["w"][...] * x)
    f.defvjp(
        lambda m, x: (f(m, x), (m["w"][...], x)),
        lambda saved, g: ({"w": 10.0 * g * saved[1]}, 100.0 * g * saved[0]),
    )
    return f


def ten_times_forward() -> Any:
    """The same by a rule ten_times_forward. The tangent of a ref is a ref."""
    f = pj.custom_jvp(lambda m, x: m["w"][...] * x)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (m, x), (along, dx) = primals, tangents
        return f(m, x), 10.0 * along["w"][...] * x + 100.0 * m["w"][...] * dx

    return f


INSIDE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "as it is": lambda f, m, x: f(m, x),
    "vmap": lambda f, m, x: pj.vmap(f, in_axes=(None, 0))(m, x[None])[0],
    # JAX takes rules ten_times_forward that have refs no further.
    "jit": lambda f, m, x: pj.jit(f)(m, x),
    "jit, closed over": lambda f, m, x: pj.jit(lambda x: f(m, x))(x),
    "scan": lambda f, m, x: pj.scan(lambda c, _: (c, f(m, c)), x, length=1)[1][0],
    "scan, carried": lambda f, m, x: pj.scan(lambda c, _: (c, f(*c)), (m, x), length=1)[1][0],
    "fori_loop": lambda f, m, x: pj.fori_loop(0, 1, lambda i, c: f(m, x), jnp.float32(0.0)),
    "cond": lambda f, m, x: pj.cond(x > 0, f, lambda m, x: x, m, x),
    "map": lambda f, m, x: pj.map(lambda x: f(m, x), x[None])[0],
}

CASES = [(ten_times, name) for name in INSIDE] + [
    (ten_times_forward, name) for name in list(INSIDE)[:2]
]


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize(("make", "inside"), CASES)
def test_the_rule_counts_for_a_ref(make: Any, inside: str, is_compiled: bool) -> None:
    """What the rule says about a ref is the derivative of its content, selected or made inside."""
    f, run = make(), INSIDE[inside]
    compiled: Any = pj.jit if is_compiled else lambda f: f

    def made(w: Any, x: Any) -> Any:
        return run(f, {"w": jax.new_ref(w)}, x)

    gradient = compiled(pj.grad(made, argnums=(0, 1)))(jnp.float32(2.0), jnp.float32(3.0))
    assert [float(g) for g in gradient] == [30.0, 200.0]

    model = {"m": {"w": jax.new_ref(2.0)}, "x": jnp.float32(3.0)}
    selected = compiled(pj.grad(lambda p: run(f, p["m"], p["x"]), wrt="**"))(model)
    assert (float(selected["m"]["w"]), float(selected["x"])) == (30.0, 200.0)
    passed_over = compiled(pj.grad(lambda p: run(f, p["m"], p["x"])))(model)
    assert (passed_over["m"]["w"], float(passed_over["x"])) == (None, 200.0)


def written(custom: Any) -> Any:
    def f(ref: Any, x: Any) -> Any:
        ref[...] = ref[...] * x
        return ref[...] + x

    return custom(f)


def test_a_function_that_writes() -> None:
    """The rule says nothing about what is written, whose derivative stays as it was, as in JAX."""
    f = written(pj.custom_vjp)
    f.defvjp(lambda ref, x: (f(ref, x), None), lambda _, g: (100.0 * g, 1000.0 * g))
    g = written(pj.custom_jvp)
    g.defjvp(lambda p, t: (g(*p), 100.0 * t[0][...] + 1000.0 * t[1]))

    for h in (f, g):

        def loss(w: Any, x: Any, h: Any = h) -> Any:
            ref = jax.new_ref(w)
            return h(ref, x) + 7.0 * ref[...]

        value, (by_w, by_x) = pj.value_and_grad(loss, argnums=(0, 1))(2.0, 3.0)
        assert (float(value), float(by_w), float(by_x)) == (51.0, 107.0, 1000.0)


HERE = jax.sharding.SingleDeviceSharding(jax.devices()[0])  # else JAX 0.12 can't write it


def described() -> Any:
    return jax.ShapeDtypeStruct((2,), jnp.float32, sharding=HERE, is_ref=True)


try:
    ROW = described()
except TypeError:
    ROW = None


describes = pytest.mark.skipif(ROW is None, reason="this JAX describes no refs")


def ref(*values: float) -> Any:
    return jax.new_ref(jax.device_put(np.array(values, np.float32), HERE))


def add_one(counter: Any) -> None:
    add_to(counter, 1.0)


@describes
def test_what_was_compiled_takes_the_ref() -> None:
    """The program writes into the refs that it is called with, and reads others: as in JAX."""

    def step(model: Any, x: Any) -> Any:
        add_one(model["count"])
        return x * model["w"][...] + model["count"][...]

    x = jax.ShapeDtypeStruct((2,), jnp.float32)
    compiled = pj.jit(step).lower({"count": described(), "w": described()}, x).compile()
    model, other = ({"count": ref(n, n), "w": ref(2.0, 3.0)} for n in (0.0, 5.0))
    assert compiled(model, jnp.ones(2)).tolist() == [3.0, 4.0]
    assert compiled(model, jnp.ones(2)).tolist() == [4.0, 5.0]
    assert compiled(other, jnp.ones(2)).tolist() == [8.0, 9.0]
    assert model["count"][...].tolist() == [2.0, 2.0]
    assert model["w"][...].tolist() == [2.0, 3.0]


def read(m: Any) -> Any:
    return m["r"][...] + 1.0


ORDINARY, OTHER = "a ref", "an array, or a ref with a kind or a memory space of its own"

OTHERS: dict[str, tuple[Any, Callable[[], Any], str, str]] = {
    "a ref for an array": (jnp.ones(2), lambda: ref(1.0, 2.0), OTHER, ORDINARY),
    "an array for a ref": (ROW, lambda: jnp.ones(2), ORDINARY, OTHER),
    "a ref of a kind": (ROW, lambda: jax.new_ref(jnp.ones(2), kind="no_grad"), ORDINARY, OTHER),
}


@describes
@pytest.mark.parametrize("case", OTHERS)
def test_other_refs_than_compiled_for(case: str) -> None:
    """The error says where there is a ref, and where there was one when it was compiled."""
    compiled_for, called_with, first, second = OTHERS[case]
    compiled = pj.jit(read).lower({"r": compiled_for}).compile()
    text = f"args[0]['r']\n  first:  {first}\n  second: {second}\n"
    with pytest.raises(TypeError, match=re.escape(text)):
        compiled({"r": called_with()})


def test_a_stage_keeps_the_writes_that_it_was_traced_for() -> None:
    """A call with other shapes that writes into more refs changes no stage made before."""

    def step(counter: Any, rows: list[Any]) -> Any:
        if rows[0].shape == (2,):
            add_to(counter, 1.0)
        return counter[...] + sum(row.sum() for row in rows)

    fast, counter = pj.jit(step), ref(0.0)
    short, long = ([jnp.ones(size) for _ in range(20)] for size in (2, 3))  # leaves go in lists
    stage = fast.lower(counter, long).compile()
    fast(counter, short)
    assert stage(counter, long).tolist() == [61.0]
