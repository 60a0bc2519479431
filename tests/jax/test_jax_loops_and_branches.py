# SPDX-License-Identifier: Apache-2.0
"""Loops and branches keep sharing as far as their functions do; the rest comes apart."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax_models import tied_under

import pydag
import pydag.jaxinterop as pj

pytestmark = pytest.mark.filterwarnings("ignore::pydag.jaxinterop.LostTieWarning")
strict = pytest.mark.filterwarnings("error::pydag.jaxinterop.LostTieWarning")

Body = Callable[[Any], Any]
ONE, ROW = jnp.float32(1.0), jnp.arange(3.0)


# Each runs a body three times, by the functions of `jax.lax` or by those of pydag.
LOOPS: dict[str, Callable[[Any, Body, Any], Any]] = {
    "scan": lambda lax, body, c: lax.scan(lambda c, _: (body(c), None), c, None, 3)[0],
    "scan, unrolled": lambda lax, body, c: lax.scan(
        lambda c, _: (body(c), None), c, length=3, unroll=2, reverse=True
    )[0],
    "fori_loop": lambda lax, body, c: lax.fori_loop(0, 3, lambda _, c: body(c), c),
    "fori_loop, traced": lambda lax, body, c: pj.jit(
        lambda n, c: lax.fori_loop(0, n, lambda _, c: body(c), c)
    )(3, c),
    "while_loop": lambda lax, body, c: lax.while_loop(
        lambda c: c[0] < 3, lambda c: [c[0] + 1, body(c[1])], [0, c]
    )[1],
}


def alike(one: Any, other: Any) -> bool:
    """Whether two results have the same structure and the same values."""
    return jax.tree.all(jax.tree.map(lambda x, y: bool((x == y).all()), one, other))


def both(x: Any) -> dict[str, Any]:
    """One object at two places."""
    return {"a": x, "b": x}


def two(c: Any) -> Any:
    return {"a": c["a"] * 2, "b": c["b"] * 3}


def in_a_row(c: Any) -> Any:
    """What is one here comes apart by and by: `c` stays with `b` as long as `b` is `a`."""
    b = c["b"] * 3
    return {"a": c["a"] * 2, "b": b, "c": b if c["a"] is c["b"] else c["c"] * 5}


def reset(state: Any) -> Any:
    """The step of an environment that is reset by itself: some objects of the start are one."""
    body = {"q": state["body"]["q"] + state["body"]["v"], "v": state["body"]["v"]}
    obs = body["q"] * 2
    done = obs.sum() > 6
    first = state["info"]
    choose = functools.partial(jnp.where, done)
    new = {"q": choose(first["first_body"]["q"], body["q"]), "v": body["v"]}
    return state | {"body": new, "obs": choose(first["first_obs"], obs)}


def shared_layer(c: Any) -> Any:
    return {"enc": {"w": c["enc"]["w"] * 2, "n": "x"}, "dec": {"w": c["dec"]["w"] * 3, "n": "x"}}


def swapped(c: Any) -> Any:
    return {"a": c["b"], "b": c["c"], "c": c["a"] + 1}


def start() -> dict[str, Any]:
    """The first state of an environment."""
    body = {"q": ROW * 0, "v": ROW}
    obs = body["q"] * 2
    return {"body": body, "obs": obs, "info": {"first_body": body, "first_obs": obs}}


def layers() -> dict[str, Any]:
    """One layer at two places, with a static leaf."""
    layer = {"w": ROW, "n": "x"}
    return {"enc": layer, "dec": layer}


CARRIES: dict[str, tuple[Body, Callable[[], Any]]] = {
    "two": (two, lambda: both(ROW)),
    "by and by": (in_a_row, lambda: {"a": ONE, "b": ONE, "c": ONE}),
    "an environment": (reset, start),
    "swapped": (swapped, lambda: {"a": ONE, "b": ONE, "c": ROW[1]}),
    "one dict": (two, lambda: (lambda d: {"a": d["x"], "b": d["x"]})({"x": ROW})),
    "two dicts": (
        lambda c: {"a": {"w": c["a"]["w"] * 2}, "b": {"w": c["b"]["w"] * 3}},
        lambda: both({"w": ROW}),
    ),
    "two lists of one array": (
        lambda c: (lambda w: {"a": [w], "b": [w]})(c["a"][0] * 2),
        lambda: both([ROW]),
    ),
    "numbers": (lambda c: {"a": c["a"] + 1, "b": 2.0}, lambda: both(ONE)),
    "in a list": (lambda c: [c[0] * 2, c[1] * 3, c[2]], lambda: [ROW, ROW, ROW]),
    "in a tuple in a list": (lambda c: [(c[0][0] * 2, c[0][1])], lambda: [(ROW, ROW)]),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", CARRIES)
def test_values_are_those_of_jax(name: str, loop: str) -> None:
    """Values are those of `jax.lax` on the unfolded carry."""
    body, first = CARRIES[name]
    assert alike(LOOPS[loop](pj, body, first()), LOOPS[loop](jax.lax, body, first()))


@pytest.mark.parametrize("loop", LOOPS)
def test_static_leaves_and_dicts_come_apart(loop: str) -> None:
    """A dict at two places is two dicts then, with the static leaf in both."""
    out = LOOPS[loop](pj, shared_layer, layers())
    assert out["enc"] is not out["dec"]
    assert (out["enc"]["n"], out["dec"]["n"]) == ("x", "x")
    assert (out["enc"]["w"].tolist(), out["dec"]["w"].tolist()) == ([0.0, 8, 16], [0.0, 27, 54])


@pytest.mark.parametrize("loop", LOOPS)
def test_only_what_comes_apart_does(loop: str) -> None:
    """What the body keeps one stays one; what it makes one fills two places."""

    def body(c: Any) -> Any:
        a, d = c["a"] + 1, c["d"] * 2
        return {"a": a, "b": a, "c": c["c"] * 3, "d": d, "e": d}

    out = LOOPS[loop](pj, body, {"a": ONE, "b": ONE, "c": ONE, "d": ONE, "e": ONE + 0})
    assert out["a"] is out["b"]
    assert len({id(out[key]) for key in "acde"}) == 4
    assert [float(out[key]) for key in "abcde"] == [4.0, 4.0, 27.0, 8.0, 8.0]


@pytest.mark.parametrize(("body", "count"), [(lambda c: c | two(c), 2), (in_a_row, 3), (dict, 1)])
@pytest.mark.parametrize("loop", ["scan", "fori_loop", "while_loop"])
def test_a_body_is_traced_again_only_where_something_came_apart(
    loop: str, body: Body, count: int
) -> None:
    """Other bodies are traced once; and a later call of this kind traces nothing."""
    traces = []

    def counted(c: Any) -> Any:
        traces.append(c)
        return body(c)

    step: dict[str, Any] = {
        "scan": lambda c, _: (counted(c), None),
        "fori_loop": lambda _, c: counted(c),
        "while_loop": lambda c: counted(c) | {"i": c["i"] + 1},
    }
    run: dict[str, Callable[[Any], Any]] = {
        "scan": lambda c: pj.scan(step["scan"], c, length=3),
        "fori_loop": lambda c: pj.fori_loop(0, 3, step["fori_loop"], c),
        "while_loop": lambda c: pj.while_loop(less, step["while_loop"], c | {"i": 0}),
    }
    less = lambda c: c["i"] < 3  # noqa: E731 (it is short)
    for _ in range(3):
        run[loop]({"a": ONE, "b": ONE, "c": ONE})
        assert len(traces) == count


def test_a_body_that_separates_some_shapes() -> None:
    """What is known of one shape isn't used for another."""

    def body(c: Any, _: Any) -> Any:
        new = c["a"] + 1
        return {"a": new, "b": c["b"] * 2 if c["a"].ndim else new}, None

    for _ in range(2):
        rows, _ = pj.scan(body, both(ROW), length=2)
        numbers, _ = pj.scan(body, both(ONE), length=2)
        assert rows["b"].tolist() == [0.0, 4.0, 8.0]
        assert numbers["a"] is numbers["b"]


