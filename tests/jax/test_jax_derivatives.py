# SPDX-License-Identifier: Apache-2.0
"""Every derivative is JAX's; a tied weight has one; what another argument holds is constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_models import number, tied_under

import pydag
import pydag.jaxinterop as pj

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
    """The array has one derivative, the sum over its uses, which stands in both."""
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
    """Such an argument has a derivative of its own form."""
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
    value, pullback = pj.vjp(with_half, tied())
    assert value["x"] is value["y"][0]
    assert float(value["x"]) == 9.0
    (cotangent,) = pullback(COTANGENT)
    assert cotangent["a"] is cotangent["b"]
    assert (float(cotangent["a"]), cotangent["name"]) == (12.0, None)


def test_jvp() -> None:
    """The tangent of the result has its form; None stands for static leaves."""
    value, tangent = pj.jvp(with_half, (tied(),), (TANGENT,))
    assert value["x"] is value["y"][0]
    assert tangent["x"] is tangent["y"][0]
    assert (float(tangent["x"]), float(tangent["z"]), tangent["name"]) == (6.0, 3.0, None)


def test_tangents_that_differ_where_one_object_stood() -> None:
    """`SharingError` with both paths, and a note that says which tree it is."""
    halves = {"a": jnp.float32(1.0), "b": jnp.float32(2.0), "name": None}
    _, pushforward = pj.linearize(with_half, tied())
    for call in (
        lambda: pj.jvp(with_half, (tied(),), (halves,)),
        lambda: pushforward(halves),
    ):
        with pytest.raises(
            pydag.SharingError, match=r"\['a'\] and tree\[0\]\['b'\] are one"
        ) as caught:
            call()
        assert any("tuple of the tangents" in note for note in caught.value.__notes__)
    _, pullback = pj.vjp(with_half, tied())
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
        pj.jvp(with_half, TANGENT, (ONE,))  # type: ignore[call-overload]  # the point of the test


def test_what_has_no_derivative() -> None:
    """Integers and keys may be arguments, as in JAX: None stands for them, or JAX's float0."""

    def f(x: Any, i: Any, key: Any) -> Any:
        return x * i * jax.random.bits(key).astype(float)

    key, nothing = jax.random.key(0), np.zeros((), jax.dtypes.float0)
    slope = 3 * float(jax.random.bits(key))
    assert pj.vjp(f, 2.0, 3, key)[1](1.0) == (slope, None, None)
    assert pj.jvp(f, (2.0, 3, key), (1.0, nothing, None))[1] == slope
    assert pj.linearize(f, 2.0, 3, key)[1](1.0, None, None) == slope
    assert pj.vjp(lambda i: 2 * i, 3)[1](nothing) == (None,)
    assert pj.jvp(lambda i: 2 * i, (3,), (None,)) == (6, None)
    assert pj.linearize(lambda i: 2.0 * i, 3)[1](None) == 0.0


tied_pair = tied_under("a", "b", lambda: jnp.array([1.0, 2.0]))


def test_hessian() -> None:
    """The Hessian of a tied model is the second derivative of w^3 by w, wherever it stands."""

    def f(p: Any) -> Any:
        return jnp.sum(p["a"] ** 2 * p["b"])

    found = pj.hessian(f)(tied_pair())
    assert found["a"] is found["b"]
    assert found["a"]["a"] is found["a"]["b"]
    assert found["a"]["b"].tolist() == [[6.0, 0.0], [0.0, 12.0]]
    untied = {"a": jnp.ones(1), "b": jnp.ones(1)}
    assert pj.hessian(f)(untied) == jax.hessian(f)(untied)
    value, aux = pj.hessian(lambda p: (f(p), [p["a"]]), has_aux=True)(tied_pair())
    assert value["a"]["a"].tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert aux[0].tolist() == [1.0, 2.0]
    found = pj.hessian(lambda x, y: x * y**2, argnums=(0, 1))(2.0, 3.0)
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
    assert pj.grad(f, (2, 0))(*values) == (5.0, 2.0)
    assert pj.grad(f, -2)(*values) == 3.0
    assert pj.grad(f, [1])(*values) == (3.0,)
    with pytest.raises(TypeError, match="called with 3 positional arguments"):
        pj.grad(f, 3)(*values)


