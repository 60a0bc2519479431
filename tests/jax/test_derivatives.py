# SPDX-License-Identifier: Apache-2.0
"""What every derivative of `jaxinterop` claims: it is JAX's, a tied weight has one, they nest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_models import number, tied_under

import pydag
from pydag import jaxinterop
from pydag import jaxinterop as pj

ONE = jnp.float32(1.0)

# The derivative of a function that gives a number, by its arguments, as a module has it.
BY: dict[str, Callable[..., Any]] = {
    "grad": lambda m, f, *by: m.grad(f, argnums=(*range(len(by)),))(*by),
    "value_and_grad": lambda m, f, *by: m.value_and_grad(f, argnums=(*range(len(by)),))(*by)[1],
    "jacfwd": lambda m, f, *by: m.jacfwd(f, argnums=(*range(len(by)),))(*by),
    "jacrev": lambda m, f, *by: m.jacrev(f, argnums=(*range(len(by)),))(*by),
    "jacobian": lambda m, f, *by: m.jacobian(f, argnums=(*range(len(by)),))(*by),
    "vjp": lambda m, f, *by: m.vjp(f, *by)[1](ONE),
}
every = pytest.mark.parametrize("name", BY)


def square(p: Any) -> Any:
    """Cubic where both places are one."""
    return p["a"] ** 2 * p["b"]


@every
def test_untied_is_as_in_jax(name: str) -> None:
    """Where nothing is shared all is JAX's."""
    p, q = {"a": jnp.float32(2.0), "b": jnp.float32(5.0)}, [jnp.float32(3.0)]

    def f(p: Any, q: Any) -> Any:
        return square(p) * jnp.sin(q[0])

    assert BY[name](pj, f, p, q) == BY[name](jax, f, p, q)


@every
def test_an_array_in_two_arguments(name: str) -> None:
    """It has one derivative, the sum over its uses, which stands in both."""
    w = jnp.float32(3.0)
    p, q = BY[name](pj, lambda p, q: p["w"] * q[0] ** 2, {"w": w}, [w])
    assert p["w"] is q[0]
    assert float(p["w"]) == 27.0


@every
def test_in_each_other(name: str) -> None:
    """In `jit`, `vmap` and derivatives, pydag's and JAX's, a tied weight has one derivative."""

    def slope(w: Any) -> Any:
        (found,) = BY[name](pj, pj.jit(square), {"a": w, "b": w})
        assert found["a"] is found["b"]
        return found["a"]

    w = jnp.float32(2.0)
    for module in (pj, jax):
        m: Any = module
        assert float(m.jit(slope)(w)) == 12.0
        assert m.vmap(slope)(jnp.arange(3.0)).tolist() == [0.0, 3.0, 12.0]
        assert float(m.jit(m.grad(m.jit(slope)))(w)) == 12.0
        assert float(m.jvp(slope, (w,), (ONE,))[1]) == 12.0
        assert float(m.jacfwd(slope)(w)) == 12.0
        assert jax.vmap(m.linearize(slope, w)[1])(jnp.arange(3.0)).tolist() == [0.0, 12.0, 24.0]


@every
def test_an_argument_without_leaves(name: str) -> None:
    """It has a derivative of its own form."""
    assert BY[name](pj, lambda p: 2 * ONE, {"none": None}) == ({"none": None},)


tied = tied_under("a", "b", number, name="net")


def with_half(params: Any) -> Any:
    """The product of the two places, and its half, at three places."""
    assert params["a"] is params["b"]
    out = params["a"] * params["b"]
    return {"x": out, "y": [out], "z": out / 2, "name": params["name"]}


TWO = jnp.float32(2.0)
COTANGENT = {"x": ONE, "y": [ONE], "z": TWO, "name": None}
TANGENT = {"a": ONE, "b": ONE, "name": None}


def test_vjp() -> None:
    """The cotangent of a shared array is one, and the sum over its uses."""
    value, pullback = jaxinterop.vjp(with_half, tied())
    assert value["x"] is value["y"][0]
    assert float(value["x"]) == 9.0
    (cotangent,) = pullback(COTANGENT)
    assert cotangent["a"] is cotangent["b"]
    assert (float(cotangent["a"]), cotangent["name"]) == (12.0, None)


def test_jvp() -> None:
    """The tangent of the result has its form; None stands for static leaves."""
    value, tangent = jaxinterop.jvp(with_half, (tied(),), (TANGENT,))
    assert value["x"] is value["y"][0]
    assert tangent["x"] is tangent["y"][0]
    assert (float(tangent["x"]), float(tangent["z"]), tangent["name"]) == (6.0, 3.0, None)


