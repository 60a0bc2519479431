# SPDX-License-Identifier: Apache-2.0
"""`wrt=` of the gradient family: which leaves are differentiated by."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
from pydag import SharingError
from pydag import jaxinterop as pj


@pydag.register_fields
class Layer:
    def __init__(self, weight: Any, bias: Any) -> None:
        self.weight, self.bias = weight, bias


def model() -> dict[str, Any]:
    """Two layers with one weight; a counter, a flag, a key, and what JAX can't trace."""
    w = jnp.float32(3.0)
    return {
        "body": Layer(w, jnp.float32(1.0)),
        "head": Layer(w, jnp.float32(2.0)),
        "steps": jnp.int32(4),
        "flag": True,
        "key": jax.random.key(0),
        "name": "net",
        "function": jnp.sin,
    }


def loss(model: Any) -> Any:
    """By the weight 11 + 6, the biases 5 and 1."""
    assert model["body"].weight is model["head"].weight
    body, head = model["body"], model["head"]
    return 5 * body.bias + 11 * body.weight + head.weight**2 + head.bias


def numbers(gradient: Any) -> list[Any]:
    """The weight at both places, and the biases."""
    body, head = gradient["body"], gradient["head"]
    assert body.weight is head.weight
    found = [body.weight, body.bias, head.bias]
    return [None if x is None else float(x) for x in found]


def test_what_has_no_derivative_is_passed_through() -> None:
    """Integers, flags and keys need no `wrt`: the gradient has None there, as for text."""
    gradient = pj.grad(loss)(model())
    assert numbers(gradient) == [17.0, 5.0, 1.0]
    others = ("steps", "flag", "key", "name", "function")
    assert [gradient[name] for name in others] == [None] * 5


@pytest.mark.parametrize(
    ("wrt", "expected"),
    [
        ("*.weight", [17.0, None, None]),
        ("['head'].weight", [17.0, None, None]),
        ("['head'].*", [17.0, None, 1.0]),
        ("*.bias", [None, 5.0, 1.0]),
        (["['body'].bias", "*head*weight"], [17.0, 5.0, None]),
        (Layer, [17.0, 5.0, 1.0]),
        ((Layer, str), [17.0, 5.0, 1.0]),
        (lambda leaf: leaf.shape == (), [17.0, 5.0, 1.0]),  # asked of no text, no function
        (True, [17.0, 5.0, 1.0]),
        (jax.Array, [17.0, 5.0, 1.0]),
    ],
)
def test_the_vocabulary(wrt: Any, expected: list[float | None]) -> None:
    """Patterns, of any path; classes; predicates; a boolean; a list of such."""
    for gradient in (
        pj.grad(loss, wrt=wrt)(model()),
        pj.value_and_grad(loss, wrt=wrt)(model())[1],
        pj.jacrev(loss, wrt=wrt)(model()),
        pj.jacfwd(loss, wrt=wrt)(model()),
        pj.jit(pj.grad(loss, wrt=wrt))(model()),
    ):
        assert numbers(gradient) == expected


def test_a_prefix_of_booleans() -> None:
    """It has the form of the argument; two answers for one object are an error that shows both."""
    given = dict.fromkeys(model(), False)
    gradient = pj.grad(loss, wrt={**given, "body": Layer(False, True)})
    with pytest.raises(ValueError, match="prefix of booleans doesn't fit"):
        pj.grad(loss, wrt={"body": True})(model())
    with pytest.raises(SharingError, match="two answers") as caught:
        pj.grad(loss, wrt={**given, "body": Layer(True, True)})(model())
    for path in ("tree['body'].weight: True", "tree['head']"):
        assert path in str(caught.value)
    assert numbers(gradient(model())) == [None, 5.0, None]


def test_second_derivatives() -> None:
    """The Hessian has trees of the selected in trees of the selected."""
    second = pj.hessian(loss, wrt="*.weight")(model())
    assert second["body"].weight is second["head"].weight
    assert float(second["body"].weight["head"].weight) == 2.0
    assert second["body"].bias is None
    assert second["body"].weight["body"].bias is None
    by_number = pj.hessian(lambda p: p["a"] ** 3 * p["n"], wrt=float)({"a": 2.0, "n": 1})
    assert float(by_number["a"]["a"]) == 12.0
    assert by_number["n"] is None


def two(one: Any, other: Any, *, scale: Any = 1.0) -> Any:
    return (2 * one["a"] + 3 * other["a"] + 5 * other["b"]) * scale


def test_several_arguments() -> None:
    """Each of them is a root of its own for patterns; a prefix is one of the tuple."""
    args = {"a": jnp.float32(1.0), "b": jnp.float32(2.0)}, {"a": 3.0, "b": 4.0}
    for wrt in ("['a']", ({"a": True, "b": False}, {"a": True, "b": False})):
        one, other = pj.grad(two, (0, 1), wrt=wrt)(*args)
        assert (one, other) == ({"a": 2.0, "b": None}, {"a": 3.0, "b": None})
    other, one = pj.grad(two, (1, 0), wrt=({"a": False, "b": True}, True))(*args)
    assert (one, other) == ({"a": 2.0, "b": 0.0}, {"a": None, "b": 5.0})
    shared = {"a": (w := jnp.float32(1.0)), "b": w}
    one, other = pj.grad(two, (0, 1), wrt="['b']")(shared, shared)
    assert one["a"] is one["b"] is other["a"] is other["b"]
    assert float(one["a"]) == 10.0
    object_at_both = Layer(w, 2.0)
    gradient = pj.grad(lambda one, other: one.weight * other.bias, (0, 1), wrt="bias")
    first, second = gradient(object_at_both, object_at_both)
    assert (first.weight, float(first.bias), first is second) == (None, 1.0, True)