def test_aux_of_gradients() -> None:
    """What the function passes on comes back, tied to the value and in itself."""

    def f(params: Any) -> Any:
        value = product(params)
        return value, {"value": value, "params": params, "name": "aux"}

    (value, aux), gradient = pj.value_and_grad(f, has_aux=True)(tied_number())
    assert aux["value"] is value
    assert aux["params"]["a"] is aux["params"]["b"]
    assert (float(value), float(aux["params"]["a"]), aux["name"]) == (9.0, 3.0, "aux")
    assert gradient["a"] == 6.0
    gradient, aux = pj.grad(f, has_aux=True)(tied_number())
    assert (gradient["b"], float(aux["value"])) == (6.0, 9.0)
    with pytest.raises(TypeError, match="pair"):
        pj.grad(product, has_aux=True)(tied_number())


def test_integers_and_complex_numbers_on_demand() -> None:
    """`allow_int` and `holomorphic` mean what they do in JAX."""
    gradient = pj.grad(lambda p: p[0] * 2.0, allow_int=True)([1.0, 2])
    assert gradient[0] == 2.0
    assert gradient[1].dtype == jax.dtypes.float0
    z = jnp.complex64(1 + 2j)
    assert pj.grad(lambda p: p[0] * p[1], holomorphic=True)([z, z]) == [2 + 4j, 2 + 4j]


def test_python_numbers_and_numpy_arrays() -> None:
    """Numbers are values: equal ones at two places have a gradient each."""
    assert pj.grad(product)({"a": 3.0, "b": 3.0}) == {"a": 3.0, "b": 3.0}
    w = np.ones(2, np.float32)
    gradient = pj.grad(lambda p: jnp.sum(p[0] * p[1]))([w, w])
    assert gradient[0] is gradient[1]
    assert gradient[0].tolist() == [2.0, 2.0]


class Layer(pj.Module):
    """A module that checks what it is built of."""

    def __init__(self, w: Any) -> None:
        self.w, self.name = jnp.asarray(w), "layer"

    def __call__(self, x: Any) -> Any:
        return self.w * x


class Net(pj.Module):
    """A network in which one layer is used twice."""

    def __init__(self, w: float = 3.0) -> None:
        self.one = self.two = Layer(w)
        self.steps = jnp.int32(4)


def value(net: Any) -> Any:
    """Three times a square of the tied weight."""
    assert net.one is net.two
    return net.one(1.0) * net.two(3.0)


def loss(net: Any, target: Any) -> Any:
    """A distance, which has a derivative only if the target is constant."""
    assert net is not target
    assert net.one is not target.one
    assert net.one.w is not target.one.w
    return (value(net) - value(target) + 1) ** 2


NET = Net()
WANTED = 2 * 6 * 3.0


@pytest.mark.parametrize("is_jitted", [False, True])
@pytest.mark.parametrize("how", ["args", "kwargs", "inside", "other way"])
def test_a_derivative_is_by_its_argument(how: str, is_jitted: bool) -> None:
    """After `target = params` the target is constant, and ties inside of each argument hold."""
    calls: dict[str, Any] = {
        "args": lambda net: pj.grad(loss)(net, net),
        "kwargs": lambda net: pj.grad(loss)(net, target=net),
        "inside": lambda net: pj.grad(lambda n, others: loss(n, others[0]["x"]))(net, [{"x": net}]),
        "other way": lambda net: pj.grad(lambda t, n: loss(n, t), argnums=1)(net, net),
    }
    call = pj.jit(calls[how]) if is_jitted else calls[how]
    gradient = call(NET)
    assert float(gradient.one.w) == WANTED
    assert gradient.one is gradient.two
    assert gradient.steps is None


