# SPDX-License-Identifier: Apache-2.0
"""The order in which attributes were set: part of the key of a compilation, not of the program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from wrappers import WRAPPERS

import pydag
from pydag import jaxinterop
from pydag.jaxinterop import Dag

structure: Any = jax.tree.structure
A, B = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[0.0, 1.0], [1.0, 1.0]])
X = jnp.ones(2)
AB, BA = [6.0, 10.0], [7.0, 10.0]  # X @ A @ B and X @ B @ A


class Net(jaxinterop.Module):
    """Layers under any names, which are applied in the order in which they were set."""

    def __init__(self, **layers: Any) -> None:
        vars(self).update(layers)

    def __call__(self, x: Any) -> Any:
        for layer in vars(self).values():
            x = x @ layer
        return x


def one() -> Any:
    """A first."""
    return Net(first=A, second=B)


def two() -> Any:
    """The equal module, with B set first."""
    return Net(second=B, first=A)


def counted_places(net: Any) -> Any:
    """Each layer times its place among the attributes, from 1 on."""
    places = enumerate(vars(net).items())
    return Net(**{name: layer * (place + 1) for place, (name, layer) in places})


@pytest.mark.parametrize("around", ["", "jit"])
@pytest.mark.parametrize("name", WRAPPERS)
def test_in_every_wrapper(name: str, around: str) -> None:
    """Whatever was traced first: a function sees attributes as set, and returns them so."""
    wrapped = WRAPPERS[name](counted_places)
    if around:
        wrapped = jaxinterop.jit(wrapped)
    for order in ("ab", "ba", "ab", "ba"):
        out = wrapped(Net(**{key: jnp.ones((2, 2)) for key in order}))
        assert "".join(vars(out)) == order
        assert [float(vars(out)[key][0, 0]) for key in order] == [1.0, 2.0]


def test_one_trace_for_each_order() -> None:
    """A function is traced once for each order, and answers as without `jit`."""
    seen: list[list[str]] = []

    @jaxinterop.jit
    def f(net: Any, x: Any) -> Any:
        seen.append(list(vars(net)))
        return net(x)

    for given, expected in ((one, AB), (two, BA), (one, AB), (two, BA)):
        assert f(given(), X).tolist() == given()(X).tolist() == expected
    assert seen == [["first", "second"], ["second", "first"]]
    assert jaxinterop.tree.structure(one()) != jaxinterop.tree.structure(two())
    assert jaxinterop.tree.structure(two()) == jaxinterop.tree.structure(two())


def test_the_program_of_named_use_is_one() -> None:
    """A function that uses names is one program, whichever attribute was set first: as text."""

    def loss(net: Any, x: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ net.first) @ net.second)

    def step(net: Any, x: Any) -> Any:
        gradient = jaxinterop.grad(loss)(net, x)
        return jaxinterop.tree.map(lambda p, g: p - 0.1 * g, net, gradient)

    texts = {jaxinterop.jit(step).lower(given(), X).as_text() for given in (one, two)}
    assert len(texts) == 1
    leaves = [jaxinterop.tree.leaves(given()) for given in (one, two)]
    assert all(a is b for a, b in zip(*leaves, strict=True))


def test_dags_and_classes_that_jax_knows() -> None:
    """Plain `jax.jit` traces a `Dag` or an instance once for each order, and answers as without."""
    f = jax.jit(lambda dag: dag.tree(X))
    g = jax.jit(lambda net: net(X))
    for given, expected in ((one, AB), (two, BA), (one, AB)):
        assert f(Dag(given())).tolist() == g(given()).tolist() == expected
    assert structure(Dag(one())) != structure(Dag(two()))
    with pytest.raises(ValueError, match=r"in the order \['second', 'first'\]"):
        jax.tree.map(jnp.add, Dag(one()), Dag(two()))


def test_ahead_of_time() -> None:
    """A compiled function that is called with another order says which instance it is about."""
    compiled = jaxinterop.jit(lambda nets, x: nets[0](x)).lower([one()], X).compile()
    assert compiled([one()], X).tolist() == AB
    with pytest.raises(TypeError, match="Compile for these") as caught:
        compiled([two()], X)
    assert str(caught.value).splitlines()[1:4] == [
        "args[0][0]",
        "  first:  Net whose attributes were set in the order ['first', 'second']",
        "  second: Net whose attributes were set in the order ['second', 'first']",
    ]


def test_where_structures_have_to_be_alike_attributes_are_matched_by_name() -> None:
    """A carry and branches may set attributes in another order; the result has the first order."""

    def turned(net: Any) -> Any:
        return Net(**{name: vars(net)[name] for name in reversed(vars(net))})

    out = jaxinterop.fori_loop(0, 3, lambda _, net: turned(net), one())
    assert (list(vars(out)), out.first.tolist()) == (["first", "second"], A.tolist())
    out = jaxinterop.cond(True, lambda net: net, turned, one())
    assert (list(vars(out)), out.first.tolist()) == (["first", "second"], A.tolist())


def test_an_optimizer_takes_either_order() -> None:
    """A state that was made for one order serves a model and a gradient of the other, by name."""
    optimizer = jaxinterop.optimizer(optax.sgd(1.0, momentum=0.9))
    state = optimizer.init(one())
    gradient = Net(second=2 * B, first=A)
    updates, _ = optimizer.update(gradient, state, two())
    out = jaxinterop.apply_updates(two(), updates)
    assert out.first.tolist() == (A - A).tolist()
    assert out.second.tolist() == (B - 2 * B).tolist()
    assert list(vars(out)) == ["second", "first"]


def test_pydag_maps_by_name() -> None:
    """`pydag.jaxinterop.tree.map` and `dag_map` pair attributes by name."""
    out = jaxinterop.tree.map(lambda x, y: x - y, one(), two())
    assert not jnp.any(out.first)
    assert not jnp.any(out.second)
    assert not jnp.any(pydag.dag_map(jnp.subtract, two(), one()).first)
