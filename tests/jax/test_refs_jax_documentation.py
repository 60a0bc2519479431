# SPDX-License-Identifier: Apache-2.0
"""What JAX's pages about refs show of one ref, with a ref that two modules share.

Each test has the subject of a section of JAX's documentation of mutable arrays.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from pydag import jaxinterop as pj
from pydag.jaxinterop.foreign import jax_private

marks: Any = getattr(jax, "ad", None)
needs_marks = pytest.mark.skipif(
    not hasattr(marks, "DontWant"), reason="this JAX has no jax.ad.DontWant"
)


class Holder(pj.Module):
    """A module that holds a ref."""

    def __init__(self, ref: Any) -> None:
        self.ref = ref


def pair(content: Any) -> tuple[Any, list[Holder]]:
    """A ref, and two modules that share it."""
    ref = jax.new_ref(jnp.asarray(content))
    return ref, [Holder(ref), Holder(ref)]


def test_doubling_under_a_derivative() -> None:
    """A ref of the differentiated value carries its derivative."""

    def twice(x: Any) -> Any:
        one = Holder(jax.new_ref(x))
        other = Holder(one.ref)
        one.ref[...] = other.ref[...] + one.ref[...]
        return other.ref[...]

    assert float(pj.grad(pj.jit(twice))(3.0)) == 2.0


def test_a_ref_is_no_array() -> None:
    """Arithmetic with a ref is an error, through a module as well."""
    _, both = pair(1.0)
    with pytest.raises(TypeError):
        pj.jit(lambda both: jnp.sin(both[0].ref))(both)


def test_indices() -> None:
    """Integers, tuples, slices and arrays of integers read and write."""
    ref, both = pair(jnp.arange(12.0).reshape(3, 4))

    @pj.jit
    def move(both: Any) -> Any:
        one, other = both
        one.ref[1] = other.ref[0]
        one.ref[2, 3] = other.ref[1, 2]
        one.ref[0, :3] = other.ref[:, 1]
        found = other.ref[jnp.array([0, 0, 1]), jnp.array([1, 2, 3])]
        one.ref[jnp.array([1, 2, 1]), jnp.array([0, 0, 1])] = found
        return found

    assert move(both).tolist() == [1.0, 9.0, 3.0]
    assert ref[...].tolist() == [
        [1.0, 1.0, 9.0, 3.0],
        [1.0, 3.0, 2.0, 3.0],
        [9.0, 9.0, 10.0, 2.0],
    ]


def test_distances_by_two_maps() -> None:
    """A map in a map fills a matrix."""
    ref, both = pair(jnp.zeros((3, 3)))

    def distance(x: Any, y: Any, both: Any) -> None:
        both[1].ref[...] = ((x - y) ** 2).sum()

    rows = jnp.arange(6.0).reshape(3, 2)
    pj.vmap(pj.vmap(distance, in_axes=(0, None, 0)), in_axes=(None, 0, 0))(rows, rows, both)
    assert ref[...].tolist() == [[0.0, 8.0, 32.0], [8.0, 0.0, 8.0], [32.0, 8.0, 0.0]]


def test_a_mapped_function_that_closes_over_a_ref() -> None:
    """A write that each instance would make to one place is JAX's error."""
    ref, both = pair(0.0)

    def write(x: Any) -> None:
        both[0].ref[...] = x

    with pytest.raises(Exception, match="vmapped value"):
        pj.vmap(write)(jnp.arange(3.0))
    assert float(ref[...]) == 0.0


def test_gradients_of_small_batches_are_added_in_place() -> None:
    """A loop adds the gradient of each part to one ref."""
    ref, both = pair(jnp.zeros(2))
    weights, parts = jnp.ones(2), jnp.arange(6.0).reshape(3, 2)

    def add(_: Any, part: Any) -> Any:
        value, gradient = pj.value_and_grad(lambda w: (w * part).sum())(weights)
        both[0].ref[...] += gradient
        return None, value

    _, losses = pj.jit(lambda parts: pj.scan(add, None, parts))(parts)
    assert losses.tolist() == [1.0, 5.0, 9.0]
    assert ref[...].tolist() == [6.0, 9.0]


@needs_marks
def test_gradients_are_added_where_they_are_made() -> None:
    """`with_refs` adds the gradient of a shared weight to one ref, which two modules hold."""
    weight = jnp.array([1.0, 2.0])
    model = [Holder(weight), Holder(weight)]
    sums, both = pair([0.0, 0.0])

    def loss(model: Any, part: Any) -> Any:
        return (model[0].ref * model[1].ref * part).sum()

    @pj.jit
    def accumulate(both: Any, parts: Any) -> None:
        def add(_: Any, part: Any) -> Any:
            _, pullback = pj.vjp(loss, model, part)
            pullback.with_refs(both, marks.DontWant())(1.0)
            return None, None

        pj.scan(add, None, parts)

    accumulate(both, jnp.array([[1.0, 0.0], [3.0, 5.0]]))
    assert sums[...].tolist() == [8.0, 20.0]  # of w * w * part, 2 * w * part