def test_the_condition_sees_what_the_body_sees() -> None:
    """When the loop runs, both get two objects."""
    seen = []

    def condition(c: Any) -> Any:
        seen.append(("condition", c["a"] is c["b"]))
        return c["a"] < 5

    def body(c: Any) -> Any:
        seen.append(("body", c["a"] is c["b"]))
        return two(c)

    out = pj.while_loop(condition, body, both(ONE))
    assert (float(out["a"]), float(out["b"])) == (8.0, 27.0)
    assert set(seen[-2:]) == {("condition", False), ("body", False)}


class Layer(pj.Module):
    """Two arrays."""

    def __init__(self, w: Any) -> None:
        self.w, self.bias = w, w + 1


class Net(pj.Module):
    """Two layers."""

    def __init__(self, first: Layer, last: Layer) -> None:
        self.first, self.last = first, last


def untied(net: Net) -> Net:
    """Two layers where the net may have one."""
    return Net(*(pj.tree.map(lambda x, k=k: x * k, net_part) for k, net_part in parts_of(net)))


def parts_of(net: Net) -> Iterator[tuple[float, Layer]]:
    yield from ((2.0, net.first), (3.0, net.last))


@pytest.mark.parametrize("loop", LOOPS)
def test_the_lost_tie_of_a_module(loop: str) -> None:
    """A warning has both paths; the loop carries two layers."""
    layer = Layer(ROW)
    with pytest.warns(pj.LostTieWarning, match=r"first.* and .*last.* are one object"):
        out = LOOPS[loop](pj, untied, Net(layer, layer))
    assert out.first is not out.last
    assert (out.first.w.tolist(), out.last.bias.tolist()) == ([0.0, 8.0, 16.0], [27.0, 54.0, 81.0])


