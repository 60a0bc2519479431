# SPDX-License-Identifier: Apache-2.0
"""Refs and derivatives: passed over unless `wrt=` selects them."""

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


def test_a_gradient_has_none_there() -> None:
    """A ref in what is differentiated by has None in the gradient."""
    ref, model, x = given()
    gradient = pj.grad(lambda m: plumbing(m["x"], m["m"])[0])({"x": x, "m": model})
    assert gradient == {"x": {"w": 6.0}, "m": {"a": None, "b": None}}
    assert float(ref[...]) == 1.0


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


def test_jacobian() -> None:
    """`jacrev` passes refs over, and hands on an aux."""
    ref, model, x = given()
    rows, out = pj.jacrev(lambda x, m: (plumbing(x, m)[0][None], m), has_aux=True)(x, model)
    assert rows["w"].tolist() == [6.0]
    assert out["a"] is ref
    assert float(ref[...]) == 1.0


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


def test_wrt_by_class_and_jacobian() -> None:
    """Refs may be selected by their class, beside arrays that are not."""
    ref, x = jax.new_ref(jnp.float32(3.0)), jnp.float32(2.0)
    gradient = pj.grad(lambda m: m["r"][...] * m["x"], wrt=jax.Ref)({"r": ref, "x": x})
    assert gradient == {"r": 2.0, "x": None}
    rows = pj.jacrev(lambda m: m["r"][...] * m["x"][None], wrt=jax.Ref)({"r": ref, "x": x})
    assert rows["r"].tolist() == [2.0]
    assert rows["x"] is None


def test_refs_alone() -> None:
    """Nothing but refs, and none selected, is an error that says what to do."""
    _, model, _ = given()
    with pytest.raises(TypeError, match=r"refs alone.*\n.*wrt="):
        pj.grad(lambda m: m["a"][...])(model)


def test_stop_gradient_is_the_cure() -> None:
    """So a statistic of activations is kept."""
    ref, model, x = given()

    def loss(x: Any, m: Any) -> Any:
        m["a"][...] = jax.lax.stop_gradient(x["w"])
        return x["w"] ** 2

    for f in (pj.grad(loss), pj.jit(pj.grad(loss)), pj.grad(pj.checkpoint(loss))):
        assert float(f(x, model)["w"]) == 6.0
        assert float(ref[...]) == 3.0


# --- rules that write on the way back ---


def stash(custom: Any = pj.custom_vjp) -> Any:
    """The identity, which puts the cotangent that it meets into a ref."""

    def backward(ref: Any, cotangent: Any) -> Any:
        ref[...] = ref[...] + cotangent
        return None, cotangent

    function = custom(lambda ref, x: x)
    function.defvjp(lambda ref, x: (x, ref), backward)
    return function


@pytest.mark.parametrize("how", ["grad", "jit", "vjp", "closed over", "jit, closed over"])
def test_a_rule_that_writes_on_its_way_back(how: str) -> None:
    """What `bwd` of `custom_vjp` writes reaches the caller, once for each use of the function."""
    kept, ref = stash(), jax.new_ref(jnp.float32(0.0))

    def f(x: Any, ref: Any) -> Any:
        return 3.0 * kept(ref, 2.0 * kept(ref, x))

    runs: dict[str, Any] = {
        "grad": lambda: pj.grad(f)(1.0, ref),
        "jit": lambda: pj.jit(pj.grad(f))(1.0, ref),
        "vjp": lambda: pj.vjp(f, 1.0, ref)[1](1.0)[0],
        "closed over": lambda: pj.grad(lambda x: f(x, ref))(1.0),
        "jit, closed over": lambda: pj.jit(pj.grad(lambda x: f(x, ref)))(1.0),
    }
    assert float(runs[how]()) == 6.0
    assert float(ref[...]) == 3.0 + 6.0


STAGED: dict[str, Any] = {
    "jit": pj.jit,
    "checkpoint": pj.checkpoint,
    "checkpoint, closed over": lambda f: lambda x, ref: pj.checkpoint(lambda x: f(x, ref))(x),
    "cond": lambda f: lambda x, ref: pj.cond(x > 0, f, lambda x, ref: x, x, ref),
    "cond, closed over": lambda f: (
        lambda x, ref: pj.cond(x > 0, lambda x: f(x, ref), lambda x: x, x)
    ),
    "switch": lambda f: lambda x, ref: pj.switch(1, [lambda x, ref: x, f], x, ref),
    "scan": lambda f: lambda x, ref: pj.scan(lambda c, _: (f(c, ref), None), x, None, length=1)[0],
    "fori_loop": lambda f: lambda x, ref: pj.fori_loop(0, 1, lambda i, c: f(c, ref), x),
    "map": lambda f: lambda x, ref: pj.map(lambda x: f(x, ref), x[None])[0],
    "a loop in a checkpoint": lambda f: pj.checkpoint(
        lambda x, ref: pj.fori_loop(0, 1, lambda i, c: f(c, ref), x)
    ),
}
BY_JAX = jax.__version_info__ >= (0, 12)  # older ones transpose no branches that have refs
DERIVED: dict[str, Any] = {
    "grad": pj.grad,
    "jit of grad": lambda f: pj.jit(pj.grad(f)),
    "jit of value_and_grad": lambda f: lambda *args: pj.jit(pj.value_and_grad(f))(*args)[1],
    "JAX's jit": lambda f: jax.jit(pj.grad(f)),
    "grad of jit": lambda f: pj.grad(pj.jit(f)),
}


@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("name", STAGED)
@pytest.mark.parametrize("custom", ["pydag", "JAX"])
def test_a_rule_that_writes_inside_of_what_is_staged(custom: str, name: str, derived: str) -> None:
    """The cotangent is put into the caller's ref as by JAX's own wrappers, once."""
    if ("cond" in name or name == "switch") and not BY_JAX:
        pytest.skip("this JAX differentiates no branches with refs")
    kept, ref = stash(jax.custom_vjp if custom == "JAX" else pj.custom_vjp), jax.new_ref(0.0)

    def f(x: Any, ref: Any) -> Any:
        return 3.0 * kept(ref, 2.0 * x)

    staged = STAGED[name](f)
    assert float(DERIVED[derived](staged)(jnp.float32(1.0), ref)) == 6.0
    assert float(ref[...]) == 3.0
    assert float(staged(jnp.float32(1.0), ref)) == 6.0
    assert float(ref[...]) == 3.0


def test_rules_that_close_over_refs() -> None:
    """A function with refs among its arguments, and its rules, may close over others."""
    scale, seen, weight = jax.new_ref(2.0), jax.new_ref(0.0), jax.new_ref(3.0)
    f = pj.custom_vjp(lambda w, x: w[...] * x * scale[...])

    def backward(saved: Any, g: Any) -> Any:
        add_to(seen, 1.0)
        return 10.0 * g * saved[1], 100.0 * g * saved[0]

    f.defvjp(lambda w, x: (f(w, x), (w[...], x)), backward)
    assert float(f(weight, 5.0)) == 30.0
    assert float(pj.grad(lambda x: f(weight, x))(5.0)) == 300.0
    assert float(seen[...]) == 1.0
