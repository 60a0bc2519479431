# SPDX-License-Identifier: Apache-2.0
"""The table of wrappers in tests/support is that of the package and of the pages."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from wrappers import APART, WRAPPERS

import pydag
from pydag import jaxinterop

barrier: Any = jax.effects_barrier
ROOT = Path(__file__).parents[2]
TABLE = {*WRAPPERS, *APART}


def test_it_has_all_wrappers() -> None:
    """Whatever `jaxinterop` shows of its rooms of wrappers, and nothing else."""
    shown = {name: getattr(jaxinterop, name) for name in jaxinterop.__all__}
    shown |= {f"debug.{name}": attrgetter(name)(shown["debug"]) for name in shown["debug"].__all__}
    rooms = ("pydag.jaxinterop.wrappers.", "pydag.jaxinterop.compiled.jit")
    found = {
        n for n, thing in shown.items() if str(getattr(thing, "__module__", "")).startswith(rooms)
    }
    assert found == TABLE
    assert not WRAPPERS.keys() & APART.keys()


def named_in(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_.]+)`", text))


def test_the_list_of_functions_names_them() -> None:
    """In the row of JAX's functions; `keep_sharing` has one of its own."""
    [row] = re.findall(
        r"^\| `pydag.jaxinterop`: (.*?) \|", (ROOT / "docs/functions.md").read_text("utf-8"), re.M
    )
    assert named_in(row) == TABLE - {"keep_sharing"}


@pytest.mark.parametrize("name", APART)
def test_inside_and_outside(name: str) -> None:
    """What is one object outside is one inside, and the other way round."""
    w = jnp.full((2, 2), 3.0)
    seen: list[bool] = []

    def double(tree: Any) -> Any:
        seen.append(tree["a"] is tree["b"][0])
        assert (tree["name"], tree["function"]) == ("net", jnp.sin)
        twice = 2 * tree["a"]
        return {**tree, "a": twice, "b": [twice]}

    out = APART[name](double)({"a": w, "b": [w], "name": "net", "function": jnp.sin})
    assert seen
    assert all(seen)
    assert out["a"] is out["b"][0]
    assert (out["name"], out["function"]) == ("net", jnp.sin)
    assert jnp.array_equal(jnp.asarray(out["a"]), 2 * w)


@pydag.register_fields
class Layer:
    def __init__(self, w: Any) -> None:
        self.w = w


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    """Trees stand in the text as themselves, also of classes that JAX doesn't know."""

    @jaxinterop.jit
    def f(layers: Any, x: Any) -> Any:
        jaxinterop.debug.print("{l[0].w} {x} {0:>4} {1}", "text", [x, "static"], l=layers, x=x)
        jaxinterop.debug.print(ordered=True)("again {}", x)
        return x

    layer = Layer(jnp.float32(2.5))
    f([layer, layer], jnp.int32(7))
    barrier()
    lines = sorted(capsys.readouterr().out.splitlines())  # only one of them is ordered
    assert lines == ["2.5 7 text [Array(7, dtype=int32), 'static']", "again 7"]
    with pytest.raises(TypeError, match="options alone"):
        jaxinterop.debug.print(None, 1)


def test_callbacks_in_order() -> None:
    """`ordered` is handed on; the two-call form, too."""
    seen: list[Any] = []

    @jaxinterop.jit
    def f(model: Any) -> Any:
        for i in range(3):
            jaxinterop.debug.callback(ordered=True)(lambda m, i: seen.append(int(i)), model, i)
        return jaxinterop.io_callback(lambda m: m["a"] + 1, model["a"], model, ordered=True)

    w = jnp.float32(1.0)
    assert float(f({"a": w, "b": w})) == 2.0
    barrier()
    assert seen == [0, 1, 2]


def test_a_root_has_a_derivative() -> None:
    """The square root of a shared unknown, by Newton's method; its slope by the implicit rule."""

    def root(target: Any) -> Any:
        def residual(p: Any) -> Any:
            value = p["x"] * p["same"] - target
            return {"x": value, "same": value, "name": p["name"]}

        def newton(f: Any, p: Any) -> Any:
            for _ in range(8):
                x = p["x"] - f(p)["x"] / (2 * p["x"])
                p = {**p, "x": x, "same": x}
            return p, {"steps": 8.0, "last": p}  # JAX 0.10 takes no integers there

        def linear(g: Any, y: Any) -> Any:
            one = jnp.ones_like(y["x"])
            x = y["x"] / g({**y, "x": one, "same": one})["x"]
            return {**y, "x": x, "same": x}

        start = jnp.ones_like(target)
        guess = {"x": start, "same": start, "name": "root"}
        found, aux = jaxinterop.custom_root(residual, guess, newton, linear, has_aux=True)
        assert found["x"] is found["same"]
        assert aux["last"]["x"] is aux["last"]["same"]
        return found["x"]

    assert float(root(jnp.float32(9.0))) == pytest.approx(3.0)
    assert float(jax.grad(root)(jnp.float32(9.0))) == pytest.approx(1 / 6)
    assert float(jaxinterop.jit(jaxinterop.grad(root))(jnp.float32(9.0))) == pytest.approx(1 / 6)


def test_linear_equations_have_derivatives() -> None:
    """Forward and backward, by the transposed solver."""

    def solved(b: Any) -> Any:
        def matvec(p: Any) -> Any:
            return pydag.dag_map(lambda x: x * 4.0, p)

        def solve(matvec: Any, p: Any) -> Any:
            scale = matvec(pydag.dag_map(jnp.ones_like, p))
            return pydag.dag_map(jnp.divide, p, scale)

        x = jaxinterop.custom_linear_solve(matvec, {"a": b, "b": b}, solve, transpose_solve=solve)
        assert x["a"] is x["b"]
        return x["a"] + x["b"]

    assert float(solved(jnp.float32(2.0))) == 1.0
    assert float(jax.grad(solved)(jnp.float32(2.0))) == 0.5
    assert float(jax.jvp(solved, (jnp.float32(2.0),), (jnp.float32(1.0),))[1]) == 0.5


def test_a_solver_that_unties() -> None:
    """Is told with both paths, and which function it was."""
    w = jnp.float32(2.0)
    tree = {"a": w, "b": w}
    with pytest.raises(pydag.SharingError, match=r"x\['a'\] and x\['b'\] are one object"):
        jaxinterop.custom_linear_solve(
            lambda p: {"a": p["a"], "b": p["b"] + 0}, tree, lambda f, b: b, symmetric=True
        )
