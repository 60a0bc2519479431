# SPDX-License-Identifier: Apache-2.0
"""Refs whose contents are differentiated, as arguments of functions with rules of their own."""

from collections.abc import Callable
from typing import Any

import pytest
from ref_writes import jax, jnp

import pydag
from pydag import jaxinterop as pj


def backward() -> Any:
    """`w * x`, with a derivative that is ten times too large for `w`, a hundred times for `x`."""
    f = pj.custom_vjp(lambda m, x: m["w"][...] * x)
    f.defvjp(
        lambda m, x: (f(m, x), (m["w"][...], x)),
        lambda saved, g: ({"w": 10.0 * g * saved[1]}, 100.0 * g * saved[0]),
    )
    return f


def forward() -> Any:
    """The same by a rule forward."""
    f = pj.custom_jvp(lambda m, x: m["w"][...] * x)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (m, x), (along, dx) = primals, tangents
        return f(m, x), 10.0 * along["w"] * x + 100.0 * m["w"][...] * dx

    return f


INSIDE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "as it is": lambda f, m, x: f(m, x),
    "jit": lambda f, m, x: pj.jit(f)(m, x),
    "jit, closed over": lambda f, m, x: pj.jit(lambda x: f(m, x))(x),
    "scan": lambda f, m, x: pj.scan(lambda c, _: (c, f(m, c)), x, length=1)[1][0],
    "scan, carried": lambda f, m, x: pj.scan(lambda c, _: (c, f(*c)), (m, x), length=1)[1][0],
    "fori_loop": lambda f, m, x: pj.fori_loop(0, 1, lambda i, c: f(m, x), jnp.float32(0.0)),
    "cond": lambda f, m, x: pj.cond(x > 0, f, lambda m, x: x, m, x),
    "cond, closed over": lambda f, m, x: pj.cond(x > 0, lambda x: f(m, x), lambda x: x, x),
    "checkpoint": lambda f, m, x: pj.checkpoint(f)(m, x),
    "checkpoint, closed over": lambda f, m, x: pj.checkpoint(lambda x: f(m, x))(x),
    "map": lambda f, m, x: pj.map(lambda x: f(m, x), x[None])[0],
    "vmap": lambda f, m, x: pj.vmap(f, in_axes=(None, 0))(m, x[None])[0],
}


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("make", [backward, forward])
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


@pytest.mark.parametrize("grad", [jax.grad, pj.grad, lambda f: pj.jit(pj.grad(f))])
def test_jax_differentiates_a_compiled_function(grad: Any) -> None:
    """So where JAX differentiates what was compiled, or pydag does so again."""
    for make in (backward, forward):
        rule = make()
        f = pj.jit(lambda w, rule=rule: rule({"w": jax.new_ref(w)}, 3.0))
        assert float(grad(f)(2.0)) == 30.0


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
    g.defjvp(lambda p, t: (g(*p), 100.0 * t[0] + 1000.0 * t[1]))

    def loss(h: Any) -> Any:
        def loss(w: Any, x: Any) -> Any:
            ref = jax.new_ref(w)
            return h(ref, x) + 7.0 * ref[...]

        return loss

    for h in (f, g):
        for how in (lambda f: f, pj.jit):
            run = how(pj.value_and_grad(how(loss(h)), argnums=(0, 1)))
            value, (by_w, by_x) = run(jnp.float32(2.0), jnp.float32(3.0))
            assert (float(value), float(by_w), float(by_x)) == (51.0, 107.0, 1000.0)
    assert float(pj.jvp(loss(g), (2.0, 3.0), (1.0, 0.0))[1]) == 107.0


def test_reading_before_and_after() -> None:
    """A function that reads a ref leaves the derivative of what else reads it as it is."""
    f = backward()

    def loss(w: Any) -> Any:
        ref = jax.new_ref(w * w)
        return ref[...] + f({"w": ref}, 1.0) + 2.0 * ref[...]

    for how in (lambda f: f, pj.jit):
        assert float(how(pj.grad(loss))(2.0)) == 4.0 * (1.0 + 10.0 + 2.0)


def test_one_ref_at_several_places() -> None:
    """Within an argument it has one cotangent; those of several arguments are added up."""
    product = pj.custom_vjp(lambda m, r: m["a"][...] * m["b"][...] * r[...])
    parts: list[Any] = []
    product.defvjp(lambda m, r: (product(m, r), None), lambda _, g: (parts[0], parts[1]))

    def by(w: Any) -> Any:
        ref = jax.new_ref(w)
        return product({"a": ref, "b": ref}, ref)

    w = jnp.float32(2.0)
    one = jnp.float32(5.0)
    parts[:] = {"a": one, "b": one}, jnp.float32(7.0)
    assert float(pj.grad(by)(w)) == 12.0
    parts[:] = {"a": one, "b": jnp.float32(6.0)}, None
    with pytest.raises(pydag.SharingError, match=r"\['a'\] and tree\['b'\] are one object"):
        pj.grad(by)(w)


