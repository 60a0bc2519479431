# SPDX-License-Identifier: Apache-2.0
"""Whatever has a shape and a dtype stands for an array where arrays are described, as in JAX."""

import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
import pydag.jaxinterop as pj


class Duck:
    shape, dtype = (3,), np.dtype("float32")


X = jnp.arange(3.0)
STRUCT: Any = jax.ShapeDtypeStruct
DESCRIPTIONS = {
    "type": jax.typeof(X),
    "struct": STRUCT((3,), "float32"),
    "duck": Duck(),
    "namespace": types.SimpleNamespace(shape=(3,), dtype="float32"),
    "array": X,
}


@pytest.mark.parametrize("name", sorted(DESCRIPTIONS.keys() - {"type"}))
def test_arguments(name: str) -> None:
    """One that stands at two places is one array, inside and in the result."""
    what = DESCRIPTIONS[name]

    def f(p: Any) -> Any:
        assert p["a"] is p["b"]
        return [p["a"] * 2, p["a"], p["b"]]

    tree = {"a": what, "b": what}
    for shapes in (
        pj.eval_shape(f, tree),
        pj.jit(f).lower(tree).out_info,
        pj.jit(f).eval_shape(tree),
    ):
        assert [(s.shape, s.dtype) for s in shapes] == [((3,), "float32")] * 3
        assert shapes[1] is shapes[2]
    assert len(pj.make_jaxpr(f)(tree).jaxpr.invars) == 1


@pytest.mark.parametrize("kind", [jax.typeof, lambda x: jax.typeof(jax.new_ref(x))])
def test_types_of_jax_are_values(kind: Any) -> None:
    """JAX keeps one type for all arrays that have it: two places of it are two leaves."""
    types = {"a": kind(jnp.ones(3)), "b": kind(jnp.zeros(3))}
    for tree in (types, {"a": types["a"], "b": types["a"]}):
        assert len(pydag.dag_leaves(tree)) == 2
        assert pydag.dag_structure(tree).num_shared == 0


def test_arguments_described_by_types_of_jax() -> None:
    """What was traced or compiled for types takes the arrays that have them."""
    params = {"a": jnp.ones(3), "b": jnp.zeros(3)}
    shapes = jax.tree.map(jax.typeof, params)

    def f(p: Any) -> Any:
        return {"a": p["a"] * 2, "b": p["b"] + 1}

    assert len(pj.make_jaxpr(f)(shapes).jaxpr.invars) == 2
    out = pj.jit(f).lower(shapes).compile()(params)
    assert (out["a"].tolist(), out["b"].tolist()) == ([2, 2, 2], [1, 1, 1])
    same = pj.eval_shape(lambda p: p, shapes)
    assert same["a"] is not same["b"]


def test_other_constants_stay() -> None:
    """Text, classes and what has a shape of another kind are what they were."""
    other = types.SimpleNamespace(shape="round", dtype="wood")
    assert pj.eval_shape(lambda t: t, [np.float32, "text", 1.5])[:2] == [np.float32, "text"]
    with pytest.raises(TypeError, match=r"args\[0\]\[0\] is an object of types\.SimpleNamespace"):
        pj.eval_shape(lambda t: t, [other])


def test_static_arguments_are_not_described() -> None:
    """What is static reaches the function as it is."""
    duck = Duck()
    jaxpr = pj.make_jaxpr(lambda x, d: x * len(d.shape), static_argnums=1)(X, duck)
    assert len(jaxpr.jaxpr.invars) == 1
    lowered = pj.jit(lambda x, d: x if type(d) is Duck else d, static_argnums=1).lower(X, duck)
    assert lowered.out_info.shape == (3,)


def test_scalars_of_numpy() -> None:
    """In a module they are configuration, elsewhere data; arrays without dimensions are arrays."""

    @pydag.register_module
    class Attention:
        def __init__(self) -> None:
            self.w, self.scale, self.size = jnp.eye(2), 1 / np.sqrt(4.0), np.prod((2, 2))
            self.on, self.data = np.bool_(True), np.array(2.0, "float32")

    @pj.jit
    def f(m: Any, t: Any) -> Any:
        assert (type(m.scale), type(m.size), bool(m.on)) == (np.float64, np.int64, True)
        assert all(isinstance(x, jax.core.Tracer) for x in (m.data, t[0]))
        return m.w.reshape(m.size) * m.scale

    model = Attention()
    assert f(model, [np.float64(1.0)]).tolist() == [0.5, 0.0, 0.0, 0.5]
    gradient = pj.grad(lambda m: jnp.sum(m.w * m.scale * m.data))(model)
    assert (gradient.scale, gradient.size, bool(gradient.on)) == (0.5, 4, True)
    assert float(gradient.data) == 1.0