def test_modules_of_nnx() -> None:
    """A module at two places that becomes two, and Variables."""
    linear = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    kernel = jnp.array(linear.kernel[...])

    def body(c: Any, _: Any) -> Any:
        one, other = nnx.clone(c["a"]), nnx.clone(c["b"])
        one.kernel[...] = one.kernel[...] * 2
        return {"a": one, "b": other}, None

    out, _ = pj.scan(body, {"a": linear, "b": linear}, length=2)
    assert (out["a"].kernel[...] == 4 * kernel).all()
    assert (out["b"].kernel[...] == kernel).all()


def test_where_containers_alone_have_identity() -> None:
    """With `identity="nodes"` a dict comes apart; arrays are separate anyway."""
    inner = {"w": ROW}
    out = pj.fori_loop(
        0,
        2,
        lambda _, c: {"a": {"w": c["a"]["w"] + 1}, "b": {"w": c["b"]["w"] * 2}},
        {"a": inner, "b": inner},
        identity="nodes",
    )
    assert (out["a"]["w"].tolist(), out["b"]["w"].tolist()) == ([2.0, 3, 4], [0.0, 4, 8])


def test_the_same_number_is_one() -> None:
    """A number that is put at both places of an array keeps the two one."""
    zeros: Body = lambda c: dict.fromkeys(c, 0.0)  # noqa: E731 (it is short)
    out = LOOPS["scan"](pj, zeros, both(ONE))
    assert out["a"] is out["b"]
    assert float(out["a"]) == 0.0


@pytest.mark.parametrize("loop", LOOPS)
def test_refs_in_a_carry_that_comes_apart(loop: str) -> None:
    """Refs are written once in each step, and stay the caller's; containers of them come apart."""
    ref = jax.new_ref(ONE)
    held = {"r": ref}

    def body(c: Any) -> Any:
        c["d"]["r"][...] = c["e"]["r"][...] + c["b"]
        return two(c) | {"d": {"r": ref_of(c, "d")}, "e": {"r": ref_of(c, "e")}}

    def ref_of(c: Any, key: str) -> Any:
        return c[key]["r"]

    out = LOOPS[loop](pj, body, {"a": ONE, "b": ONE, "d": held, "e": held})
    assert (float(ref[...]), float(out["b"])) == (14.0, 27.0)
    assert out["d"]["r"] is ref
    assert out["e"]["r"] is ref
    assert out["d"] is not out["e"]


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "while_loop"])
def test_a_ref_that_comes_apart(loop: str) -> None:
    """A `TypeError` has the path of another ref at one of its places, or of a new one."""
    one, other = jax.new_ref(ONE), jax.new_ref(ONE)
    bodies: list[Body] = [lambda c: c | {"b": c["o"]}]
    if loop != "while_loop":
        bodies.append(lambda c: c | {"b": jax.new_ref(c["a"][...])})
    for body in bodies:
        with pytest.raises(TypeError, match=r"'b'\] must be the very ref"):
            LOOPS[loop](pj, body, {"a": one, "b": one, "o": other})


