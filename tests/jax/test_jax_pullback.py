"""What the pullbacks of `jaxinterop.vjp` have beside being called: residuals, refs, flags."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from small_models import number, tied_under

import pydag
from pydag import jaxinterop as pj

ONE = jnp.float32(1.0)
newer_jax = pytest.mark.skipif(
    "saveable_args" not in inspect.signature(jax.vjp).parameters, reason="this JAX hasn't got it"
)


def product(params: Any, x: Any) -> Any:
    """Of both, with a weight at two places."""
    return jnp.sin(params["a"]) * params["b"] * x


tied = tied_under("a", "b", number, name="net")


def marks_of(pullback: Any) -> list[str]:
    """What stands at the leaves of its residuals."""
    return [type(leaf).__name__ for leaf in pydag.dag_leaves(pullback.args_res)]


def slope(w: float, x: float) -> float:
    """The derivative of the product by the weight."""
    return float((jnp.cos(w) * w + jnp.sin(w)) * x)


def test_residuals_stand_where_the_arguments_stand() -> None:
    """An array that is kept as it was given is that array, at all of its places."""
    params, x = tied(), jnp.float32(2.0)
    pullback: Any = pj.vjp(product, params, x)[1]
    kept, of_x = pullback.args_res
    assert kept["a"] is kept["b"]
    assert kept["a"] is params["a"]
    assert kept["name"] is None
    assert of_x is x
    _, pullback = pj.vjp(lambda p: p["a"] + p["b"], params)
    assert type(pullback.args_res[0]["a"]).__name__ == "NotNeeded"


@newer_jax
def test_what_is_not_saved_is_put_back() -> None:
    """By an item, by all of the list, and through a compiled function."""
    params, x = tied(), jnp.float32(2.0)
    _, pullback = pj.vjp(
        product, params, x, saveable_args=({"a": False, "b": True, "name": True}, False)
    )
    with pytest.raises(ValueError, match="not-saveable"):
        pullback(ONE)
    pullback.args_res = [params, x]
    (gradient, by_x) = pullback(ONE)
    assert gradient["a"] is gradient["b"]
    assert float(gradient["a"]) == pytest.approx(slope(3.0, 2.0))
    assert float(by_x) == pytest.approx(float(jnp.sin(3.0)) * 3)
    _, pullback = pj.vjp(product, params, x, saveable_args=False)
    pullback.args_res[0] = params
    pullback.args_res[1] = 2 * x
    assert float(pj.jit(lambda f: f(ONE))(pullback)[0]["b"]) == pytest.approx(slope(3.0, 4.0))


@newer_jax
@pytest.mark.parametrize(
    "prefix",
    [
        (True, False),
        [True, False],
        ((True, True, True), False),
        ({"a": True, "b": True, "name": False}, False),
    ],
)
def test_flags_are_prefixes_but_for_the_types_of_containers(prefix: Any) -> None:
    """A tuple of booleans does for any container of as many children, as in JAX."""
    _, pullback = pj.vjp(product, tied(), ONE, saveable_args=prefix)
    assert type(pullback.args_res[1]).__name__ == "NotSaveable"
    assert pullback.args_res[0]["a"].shape == ()


@pytest.mark.parametrize(
    ("prefix", "text"),
    [
        ("a", "tree of booleans, but saveable_args is 'a'"),
        ((True,), "saveable_args has 1 children, .* has 2"),
        (((True, (True, False), True), True), r"saveable_args\[0\]\[1\] has 2 .* it is a leaf"),
        (({"c": True}, True), r"saveable_args\[0\] has the keys \['c'\]"),
    ],
)  # fmt: skip
def test_flags_that_do_not_fit(prefix: Any, text: str) -> None:
    """Are errors of JAX's type, with the place."""
    with pytest.raises(ValueError, match=text):
        pj.vjp(product, tied(), ONE, saveable_args=prefix)


@newer_jax
def test_what_is_not_differentiated_by() -> None:
    """`in_nzs` says it, and the map says of which results that makes zeros."""

    def f(p: Any, x: Any) -> Any:
        return {"p": p["a"] * 2, "x": x * 3, "name": "out"}

    for take in (pj.vjp, pj.linearize):
        linear: Any = take(f, tied(), ONE, in_nzs=(False, True))[1]
        assert linear.out_nzs == {"p": False, "x": True, "name": None}
    _, pullback = pj.vjp(f, tied(), ONE, in_nzs=(False, True))
    gradient, by_x = pullback({"p": ONE, "x": ONE, "name": None})
    assert (float(gradient["a"]), float(by_x)) == (0.0, 3.0)


def test_gradients_are_added_to_refs() -> None:
    """A ref for each leaf; the others are returned, or aren't wanted."""
    params, x = tied(), jnp.float32(2.0)
    ref = jax.new_ref(jnp.float32(10.0))
    _, pullback = pj.vjp(product, params, x)
    gradient, by_x = pullback.with_refs({"a": ref, "b": ref, "name": None}, None)(ONE)
    assert float(ref[...]) == pytest.approx(10 + slope(3.0, 2.0), rel=1e-5)
    assert type(gradient["a"]).__name__ == "GradRef"
    assert float(by_x) == pytest.approx(float(jnp.sin(3.0)) * 3)
    marks: Any = jax.ad
    unwanted = pullback.with_refs({"a": None, "b": None, "name": None}, marks.DontWant())(ONE)[1]
    assert type(unwanted).__name__ == "DidntWant"
    other = jax.new_ref(jnp.float32(0.0))
    with pytest.raises(pydag.SharingError):
        pullback.with_refs({"a": ref, "b": other, "name": None}, None)


@newer_jax
def test_what_rules_log() -> None:
    """The pullback that hands on logs returns a pair, as JAX's."""
    _, pullback = pj.vjp(product, tied(), ONE)
    if not hasattr(pullback.function, "with_logs"):
        pytest.skip("this JAX hasn't got it")
    (gradient, _), logs = pullback.with_logs(ONE)
    assert gradient["a"] is gradient["b"]
    assert logs == {}
