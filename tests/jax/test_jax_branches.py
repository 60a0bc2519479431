"""`jaxinterop.cond` and `switch`: branches whose results are structured and shared alike."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from small_models import number, tied_under

import pydag
from pydag import jaxinterop

tied = tied_under("a", "b", number, name="net")


def double(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    assert tree["a"] is tree["b"]
    return pydag.dag_map(lambda x: x if isinstance(x, str) else 2 * x, tree)


def same(tree: Any) -> Any:
    """The tree."""
    return tree


def test_cond() -> None:
    """The operands are tied inside, the result outside."""
    for jit in (lambda f: f, jaxinterop.jit):
        chosen = jit(lambda p, tree: jaxinterop.cond(p, double, same, tree))
        for pred, value in ((True, 6.0), (False, 3.0)):
            out = chosen(jnp.bool_(pred), tied())
            assert out["a"] is out["b"]
            assert (float(out["a"]), out["name"]) == (value, "net")


def test_switch() -> None:
    """As `cond`, of any number of branches; the index is clamped."""
    branches = [same, double, lambda tree: double(double(tree))]
    for index, value in ((0, 3.0), (1, 6.0), (2, 12.0), (5, 12.0)):
        out = jaxinterop.switch(index, branches, tied())
        assert out["a"] is out["b"]
        assert float(out["a"]) == value
    assert jaxinterop.switch(0, [same], tied())["name"] == "net"


def test_operands_share() -> None:
    """One identity table spans all operands; the predicate is none of them."""

    def f(x: Any, y: Any) -> Any:
        assert x is y[0]
        return x + y[0]

    w = jnp.float32(3.0)
    assert jaxinterop.cond(w > 2, f, lambda x, y: x, w, [w]) == 6.0
    assert jaxinterop.cond(True, lambda: 1.0, lambda: 2.0) == 1.0
    assert jaxinterop.cond(True, double, same, operand=tied())["a"] == 6.0
    assert jaxinterop.switch(0, [double, same], operand=tied())["a"] == 6.0


def test_branches_of_different_structure() -> None:
    """`TypeError`, as in JAX; of static leaves it names the place and both values."""
    with pytest.raises(TypeError, match="must be structured alike"):
        jaxinterop.cond(True, lambda t: t["a"], lambda t: [t["a"]], tied())
    with pytest.raises(TypeError, match=r"true_fun, .*\nresult\['name'\]\n.*'net'\n.*'other'"):
        jaxinterop.cond(True, same, lambda t: {**t, "name": "other"}, tied())
    with pytest.raises(TypeError, match="float32"):  # JAX's own, about the types of arrays
        jaxinterop.cond(True, lambda x: x, lambda x: x * 0.5, 1)


def test_a_branch_may_tie_what_was_not_tied() -> None:
    """As long as all do."""

    def tie(tree: Any) -> Any:
        return {"a": tree["a"], "b": tree["a"]}

    out = jaxinterop.cond(True, tie, tie, {"a": jnp.ones(2), "b": jnp.zeros(2)})
    assert out["a"] is out["b"]


def test_a_mapped_predicate() -> None:
    """Under `vmap` each slice has its branch, and the result is tied."""

    def f(p: Any, w: Any) -> Any:
        tree = jaxinterop.cond(p, double, same, {"a": w, "b": w, "name": "net"})
        assert tree["a"] is tree["b"]
        return tree["a"] * tree["b"]

    out = jaxinterop.vmap(f)(jnp.array([True, False]), jnp.array([3.0, 3.0]))
    assert out.tolist() == [36.0, 9.0]