def test_a_leaf_in_another_argument() -> None:
    """There it is constant, whether it is selected in the first argument or not."""
    w, b = jnp.float32(2.0), jnp.float32(3.0)
    one, other = {"a": w, "b": b}, {"a": b, "b": w}
    assert pj.grad(two, wrt="['a']")(one, {"a": b, "b": b}) == {"a": 2.0, "b": None}
    assert pj.grad(two, wrt="['a']")(one, other) == {"a": 2.0, "b": None}
    assert pj.grad(two, wrt="['a']")(one, {"a": b, "b": b}, scale=w) == {"a": 4.0, "b": None}
    count = jnp.int32(3)  # in both, and not differentiated by
    found = pj.grad(lambda p, n: p["w"] * p["n"] * n)({"w": 2.0, "n": count}, count)
    assert found == {"w": 9.0, "n": None}


def test_nothing_to_differentiate() -> None:
    """Without leaves that is all right; else it is an error that says what there is."""
    assert pj.grad(lambda p: 1.0, wrt="nothing")({}) == {}
    with pytest.raises(TypeError, match=r"nothing to differentiate by: args\[0\] holds no array"):
        pj.grad(lambda p: 1.0)({"a": "text"})
    with pytest.raises(
        TypeError, match=r"derivative \(but args\[0\]\['steps'\]\) in args\[0\]: .*bias: f32\[\]"
    ):
        pj.grad(loss, wrt="*steps*")(model())
    with pytest.raises(TypeError, match=r"derivative in args\[0\]"):
        pj.grad(loss, wrt=np.ndarray)(model())
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        pj.grad(loss)({"steps": jnp.int32(4), "flag": True})
    with pytest.raises(TypeError, match="which leaves: expected"):
        pj.grad(loss, wrt=1.5)(model())


def test_a_pattern_that_no_path_matches() -> None:
    """Also as one of several; the nearest paths are named."""
    for wrt in ("['boddy'].weight", ["*.bias", "['boddy'].weight"]):
        with pytest.raises(ValueError, match="no path matches") as caught:
            pj.grad(loss, wrt=wrt)(model())
        assert "nearest that exist: ['body'].weight" in str(caught.value)
    with pytest.raises(ValueError, match="nearest that exist: bias"):
        pj.grad(lambda one, other: 0.0, (0, 1), wrt="bais")(Layer(1.0, 2.0), {})  # codespell:ignore


def test_allow_int() -> None:
    """With `allow_int=True` integers count, and keys don't."""
    gradient = pj.grad(loss, allow_int=True)(model())
    assert gradient["steps"].dtype == gradient["flag"].dtype == jax.dtypes.float0
    assert gradient["key"] is None
    gradient = pj.grad(loss, allow_int=True, wrt=["*steps*", "*.bias"])(model())
    assert gradient["steps"].dtype == jax.dtypes.float0
    assert (gradient["flag"], gradient["body"].weight) == (None, None)


def test_types_of_every_kind() -> None:
    """Half floats, complex numbers, NumPy's and Python's numbers have derivatives."""
    tree = [jnp.bfloat16(1.0), np.float32(2.0), np.ones(2, np.float32), 3.0, 1, np.int64(2)]
    gradient = pj.grad(lambda p: p[0].astype("float32") + p[1] + p[2].sum() + p[3])(tree)
    assert [x is not None for x in gradient] == [True] * 4 + [False] * 2
    assert pj.grad(lambda p: jnp.abs(p[0]))([jnp.complex64(3.0)])[0].dtype == np.complex64


def test_it_is_mapped_together_with_the_model() -> None:
    """`dag_map` hands None to the function where nothing was differentiated."""
    given = model()
    gradient = pj.grad(loss, wrt="*.weight")(given)

    def step(x: Any, g: Any) -> Any:
        return x if g is None or isinstance(x, str) or callable(x) else x - g

    new = pydag.dag_map(step, given, gradient)
    assert new["body"].weight is new["head"].weight
    assert float(new["body"].weight) == -14.0
    assert new["steps"] is given["steps"]


def test_sixty_levels() -> None:
    """Selecting is linear in objects, however many paths lead to them."""
    tree: Any = Layer(jnp.float32(2.0), jnp.float32(1.0))
    for _ in range(60):
        tree = [tree, tree]

    def bottom(tree: Any) -> Any:
        while isinstance(tree, list):
            tree = tree[1]
        return tree

    def square(tree: Any) -> Any:
        return bottom(tree).weight ** 2 + bottom(tree).bias

    gradient = bottom(pj.grad(square, wrt="*.weight")(tree))
    assert (float(gradient.weight), gradient.bias) == (4.0, None)


def test_it_is_compiled_once() -> None:
    """The same selection doesn't trace again."""
    traces: list[None] = []

    def counted(model: Any) -> Any:
        traces.append(None)
        return loss(model)

    step = pj.jit(pj.grad(counted, wrt="*.bias"))
    for _ in range(3):
        assert numbers(step(model())) == [None, 5.0, 1.0]
    assert len(traces) == 1