@pytest.mark.parametrize("around", [pj.jit, pj.checkpoint, lambda f: pj.jit(pj.checkpoint(f))])
@pytest.mark.parametrize("loop", ["scan", "fori_loop"])
def test_derivatives_are_those_of_jax(loop: str, around: Any) -> None:
    """The gradient of what starts as one object is the sum over both."""
    body: Body = lambda c: {"a": c["a"] * c["b"], "b": c["b"] * 2}  # noqa: E731 (it is short)

    def loss(lax: Any, c: Any) -> Any:
        out = LOOPS[loop](lax, body, c)
        return (out["a"] + out["b"]).sum()

    found = pj.grad(around(functools.partial(loss, pj)))(both(ROW))
    wanted = jax.grad(functools.partial(loss, jax.lax))(both(ROW))
    assert found["a"] is found["b"]
    assert found["a"].tolist() == (wanted["a"] + wanted["b"]).tolist()


def test_in_a_loop_in_a_loop() -> None:
    """The outer loop comes apart because the inner one did."""
    traces = []

    def inner(c: Any, _: Any) -> Any:
        traces.append("inner")
        return two(c), None

    def outer(c: Any, _: Any) -> Any:
        traces.append("outer")
        return pj.scan(inner, c, length=2)[0], None

    out, _ = pj.scan(outer, both(ONE), length=2)
    assert (float(out["a"]), float(out["b"])) == (16.0, 81.0)
    assert traces.count("outer") == 2


def test_under_vmap() -> None:
    """Each row comes apart."""
    run: Any = lambda lax: lambda x: LOOPS["scan"](lax, two, both(x))  # noqa: E731  # short
    assert alike(pj.vmap(run(pj))(ROW), jax.vmap(run(jax.lax))(ROW))


@pytest.mark.parametrize("loop", ["scan", "while_loop"])
def test_without_jit_each_step_runs_once(loop: str) -> None:
    """Under `jax.disable_jit` no step runs again, so a ref is written once in each."""
    ref, steps = jax.new_ref(ONE), []

    def body(c: Any) -> Any:
        steps.append(c)
        ref[...] = ref[...] + 1
        return two(c)

    with jax.disable_jit():
        out = LOOPS[loop](pj, body, both(ONE))
    assert (float(out["a"]), float(out["b"]), float(ref[...]), len(steps)) == (8.0, 27.0, 4.0, 3)


def test_no_tracer_stays() -> None:
    """The trace that is given up leaks nothing."""
    with jax.checking_leaks():
        out = pj.jit(lambda c: LOOPS["while_loop"](pj, two, c))(both(ONE))
    assert float(out["b"]) == 27.0


def test_what_differs_in_more_than_sharing_is_an_error() -> None:
    """The error has the path, also where something comes apart beside it."""
    with pytest.raises(TypeError, match=r"must be structured alike(.|\n)*at carry\['dec'\]"):
        LOOPS["scan"](pj, lambda c: {"enc": dict(c["enc"]), "dec": [c["dec"]["w"]]}, layers())
    with pytest.raises(TypeError, match=r"carry\['dec'\]\['n'\] is 'x'\n.*: it is 'y'"):
        LOOPS["scan"](pj, lambda c: {**c, "dec": c["dec"] | {"n": "y"}}, layers())
    with pytest.raises(TypeError, match=r"\['b'\]"):  # JAX's own
        LOOPS["scan"](pj, lambda c: two(c) | {"b": c["b"].astype(int)}, both(ONE))


def test_associative_scan() -> None:
    """What the function makes two of is two in its arguments and in the result."""
    combine = lambda p, q: {"a": p["a"] * q["a"], "b": q["a"] * p["b"] + q["b"]}  # noqa: E731  # short
    row = ROW + 1
    how: Any
    for how in ({}, {"reverse": True}):
        found = pj.associative_scan(combine, both(row), **how)
        assert alike(found, jax.lax.associative_scan(combine, both(row), **how))


