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
    """JAX's `with_refs` adds the gradient of a shared weight to one ref, which two modules hold."""
    weight = jnp.array([1.0, 2.0])
    model = [Holder(weight), Holder(weight)]
    sums, both = pair([0.0, 0.0])

    def loss(model: Any, part: Any) -> Any:
        return (model[0].ref * model[1].ref * part).sum()

    @pj.jit
    def accumulate(both: Any, parts: Any) -> None:
        def add(_: Any, part: Any) -> Any:
            pullback: Any = jax.vjp(lambda dag: loss(dag.tree, part), pj.Dag(model))[1]
            pullback.with_refs(pj.Dag(both))(1.0)
            return None, None

        pj.scan(add, None, parts)

    accumulate(both, jnp.array([[1.0, 0.0], [3.0, 5.0]]))
    assert sums[...].tolist() == [8.0, 20.0]  # of w * w * part, 2 * w * part


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