needs_refs_of_primals = pytest.mark.skipif(
    not jax_private.differentiates_refs, reason="this JAX doesn't differentiate by refs"
)


@needs_refs_of_primals
@pytest.mark.parametrize("wrap", [lambda f: f, pj.jit, jax.jit])
def test_differentiating_by_a_ref(wrap: Any) -> None:
    """The gradient by a ref that is an argument is added to another ref, as by JAX's `vjp`."""

    def square(ref: Any) -> Any:
        return ref[...] ** 2

    def writing(ref: Any, x: Any) -> Any:
        ref[...] = ref[...] * x
        return ref[...] * x

    def by_both(vjp: Any, ref: Any, x: Any, total: Any) -> Any:
        return vjp(writing, ref, x)[1].with_refs(total, marks.GradValue())(1.0)[1]

    ref, total = jax.new_ref(2.0), jax.new_ref(0.0)
    wrap(lambda ref, total: pj.vjp(square, ref)[1].with_refs(total)(1.0) and None)(ref, total)
    assert float(total[...]) == 4.0
    found = {}
    for vjp in (jax.vjp, pj.vjp):
        ref, total = jax.new_ref(2.0), jax.new_ref(1.0)
        by_x = wrap(lambda *args, vjp=vjp: by_both(vjp, *args))(ref, 3.0, total)
        found[vjp] = float(by_x), float(ref[...]), float(total[...])
    assert found[pj.vjp] == found[jax.vjp] == (14.0, 6.0, 12.0)


@needs_refs_of_primals
def test_a_gradient_by_a_ref_that_nobody_asks_for() -> None:
    """The cotangent of a ref is None, at all of its places, and the function's writes count."""
    ref, both = pair(2.0)

    def f(both: Any, x: Any) -> Any:
        both[0].ref[...] = both[1].ref[...] * x
        return both[1].ref[...] + x

    value, pullback = pj.vjp(f, both, 3.0)
    assert (float(value), float(ref[...])) == (9.0, 6.0)
    for _ in range(2):
        by_both, by_x = pullback(1.0)
        assert by_both[0].ref is None
        assert by_both[1].ref is None
        assert float(by_x) == 3.0
    total, totals = pair(0.0)
    assert float(pullback.with_refs(totals, marks.GradValue())(1.0)[1]) == 3.0
    assert float(total[...]) == 3.0


@needs_marks
def test_a_ref_to_which_nothing_would_be_added() -> None:
    """A ref for what isn't differentiated by is an error: nothing is dropped in silence."""
    total = jax.new_ref(0.0)
    _, pullback = pj.vjp(lambda p: p["w"] * p["n"], {"w": 2.0, "n": 3.0, "name": "net"})
    with pytest.raises(ValueError, match="nothing would be added"):
        pullback.with_refs({"w": None, "n": None, "name": total})


@needs_marks
def test_a_gradient_that_nobody_wants() -> None:
    """`DontWant` at a tied weight stands for both places, and its gradient isn't computed."""
    weight = jnp.float32(3.0)
    _, pullback = pj.vjp(lambda model, x: model[0].ref * model[1].ref * x,
                         [Holder(weight), Holder(weight)], jnp.float32(2.0))  # fmt: skip
    unwanted = marks.DontWant()
    model = [Holder(unwanted), Holder(unwanted)]
    gradient, by_x = pullback.with_refs(model, marks.GradValue())(1.0)
    assert float(by_x) == 9.0
    assert isinstance(gradient[0].ref, marks.DidntWant)
    text = str(jax.make_jaxpr(lambda: pullback.with_refs(model, None)(1.0)[1])())
    assert text.count(" mul ") < str(jax.make_jaxpr(lambda: pullback(1.0)[1])()).count(" mul ")


@pytest.mark.skipif(not hasattr(jax.ref, "freeze"), reason="this JAX has no freeze")
def test_the_end_of_a_ref() -> None:
    """`freeze` gives the last content of a ref that two modules inside of a function share."""

    def fill(x: Any) -> Any:
        _, both = pair([0.0, 0.0, 0.0])

        def body(i: Any) -> Any:
            both[0].ref[i] = x * i
            return None

        jax.lax.fori_loop(0, 3, lambda i, _: body(i), None)
        return jax.ref.freeze(both[1].ref)

    assert pj.jit(fill)(2.0).tolist() == [0.0, 2.0, 4.0]
    assert pj.jvp(fill, (2.0,), (1.0,))[1].tolist() == [0.0, 1.0, 2.0]
    assert pj.jacrev(fill)(2.0).tolist() == [0.0, 1.0, 2.0]