# --- branches ---
BRANCHES: dict[str, tuple[Body, Body, int]] = {  # the last: how many of the first results are one
    "arrays": (both, lambda x: {"a": x, "b": x + 1}, 2),
    "the other way": (lambda x: {"a": x, "b": x + 1}, both, 2),
    "a third that both share": (
        lambda x: {"a": x, "b": x, "c": x},
        lambda x: (lambda y: {"a": y, "b": y, "c": x})(x * 2),
        2,
    ),
    "each shares others": (
        lambda x: (lambda y: {"a": y, "b": y, "c": x})(x * 2),
        lambda x: (lambda y: {"a": x, "b": y, "c": y})(x * 2),
        3,
    ),
    "numbers": (lambda x: both(x[1]), lambda x: {"a": 0.0, "b": 1.0}, 2),
    "lists": (
        lambda x: both([x]),
        lambda x: {"a": [x * 2], "b": [x * 3]},
        2,
    ),
    "as they are": (both, lambda x: both(x * 2), 1),
    "tuples": (lambda x: (x, x), lambda x: (x, x + 1), 2),
}


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("how", [lambda f: f, jax.jit, pj.jit])
def test_branches_share_what_all_share(name: str, how: Any) -> None:
    """Values are those of `jax.lax`; what isn't one in every result is two."""
    one, other, count = BRANCHES[name]
    for lax in (pj, jax.lax):
        results = [how(lambda p, lax=lax: lax.cond(p, one, other, ROW))(p) for p in (True, False)]
        if lax is pj:
            found = results
    assert alike(found, results)
    if how is not jax.jit:
        parts = found[0].values() if isinstance(found[0], dict) else found[0]
        assert len(set(map(id, parts))) == count


@pytest.mark.parametrize(("name", "count"), [("arrays", 4), ("as they are", 2), ("lists", 4)])
def test_branches_are_traced_again_only_where_something_came_apart(name: str, count: int) -> None:
    """Other branches are traced once; and a later call traces nothing."""
    traces = []

    def counted(f: Body) -> Body:
        def branch(x: Any) -> Any:
            traces.append(f)
            return f(x)

        return branch

    one, other = map(counted, BRANCHES[name][:2])
    for pred in (True, False, True):
        pj.cond(pred, one, other, ROW)
        assert len(traces) == count


def test_switch_of_three() -> None:
    """One object in all three results stays one."""
    branches: list[Body] = [
        lambda x: {"a": x, "b": x, "c": x},
        lambda x: {"a": x, "b": x, "c": x + 1},
        lambda x: (lambda y: {"a": y, "b": y, "c": y})(x * 2),
    ]
    for index in range(3):
        out = pj.switch(index, branches, ROW)
        assert out["a"] is out["b"]
        assert out["a"] is not out["c"]
        assert alike(out, jax.lax.switch(index, branches, ROW))


def test_branches_with_refs() -> None:
    """Refs of the operands come out as they are, whatever comes apart."""
    ref = jax.new_ref(ONE)
    held = [ref]
    one = lambda r: {"r": r, "s": r, "a": r[0][...], "b": ONE}  # noqa: E731 (it is short)
    other = lambda r: {"r": r, "s": [r[0]], "a": ONE, "b": ONE}  # noqa: E731 (it is short)
    out = pj.cond(False, one, other, held)
    assert out["r"][0] is ref
    assert out["s"][0] is ref
    assert out["r"] is not out["s"]


def test_derivatives_and_maps_of_branches() -> None:
    """Derivatives and maps are those of `jax.lax`."""
    one, other, _ = BRANCHES["each shares others"]

    def loss(lax: Any, x: Any) -> Any:
        out = lax.cond(x > 1, one, other, x)
        return out["a"] * out["b"] + out["c"]

    ours, wanted = functools.partial(loss, pj), functools.partial(loss, jax.lax)
    assert [float(pj.grad(ours)(x)) for x in ROW] == [float(jax.grad(wanted)(x)) for x in ROW]
    assert pj.vmap(ours)(ROW).tolist() == jax.vmap(wanted)(ROW).tolist()


def test_the_tie_that_a_branch_cuts() -> None:
    """The tie gives one `LostTieWarning`, though the branch is traced twice."""
    layer = Layer(ROW)
    with pytest.warns(pj.LostTieWarning) as caught:
        out = pj.cond(True, lambda net: net, untied, Net(layer, layer))
    assert len(caught) == 1
    assert out.first is not out.last
    assert out.last.w.tolist() == [0.0, 1.0, 2.0]


