# SPDX-License-Identifier: Apache-2.0
"""Refs and derivatives: passed over unless `wrt=` selects them; functions with rules."""

from collections.abc import Callable
from typing import Any

import pytest
from ref_writes import add_to, jax, jnp

from pydag import jaxinterop as pj


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
    """The derivative is by the content at the call, an array; a write reaches the caller."""
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
    """What the rule says about a ref is the derivative by its content, selected or made inside."""
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
    """As in JAX: the rule says nothing about what is written, whose derivative stays as it was."""
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
