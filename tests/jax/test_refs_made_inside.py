# SPDX-License-Identifier: Apache-2.0
"""Refs that a function makes, and that the body of a loop, a branch or a checkpoint closes over.

Under a derivative or a map such a ref is a tracer, and what stands behind it is another ref.
"""

from collections.abc import Callable
from typing import Any

import pytest
from ref_writes import jax, jnp

from pydag import jaxinterop as pj


def square(ref: Any) -> Any:
    ref[...] = jnp.sin(ref[...]) * ref[...]


SQUARED: dict[str, Callable[[Any], Any]] = {
    "scan": lambda r: pj.scan(lambda c, _: (square(r), (c, None))[1], 0, length=1),
    "fori_loop": lambda r: pj.fori_loop(0, 1, lambda i, c: (square(r), c)[1], 0),
    "cond": lambda r: pj.cond(r[...] > 0, lambda: square(r), lambda: None),
    "map": lambda r: pj.map(lambda i: (square(r), i)[1], jnp.arange(1)),
    "in a loop in a loop": lambda r: pj.scan(
        lambda c, _: (c, pj.fori_loop(0, 1, lambda i, k: (square(r), k)[1], c)), 0, length=1
    ),
}


def squared(name: str, freezes: bool = False) -> Callable[[Any], Any]:
    """A function of a number that is `sin(x) * x`, by way of a ref."""

    def f(x: Any) -> Any:
        ref = jax.new_ref(x)
        SQUARED[name](ref)
        return jax.freeze(ref) if freezes else ref[...]

    return f


# The same function of an array, and what JAX makes of it.
VALUE, SLOPE = 2.0 * float(jnp.sin(2.0)), float(jnp.sin(2.0) + 2.0 * jnp.cos(2.0))

DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: pj.grad(f)(2.0),
    "grad of jit": lambda f: pj.grad(pj.jit(f))(2.0),
    "jit of grad": lambda f: pj.jit(pj.grad(f))(2.0),
    "vjp": lambda f: pj.vjp(f, 2.0)[1](1.0)[0],
    "jvp": lambda f: pj.jvp(f, (2.0,), (1.0,))[1],
    "linearize": lambda f: pj.linearize(f, 2.0)[1](1.0),
    "JAX's grad": lambda f: jax.grad(f)(2.0),
    "JAX's jvp": lambda f: jax.jvp(f, (2.0,), (1.0,))[1],
}


@pytest.mark.parametrize("how", DERIVATIVES)
@pytest.mark.parametrize("name", SQUARED)
def test_a_derivative_goes_through_the_ref(name: str, how: str) -> None:
    """The derivative is that of the same function of arrays."""
    assert float(DERIVATIVES[how](squared(name))) == pytest.approx(SLOPE)


@pytest.mark.parametrize("name", SQUARED)
def test_a_frozen_ref(name: str) -> None:
    """What `jax.freeze` gives afterwards is differentiated, too."""
    assert float(pj.grad(squared(name, True))(2.0)) == pytest.approx(SLOPE)


@pytest.mark.parametrize("vmap", [pj.vmap, jax.vmap])
@pytest.mark.parametrize("name", SQUARED)
def test_a_map_goes_through_the_ref(name: str, vmap: Any) -> None:
    """Under `vmap` each slice has a content of its own."""
    if name == "cond":
        pytest.skip("JAX maps no branches with effects by a mapped predicate")
    assert vmap(squared(name))(jnp.array([2.0, 0.0])).tolist() == pytest.approx([VALUE, 0.0])
    slopes = vmap(pj.grad(squared(name)))(jnp.array([2.0, 0.0])).tolist()
    assert slopes == pytest.approx([SLOPE, 0.0])


@pytest.mark.parametrize("name", SQUARED)
def test_weights_in_refs(name: str) -> None:
    """So is a ref that `wrt=` selects; the function writes into the caller's ref."""
    ref = jax.new_ref(2.0)

    def f(model: Any) -> Any:
        SQUARED[name](model["w"])
        return model["w"][...]

    assert float(pj.grad(f, wrt=jax.Ref)({"w": ref})["w"]) == pytest.approx(SLOPE)
    assert float(ref[...]) == pytest.approx(VALUE)


@pytest.mark.parametrize("how", DERIVATIVES)
@pytest.mark.parametrize("loop", ["scan", "fori_loop", "map"])
def test_an_accumulator(loop: str, how: str) -> None:
    """A sum that a loop adds up in a ref, which begins with zero, has the derivative of the sum."""

    def f(x: Any) -> Any:
        total = jax.new_ref(jnp.zeros(()))

        def add(i: Any) -> Any:
            total[...] += jnp.sin(x) * (1.0 + i)

        runs: dict[str, Callable[[], Any]] = {
            "scan": lambda: pj.scan(lambda c, i: (add(i), (c, None))[1], 0, jnp.arange(3.0)),
            "fori_loop": lambda: pj.fori_loop(0, 3, lambda i, c: (add(i), c)[1], 0),
            "map": lambda: pj.map(lambda i: (add(i), i)[1], jnp.arange(3.0)),
        }
        runs[loop]()
        return total[...]

    assert float(DERIVATIVES[how](f)) == pytest.approx(6.0 * float(jnp.cos(2.0)))
    doubled = pj.vmap(f)(jnp.array([2.0, 0.0])).tolist()
    assert doubled == pytest.approx([6.0 * float(jnp.sin(2.0)), 0.0])


# --- refs that can't be lent ---

PLAIN: dict[str, tuple[Callable[[Any], Any], float]] = {
    "scan": (lambda add: pj.scan(lambda c, _: (add(), (c, None))[1], 0.0, length=2), 2.0),
    "fori_loop": (lambda add: pj.fori_loop(0, 2, lambda i, c: (add(), c)[1], 0.0), 2.0),
    "while_loop": (lambda add: pj.while_loop(lambda c: c < 2, lambda c: (add(), c + 1)[1], 0), 2.0),
    "cond": (lambda add: pj.cond(jnp.array(True), add, lambda: None), 1.0),
    "switch": (lambda add: pj.switch(jnp.array(1), [lambda: None, add]), 1.0),
    "checkpoint": (lambda add: pj.checkpoint(add)(), 1.0),
    "map": (lambda add: pj.map(lambda i: (add(), i)[1], jnp.arange(2)), 2.0),
}


@pytest.mark.parametrize("options", [{"kind": "no_grad"}, {"memory_space": jax.memory.Space.Host}])
@pytest.mark.parametrize("name", PLAIN)
def test_a_ref_of_a_kind(name: str, options: dict[str, Any]) -> None:
    """A ref with a kind or a memory of its own is written in JAX's own way, beside others."""
    try:
        special, ordinary = jax.new_ref(1.0, **options), jax.new_ref(1.0)
    except NotImplementedError:
        pytest.skip("this JAX makes no such ref outside of `jit`")
    run, count = PLAIN[name]

    def add() -> Any:
        special[...] = special[...] + 1.0
        ordinary[...] = ordinary[...] + 2.0

    run(add)
    assert float(special[...]) == 1.0 + count
    assert float(ordinary[...]) == 1.0 + 2.0 * count