def test_vmap_has_axes_by_argument() -> None:
    """An object is mapped in one argument and not in another; where axes agree it is one."""
    p = {"w": jnp.arange(3.0)}

    def f(one: Any, other: Any, third: Any) -> Any:
        assert one is third
        assert one is not other
        return jnp.sum(other["w"]) * one["w"]

    for mapped in (pj.vmap(f, in_axes=(0, None, 0)), pj.jit(pj.vmap(f, in_axes=(0, None, 0)))):
        assert mapped(p, p, p).tolist() == [0, 3, 6]
        assert mapped(p, p, p).tolist() == [0, 3, 6]
    same = Layer(jnp.arange(3.0))
    assert pj.vmap(lambda a, b: a.w * jnp.sum(b.w), (0, None))(same, same).tolist() == [0, 3, 6]
    with pytest.raises(
        pydag.SharingError, match=r"args\[1\]\['b'\], the same object, is not mapped"
    ):
        pj.vmap(lambda x, y: x, in_axes=(0, {"a": 0, "b": None}))(p, {"a": p["w"], "b": p["w"]})


def test_jvp_has_tangents_by_argument() -> None:
    """What two arguments hold is one, and has one tangent; of arrays alone each has its own."""
    w = {"w": jnp.float32(3.0)}
    one, zero = {"w": jnp.float32(1.0)}, {"w": jnp.float32(0.0)}
    _, tangent = pj.jvp(lambda p, q: p["w"] * q["w"], (w, w), (one, one))
    assert float(tangent) == 6
    _, tangent = pj.jvp(jnp.multiply, (w["w"], w["w"]), (one["w"], zero["w"]))
    assert float(tangent) == 3
    with pytest.raises(pydag.SharingError, match="the tuple of the tangents"):
        pj.jvp(lambda p, q: p["w"] * q["w"], (w, w), (one, zero))


def test_linearize_has_tangents_by_argument() -> None:
    """The linear map has tangents by argument, too."""
    w = {"w": jnp.float32(3.0)}
    one, zero = {"w": jnp.float32(1.0)}, {"w": jnp.float32(0.0)}
    _, pushforward = pj.linearize(lambda p, q: p["w"] * q["w"] ** 2, w, pj.tree.copy(w))
    for tangents, expected in (((one, one), 27), ((one, zero), 9), ((zero, one), 18)):
        assert float(pushforward(*tangents)) == expected


X = jnp.float32(3.0)


def f(x: Any, y: Any) -> Any:
    return x**2 * y


def test_linear_maps() -> None:
    """`vjp`, `jvp` and `linearize` are by their argument, as `grad` is."""
    one, zero = jnp.float32(1.0), jnp.float32(0.0)
    assert pj.vjp(f, X, X)[1](one) == (18.0, 9.0)
    assert pj.jvp(f, (X, X), (one, zero))[1] == 18.0
    assert pj.linearize(f, X, X)[1](zero, one) == 9.0


def test_arrays_that_a_container_holds_too() -> None:
    """The argument is a variable of its own, as in every tuple."""
    g = lambda x, p: x**2 * p["w"]  # noqa: E731 (a name for what is called)
    found = pj.grad(g, argnums=(0, 1))(X, {"w": X})
    assert found == (18.0, {"w": 9.0})
    w = jnp.ones(2)
    assert float(pj.grad(g)(X, {"w": X})) == 18.0
    assert pj.vmap(g, in_axes=(0, None))(w, {"w": w}).tolist() == [[1, 1], [1, 1]]
    carry, _ = pj.scan(lambda c, x: ({"w": c["w"] + x}, x), {"w": w}, w)
    assert carry["w"].tolist() == [3, 3]
