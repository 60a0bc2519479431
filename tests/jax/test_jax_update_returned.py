# SPDX-License-Identifier: Apache-2.0
"""An object of an updated argument that a function returns is the caller's own object."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest

import pydag
from pydag import jaxinterop as pj


class Layer(pj.Module):
    def __init__(self) -> None:
        self.w = jnp.ones(2)


class Model(pj.Module):
    def __init__(self) -> None:
        self.layers = [Layer(), Layer()]
        self.tied = self.layers[0]
        self.state = {"count": jnp.zeros(())}

    def __call__(self) -> Any:
        self.state["count"] = self.state["count"] + 1
        return self.layers[0].w.sum()


class Pair(NamedTuple):
    a: Any
    b: Any


def test_containers_and_modules_below_it() -> None:
    """So are the containers and modules below, wherever they stand in the result."""
    model = Model()

    @pj.jit(update_argnums=0)
    def parts(model: Model) -> Any:
        model()
        layer = model.layers[1]
        return Pair((model.tied, 2 * layer.w), {"s": [model.state], "l": layer}), model.layers

    for _ in range(3):
        pair, layers = parts(model)
        assert type(pair) is Pair
        assert pair.a[0] is model.layers[0]
        assert pair.a[1].tolist() == [2, 2]
        assert pair.b["s"][0] is model.state
        assert pair.b["l"] is model.layers[1]
        assert layers is model.layers
    assert float(model.state["count"]) == 3


def test_nothing_has_to_change() -> None:
    """A model that a function returned as it was is the caller's, too; without updates a copy."""
    model = Model()
    assert pj.jit(lambda m: m, update_argnums=0)(model) is model
    assert pj.jit(lambda m: m)(model) is not model


def wrapped(name: str) -> Any:
    def loss(model: Model) -> Any:
        return model(), (model, model.state)

    if name == "value_and_grad":
        return lambda m: pj.value_and_grad(loss, has_aux=True, update_argnums=0)(m)[0][1]
    if name == "grad":
        return lambda m: pj.grad(loss, has_aux=True, update_argnums=0)(m)[1]
    return lambda m: pj.checkpoint(loss, update_argnums=0)(m)[1]


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "checkpoint"])
@pytest.mark.parametrize("is_jitted", [False, True])
def test_other_wrappers(name: str, is_jitted: bool) -> None:
    """In an aux of a derivative, out of `checkpoint`, alone and inside of `jit`."""
    model, run = Model(), wrapped(name)

    def outer(model: Model) -> Any:
        returned, state = run(model)
        assert returned is model
        assert state is model.state
        return returned, state

    run_outer = pj.jit(outer, update_argnums=0) if is_jitted else outer
    for i in range(1, 3):
        assert run_outer(model)[0] is model
        assert float(model.state["count"]) == i


def test_a_class_is_built_of_arrays() -> None:
    """Around the caller's objects users' classes are built of them, not of placeholders."""
    seen = []

    class Other:
        def __init__(self, model: Model, x: Any) -> None:
            seen.append(type(model))
            self.model, self.x = model, x

    pydag.register_pydag_node(
        Other,
        lambda c: ((c.model, c.x), None),
        lambda _, children: Other(*children),
        namespace="returned",
    )
    model = Model()
    f = pj.jit(lambda m: Other(m, m()), update_argnums=0, namespace="returned")
    for _ in range(2):
        assert f(model).model is model
    assert set(seen) == {Model}


def test_nnx() -> None:
    """So with NNX, as from `nnx.jit`: the model, a Variable of it, an optimizer."""
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))

    @pj.jit(update_argnums=0)
    def run(m: Any) -> Any:
        m.kernel[...] = m.kernel[...] + 1
        return m, m.bias, m.kernel[...]

    for _ in range(3):
        found = run(model)
        assert found[0] is model
        assert found[1] is model.bias
        assert jax.numpy.array_equal(found[2], model.kernel[...])