def test_results_that_differ_in_more_than_sharing() -> None:
    """Such results are a `TypeError` with the place; JAX's own for types."""
    tied: Body = lambda x: {"a": x, "b": x, "n": "one"}  # noqa: E731 (it is short)
    with pytest.raises(TypeError, match=r"result\['n'\]\n +first: +'one'\n +second: +'two'"):
        pj.cond(True, tied, lambda x: {"a": x, "b": x + 1, "n": "two"}, ROW)
    with pytest.raises(TypeError, match=r"\['b'\] has type"):
        pj.cond(True, tied, lambda x: {"a": x, "b": (x + 1).astype(int), "n": "one"}, ROW)


# --- programs of other libraries, in their form ---
def test_states_of_a_function_in_a_loop() -> None:
    """The state that the function changes goes along in the carry, as in haiku's loops."""

    def stateful(lax: Any, zero: Any) -> Any:
        state = {"module": {"count": zero, "mean": zero}}

        def body(_: Any, carry: Any) -> Any:
            x, inside = carry
            count = inside["module"]["count"] + 1
            return x + count, {"module": {**inside["module"], "count": count}}

        return lax.fori_loop(0, 4, body, (zero, state))

    assert alike(stateful(pj, ONE * 0), stateful(jax.lax, ONE * 0))


def test_variables_that_a_loop_carries() -> None:
    """Collections of variables are filled from one initial array, as in linen's `while_loop`."""
    zero = jnp.int32(0)

    def run(lax: Any) -> Any:
        variables = {"state": {"acc": zero, "other": zero}, "params": {"w": ROW}}

        def body(carry: Any) -> Any:
            inside, x = carry
            acc = inside["state"]["acc"] + 1
            return inside | {"state": inside["state"] | {"acc": acc}}, x @ x * x

        return lax.while_loop(lambda c: c[0]["state"]["acc"] < 3, body, (variables, ROW / 3))

    assert alike(run(pj), run(jax.lax))


def test_a_step_that_is_accepted_or_not() -> None:
    """A branch gives the old state, whose parts are one, or a new one, as in optimistix' `cond`."""

    def run(lax: Any, accept: bool) -> Any:
        state = {"y": ROW, "best": ROW, "diff": jnp.zeros(3)}
        new = lambda s: s | {"y": s["y"] + 1, "diff": s["y"]}  # noqa: E731 (it is short)
        return lax.cond(accept, new, lambda s: s, state)

    for accept in (True, False):
        assert alike(run(pj, accept), run(jax.lax, accept))


def test_an_environment_that_is_reset_by_itself() -> None:
    """`info` holds the first state, whose arrays are those of the state, as in brax."""

    def rollout(lax: Any, state: Any) -> Any:
        return lax.scan(lambda s, _: (reset(s), s["obs"]), state, None, 6)

    for wrap in (lambda f: f, jax.jit):
        wanted = wrap(functools.partial(rollout, jax.lax))(start())
        assert alike(pj.jit(functools.partial(rollout, pj))(start()), wanted)
        assert alike(rollout(pj, start()), wanted)


tied = tied_under("a", "b", lambda value=1.0: jnp.float32(value), name="net")