def test_tangents_that_differ_where_one_object_stood() -> None:
    """`SharingError` with both paths, and a note that says which tree it is."""
    halves = {"a": jnp.float32(1.0), "b": jnp.float32(2.0), "name": None}
    _, pushforward = jaxinterop.linearize(with_half, tied())
    for call in (
        lambda: jaxinterop.jvp(with_half, (tied(),), (halves,)),
        lambda: pushforward(halves),
    ):
        with pytest.raises(
            pydag.SharingError, match=r"\['a'\] and tree\[0\]\['b'\] are one"
        ) as caught:
            call()
        assert any("tuple of the tangents" in note for note in caught.value.__notes__)
    _, pullback = jaxinterop.vjp(with_half, tied())
    with pytest.raises(
        pydag.SharingError, match=r"tree\['x'\] and tree\['y'\]\[0\] are one"
    ) as caught:
        pullback({**COTANGENT, "x": jnp.float32(0.0)})
    assert any("the cotangent" in note for note in caught.value.__notes__)
    with pytest.raises(ValueError, match="missing key"):
        pullback({"x": ONE})
    with pytest.raises(TypeError, match="takes one cotangent"):
        pullback(ONE, ONE)
    with pytest.raises(TypeError, match="primals of jvp must be a tuple or a list"):
        jaxinterop.jvp(with_half, TANGENT, (ONE,))  # type: ignore[call-overload]  # the point of the test


def test_what_has_no_derivative() -> None:
    """Integers and keys may be arguments, as in JAX: None stands for them, or JAX's float0."""

    def f(x: Any, i: Any, key: Any) -> Any:
        return x * i * jax.random.bits(key).astype(float)

    key, nothing = jax.random.key(0), np.zeros((), jax.dtypes.float0)
    slope = 3 * float(jax.random.bits(key))
    assert jaxinterop.vjp(f, 2.0, 3, key)[1](1.0) == (slope, None, None)
    assert jaxinterop.jvp(f, (2.0, 3, key), (1.0, nothing, None))[1] == slope
    assert jaxinterop.linearize(f, 2.0, 3, key)[1](1.0, None, None) == slope
    assert jaxinterop.vjp(lambda i: 2 * i, 3)[1](nothing) == (None,)
    assert jaxinterop.jvp(lambda i: 2 * i, (3,), (None,)) == (6, None)
    assert jaxinterop.linearize(lambda i: 2.0 * i, 3)[1](None) == 0.0


tied_pair = tied_under("a", "b", lambda: jnp.array([1.0, 2.0]))


def test_hessian() -> None:
    """Of a tied_pair model: the second derivative of w^3 by w, wherever it stands."""

    def f(p: Any) -> Any:
        return jnp.sum(p["a"] ** 2 * p["b"])

    found = jaxinterop.hessian(f)(tied_pair())
    assert found["a"] is found["b"]
    assert found["a"]["a"] is found["a"]["b"]
    assert found["a"]["b"].tolist() == [[6.0, 0.0], [0.0, 12.0]]
    untied = {"a": jnp.ones(1), "b": jnp.ones(1)}
    assert jaxinterop.hessian(f)(untied) == jax.hessian(f)(untied)
    value, aux = jaxinterop.hessian(lambda p: (f(p), [p["a"]]), has_aux=True)(tied_pair())
    assert value["a"]["a"].tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert aux[0].tolist() == [1.0, 2.0]
    found = jaxinterop.hessian(lambda x, y: x * y**2, argnums=(0, 1))(2.0, 3.0)
    assert found == jax.hessian(lambda x, y: x * y**2, argnums=(0, 1))(2.0, 3.0)


tied_number = tied_under("a", "b", number)


def product(params: Any) -> Any:
    """The product of the two places."""
    return params["a"] * params["b"]


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


def test_aux_of_gradients() -> None:
    """What the function passes on comes back, tied_number to the value and in itself."""

    def f(params: Any) -> Any:
        value = product(params)
        return value, {"value": value, "params": params, "name": "aux"}

    (value, aux), gradient = jaxinterop.value_and_grad(f, has_aux=True)(tied_number())
    assert aux["value"] is value
    assert aux["params"]["a"] is aux["params"]["b"]
    assert (float(value), float(aux["params"]["a"]), aux["name"]) == (9.0, 3.0, "aux")
    assert gradient["a"] == 6.0
    gradient, aux = jaxinterop.grad(f, has_aux=True)(tied_number())
    assert (gradient["b"], float(aux["value"])) == (6.0, 9.0)
    with pytest.raises(TypeError, match="pair"):
        jaxinterop.grad(product, has_aux=True)(tied_number())


def test_integers_and_complex_numbers_on_demand() -> None:
    """`allow_int` and `holomorphic` mean what they do in JAX."""
    gradient = jaxinterop.grad(lambda p: p[0] * 2.0, allow_int=True)([1.0, 2])
    assert gradient[0] == 2.0
    assert gradient[1].dtype == jax.dtypes.float0
    z = jnp.complex64(1 + 2j)
    assert jaxinterop.grad(lambda p: p[0] * p[1], holomorphic=True)([z, z]) == [2 + 4j, 2 + 4j]


def test_python_numbers_and_numpy_arrays() -> None:
    """Numbers are values: equal ones at two places have a gradient each."""
    assert jaxinterop.grad(product)({"a": 3.0, "b": 3.0}) == {"a": 3.0, "b": 3.0}
    w = np.ones(2, np.float32)
    gradient = jaxinterop.grad(lambda p: jnp.sum(p[0] * p[1]))([w, w])
    assert gradient[0] is gradient[1]
    assert gradient[0].tolist() == [2.0, 2.0]