CONTENTS: dict[str, Any] = {"integers": jnp.arange(2), "a key": jax.random.key(0)}


@pytest.mark.parametrize("name", CONTENTS)
def test_contents_without_a_derivative(name: str) -> None:
    """Refs of other types go through; what a rule gives for them doesn't matter."""
    f = pj.custom_vjp(lambda ref, x: x * 2.0)
    f.defvjp(lambda ref, x: (f(ref, x), ref), lambda ref, g: (ref, g * 20.0))
    g = pj.custom_jvp(lambda ref, x: x * 2.0)
    seen: list[Any] = []

    @g.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        seen.append(tangents[0])
        return g(*primals), 20.0 * tangents[1]

    for h in (f, g):
        ref = jax.new_ref(CONTENTS[name])
        assert float(pj.grad(lambda x, ref, h=h: h(ref, x))(1.0, ref)) == 20.0
        assert float(pj.grad(lambda x, h=h: h(jax.new_ref(CONTENTS[name]), x))(1.0)) == 20.0
    assert seen == [None, None]


WRONG: dict[str, tuple[Any, str]] = {
    "the ref": (lambda saved: saved, "is the ref itself"),
    "another shape": (lambda saved: jnp.ones(3), r"float32\[\], but is .*3"),
    "text": (lambda saved: "no", "but is 'no'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_cotangent(name: str) -> None:
    """What can't be the cotangent of a ref is an error with the path."""
    give, says = WRONG[name]
    f = pj.custom_vjp(lambda m: m["w"][...] * m["x"])
    f.defvjp(lambda m: (f(m), m["w"]), lambda saved, g: ({"w": give(saved), "x": g},))
    with pytest.raises(TypeError, match=rf"cotangent\['w'\] in the cotangent for .*{says}"):
        pj.grad(lambda w: f({"w": jax.new_ref(w), "x": w}))(2.0)


def test_none_is_zero() -> None:
    """None stands for zero."""
    f = pj.custom_vjp(lambda ref, x: ref[...] * x)
    f.defvjp(lambda ref, x: (f(ref, x), ref[...]), lambda saved, g: (None, g * saved))
    gradient = pj.grad(lambda w, x: f(jax.new_ref(w), x), argnums=(0, 1))(2.0, 3.0)
    assert [float(g) for g in gradient] == [0.0, 2.0]


def test_a_model_of_refs_is_trained() -> None:
    """Weights in refs learn behind a function with rules, by the optimizer's updates in place."""
    optax = pytest.importorskip("optax")
    model = {"w": jax.new_ref(2.0)}
    tx, f = pj.optimizer(optax.sgd(0.1), wrt=jax.Ref), backward()
    state = tx.init(model)

    @pj.jit
    def step(model: Any, state: Any) -> Any:
        gradient = pj.grad(lambda m: f(m, 3.0), wrt=jax.Ref)(model)
        updates, state = tx.update(gradient, state, model)
        pj.apply_updates(model, updates)
        return state

    for _ in range(2):
        state = step(model, state)
    assert float(model["w"][...]) == pytest.approx(2.0 - 2 * 0.1 * 30.0)


@pytest.mark.parametrize("wrap", [lambda f: f, pj.jit])
@pytest.mark.parametrize("derivative", [pj.grad, pj.value_and_grad])
@pytest.mark.parametrize("staged", [lambda f: f, pj.checkpoint])
def test_a_plain_rule_whose_ref_a_loop_carries(wrap: Any, derivative: Any, staged: Any) -> None:
    """A rule of JAX's own that writes into such a ref is out of reach: an error with its path."""
    stash: Any = jax.custom_vjp(lambda ref, x: x)

    def backward(ref: Any, cotangent: Any) -> Any:
        ref[...] = cotangent
        return None, cotangent

    stash.defvjp(lambda ref, x: (x, ref), backward)

    def loss(x: Any, ref: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return (jnp.sin(stash(carry[1], carry[0])), carry[1]), None

        return pj.scan(body, (x, ref), None, length=2)[0][0]

    ref = jax.new_ref(0.0)
    with pytest.raises(ValueError, match=r"rule backward(.|\n)*args\[1\]") as caught:
        wrap(derivative(staged(loss)))(1.0, ref)
    assert type(caught.value).__name__ == "OutOfReachError"
    assert float(ref[...]) == 0.0