def double(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    return pydag.dag_map(lambda x: x if isinstance(x, str) else 2 * x, tree)


def assert_tied(tree: Any, value: float) -> None:
    """Asserts that the tree is as `tied`, with another number."""
    assert tree["a"] is tree["b"]
    assert (float(tree["a"]), tree["name"]) == (value, "net")


@strict
def test_scan() -> None:
    """Carry and slices are shared inside as outside; what is stacked is shared as in the body."""

    def body(carry: Any, x: Any) -> Any:
        assert carry["a"] is carry["b"]
        assert x["u"] is x["v"][0]
        assert x["kind"] == "slice"
        seen = carry["a"] + x["u"]
        return double(carry), {"s": seen, "t": seen, "kind": x["kind"]}

    u = jnp.arange(3.0)
    carry, ys = pj.scan(body, tied(), {"u": u, "v": [u], "kind": "slice"})
    assert_tied(carry, 8.0)
    assert ys["s"] is ys["t"]
    assert (ys["s"].tolist(), ys["kind"]) == ([1.0, 3.0, 6.0], "slice")


def loops(body: Any, init: Any) -> list[Any]:
    """Calls of every loop with one body."""
    return [
        lambda: pj.scan(lambda c, _: (body(c), None), init, length=2),
        lambda: pj.while_loop(lambda c: True, body, init),
        lambda: pj.fori_loop(0, 2, lambda _, c: body(c), init),
    ]


class Counted(pj.Module):
    """A module with a number."""

    def __init__(self) -> None:
        self.w, self.n = jnp.float32(1.0), 1


@strict
@pytest.mark.parametrize("loop", [0, 1, 2], ids=["scan", "while_loop", "fori_loop"])
def test_a_body_that_changes_structure(loop: int) -> None:
    """`TypeError` is raised for other keys, static leaves, or an array for one, as in JAX."""
    for body, text in (
        (lambda c: {"w": c["w"]}, "must be structured alike"),
        (lambda c: [c], "must be structured alike"),
        (lambda c: {"w": [c["w"]], "name": "net"}, "must be structured alike"),
        (lambda c: {"w": c["w"], "name": "other"}, r"carry\['name'\] is 'net'\n.*: it is 'other'"),
        (lambda c: {"w": c["w"], "name": 1.0}, r"carry\['name'\] is 'net'\n.*: it is an array"),
    ):
        with pytest.raises(TypeError, match=text):
            loops(body, {"w": jnp.float32(1.0), "name": "net"})[loop]()
    with pytest.raises(TypeError, match=r"carry"):  # JAX's own, about the type of an array
        loops(lambda c: c * 0.5, jnp.int32(1))[loop]()

    def count(c: Any) -> Any:
        c.n += 1
        return c

    with pytest.raises(TypeError, match=r"carry\.n is 1\n  after it: it is 2\n  Make it an array"):
        loops(count, Counted())[loop]()


def doubled(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    assert tree["a"] is tree["b"]
    return pydag.dag_map(lambda x: x if isinstance(x, str) else 2 * x, tree)


tied_row = tied_under("a", "b", lambda: jnp.arange(4.0), name="net")


def add(x: Any, y: Any) -> Any:
    """The sum of two trees, shared as they are."""
    assert x["a"] is x["b"]
    assert y["a"] is y["b"]
    return pydag.dag_map(lambda p, q: p if isinstance(p, str) else p + q, x, y)


@strict
def test_associative_scan_keeps_sharing() -> None:
    """Both arguments of the function, and the result, are shared as the elements are."""
    out = pj.associative_scan(add, tied_row())
    assert out["a"] is out["b"]
    assert (out["a"].tolist(), out["name"]) == ([0.0, 1.0, 3.0, 6.0], "net")
    out = pj.associative_scan(add, tied_row(), reverse=True)
    assert out["a"].tolist() == [6.0, 6.0, 5.0, 3.0]
    w = jnp.ones((2, 3))
    rows = pj.associative_scan(lambda x, y: [x[0] + y[0]] * 2, [w, w], axis=1)
    assert rows[0].tolist() == [[1.0, 2.0, 3.0]] * 2


@strict
def test_branches_that_differ_are_traced_once() -> None:
    """Finding in what their results differ needs no second trace, nor does raising again."""
    traced: list[str] = []

    def first(tree: Any) -> Any:
        traced.append("first")
        return tree

    def second(tree: Any) -> Any:
        traced.append("second")
        return [tree]

    for _ in range(2):
        with pytest.raises(
            TypeError, match=r"first: branches\[0\], first at [\s\S]*same structure"
        ):
            pj.switch(jnp.int32(1), [first, second], tied())
    assert traced == ["first", "second"]


@strict
def test_map() -> None:
    """The function sees slices that are shared as the whole is."""

    def f(tree: Any) -> Any:
        assert tree["a"] is tree["b"]
        assert tree["a"].shape == ()
        out = tree["a"] * tree["b"]
        return {"x": out, "y": out, "name": tree["name"]}

    for batch_size in (None, 2, 3):
        out = pj.map(f, tied_row(), batch_size=batch_size)
        assert out["x"] is out["y"]
        assert (out["x"].tolist(), out["name"]) == ([0.0, 1.0, 4.0, 9.0], "net")
    assert pj.map(lambda x: x + 1, jnp.arange(2.0)).tolist() == [1.0, 2.0]
