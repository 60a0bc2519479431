"""`jaxinterop.grad` and `value_and_grad`: one gradient for one object, wherever it stands."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import number, tied_under

import pydag
from pydag import jaxinterop

tied = tied_under("a", "b", number)


def product(params: Any) -> Any:
    """The product of the two places."""
    return params["a"] * params["b"]


def test_the_gradient_is_the_sum_over_the_uses() -> None:
    """3 from one use and 3 from the other make 6, one object at both places."""
    gradient = jaxinterop.grad(product)(tied())
    assert gradient == {"a": 6.0, "b": 6.0}
    assert gradient["a"] is gradient["b"]


def test_value_and_gradient() -> None:
    """The value comes first."""
    value, gradient = jaxinterop.value_and_grad(product)(tied())
    assert (value, gradient["a"]) == (9.0, 6.0)


def test_the_order_of_argnums() -> None:
    """Gradients come in the order of `argnums`; negative numbers count from the end."""

    def f(x: Any, y: Any, z: Any) -> Any:
        return x * 2 + y * 3 + z * 5

    values = (1.0, 1.0, 1.0)
    assert jaxinterop.grad(f, (2, 0))(*values) == (5.0, 2.0)
    assert jaxinterop.grad(f, -2)(*values) == 3.0
    assert jaxinterop.grad(f, [1])(*values) == (3.0,)
    with pytest.raises(TypeError, match="called with 3 positional arguments"):
        jaxinterop.grad(f, 3)(*values)


def test_keyword_arguments_share_the_table() -> None:
    """They aren't differentiated, but hold the objects that other arguments hold."""

    def f(p: Any, *, scale: Any, same: Any) -> Any:
        assert scale[0] is same
        return p["a"] * scale[0] + same

    scale = jnp.float32(2.0)
    assert jaxinterop.grad(f)(tied(), scale=[scale], same=scale) == {"a": 2.0, "b": 2.0}


def test_differentiated_leaves_between_others() -> None:
    """The leaves come back to their places."""

    def f(x: Any, p: Any, y: Any) -> Any:
        return x[0] * p["a"] + y[0] * p["b"]

    assert jaxinterop.grad(f, 1)([10.0], {"a": 1.0, "b": 1.0}, [100.0]) == {"a": 10.0, "b": 100.0}


def test_none_stands_for_static_leaves() -> None:
    """So a map over the gradient sees derivatives alone; one over the model skips None."""

    def f(model: Any) -> Any:
        return model["activation"](model["w"] * model["v"])

    w = jnp.float32(2.0)
    model = {"w": w, "v": w, "activation": jnp.square, "name": "net", "no": None}
    gradient = jaxinterop.grad(f)(model)
    assert [gradient[name] for name in ("activation", "name", "no")] == [None] * 3
    assert gradient["w"] is gradient["v"]

    def update(x: Any, g: Any) -> Any:
        return x if g is None else x - g

    updated = pydag.dag_map(update, model, gradient)
    assert updated["w"] is updated["v"]
    assert float(updated["w"]) == 2.0 - 32.0


def test_aux() -> None:
    """What the function passes on comes back, tied to the value and in itself."""

    def f(params: Any) -> Any:
        value = product(params)
        return value, {"value": value, "params": params, "name": "aux"}

    (value, aux), gradient = jaxinterop.value_and_grad(f, has_aux=True)(tied())
    assert aux["value"] is value
    assert aux["params"]["a"] is aux["params"]["b"]
    assert (float(value), float(aux["params"]["a"]), aux["name"]) == (9.0, 3.0, "aux")
    assert gradient["a"] == 6.0
    gradient, aux = jaxinterop.grad(f, has_aux=True)(tied())
    assert (gradient["b"], float(aux["value"])) == (6.0, 9.0)
    with pytest.raises(TypeError, match="pair"):
        jaxinterop.grad(product, has_aux=True)(tied())


def test_what_jax_refuses() -> None:
    """Integers, and results that aren't scalars, are errors of JAX's types."""
    with pytest.raises(TypeError, match=r"args\[0\]: there are int; .*complex-valued inputs"):
        jaxinterop.grad(lambda p: p["w"] * 1.0)({"name": "net", "w": 2})
    with pytest.raises(TypeError, match="scalar-output"):
        jaxinterop.grad(lambda x: x)(jnp.ones(2))
    with pytest.raises(TypeError, match="scalar-output"):
        jaxinterop.grad(lambda x: {"loss": x})(1.0)
    with pytest.raises(TypeError):
        jaxinterop.grad(lambda x: "text")(1.0)


def test_integers_and_complex_numbers_on_demand() -> None:
    """`allow_int` and `holomorphic` mean what they do in JAX."""
    gradient = jaxinterop.grad(lambda p: p[0] * 2.0, allow_int=True)([1.0, 2])
    assert gradient[0] == 2.0
    assert gradient[1].dtype == jax.dtypes.float0
    z = jnp.complex64(1 + 2j)
    assert jaxinterop.grad(lambda p: p[0] * p[1], holomorphic=True)([z, z]) == [2 + 4j, 2 + 4j]


def test_a_constant_function() -> None:
    """Value and gradient are of the types that JAX gives."""
    value, gradient = jaxinterop.value_and_grad(lambda p: 3.0)([1.0])
    expected, expected_gradient = jax.value_and_grad(lambda p: 3.0)([1.0])
    assert (value, type(value)) == (expected, type(expected))
    assert gradient == expected_gradient


def test_python_numbers_and_numpy_arrays() -> None:
    """Numbers are values: equal ones at two places have a gradient each."""
    assert jaxinterop.grad(product)({"a": 3.0, "b": 3.0}) == {"a": 3.0, "b": 3.0}
    w = np.ones(2, np.float32)
    gradient = jaxinterop.grad(lambda p: jnp.sum(p[0] * p[1]))([w, w])
    assert gradient[0] is gradient[1]
    assert gradient[0].tolist() == [2.0, 2.0]


def test_a_namespace() -> None:
    """Classes of a namespace are nodes where `grad` is given the namespace."""

    class Box:
        def __init__(self, content: Any) -> None:
            self.content = content

    pydag.register_fields(Box, namespace="grad-boxes")
    gradient = jaxinterop.grad(lambda box: box.content**2, namespace="grad-boxes")(Box(3.0))
    assert type(gradient) is Box
    assert gradient.content == 6.0
