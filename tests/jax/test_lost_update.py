# SPDX-License-Identifier: Apache-2.0
"""Warnings: lost updates, and numbers that change at each call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import pydag
import pydag.jaxinterop as pj
from pydag.jaxinterop import LostUpdateWarning


@pydag.register_module
class Norm:
    """A part with a running mean."""

    def __init__(self) -> None:
        self.mean = jnp.zeros(3)
        self.calls = 0


@pydag.register_module
class Net:
    """A module that changes itself when it is called."""

    def __init__(self) -> None:
        self.w = jnp.ones(3)
        self.norm = Norm()
        self.lazy: Any = None

    def __call__(self, x: Any) -> Any:
        self.norm.mean = 0.9 * self.norm.mean + 0.1 * x
        return self.w * x - self.norm.mean


X = jnp.ones(3)


def fresh_loss() -> Any:
    """A function that no wrapper has traced yet."""

    def loss(model: Any, x: Any) -> Any:
        return model(x).sum()

    return loss


loss = fresh_loss()


def with_model(model: Any, x: Any) -> Any:
    """Changes the model, and returns it, too."""
    return model(x).sum(), model


def test_aux_is_a_result() -> None:
    """What `has_aux` hands on is not lost."""
    pj.grad(with_model, has_aux=True)(Net(), X)
    pj.jit(pj.value_and_grad(with_model, has_aux=True))(Net(), X)


class Cell(pj.Module):
    """A cell that keeps its state."""

    def __init__(self) -> None:
        self.h, self.w = jnp.zeros(3), jnp.ones(3)
        self.calls, self.training = 0, True
        self.log: list[Any] = [jnp.zeros(3)]

    def __call__(self, x: Any) -> Any:
        self.h = jnp.tanh(self.w * self.h + x)
        return self.h


def test_a_list_of_the_module_that_is_returned() -> None:
    """The list was changed and is in the result; the module, which wasn't, need not be."""

    def f(cell: Any) -> Any:
        cell.log.append(cell.w + 1)
        return cell.log

    pj.jit(f)(Cell())


def test_a_module_of_nnx_that_is_split() -> None:
    """What `nnx.split` gives of a changed module is the module."""

    class Counting(nnx.Module):
        def __init__(self) -> None:
            self.h, self.calls = nnx.Variable(jnp.zeros(3)), 0

    def counted(m: Any) -> Any:
        m.calls += 1
        m.h[...] += 1
        return nnx.split(m)

    merged = nnx.merge(*pj.jit(counted)(Counting()))
    assert (merged.calls, merged.h[0]) == (1, 1)


def test_the_outer_model_is_not_changed_by_an_inner_function() -> None:
    """Only the innermost wrapper tells: the function outside has objects of its own."""

    def step(model: Any, x: Any) -> Any:
        return pj.grad(fresh_loss())(model, x)

    with pytest.warns(LostUpdateWarning) as told:
        pj.jit(step)(Net(), X)
    assert len(told) == 1
    assert "loss at" in str(told[0].message)


def test_bare_arrays_are_variables_of_their_own() -> None:
    """One array given twice, of which the function makes nothing, is no change."""
    pj.grad(lambda a, b, p: (a * b).sum() + p["x"].sum(), argnums=(0, 1))(X, X, {"x": jnp.ones(3)})
    pj.vmap(lambda a, b: a * b, in_axes=(0, None))(X, X)


def test_something_that_cannot_be_flattened_is_left_alone() -> None:
    """A function may put anything into its argument, such as the argument itself."""

    def f(p: Any) -> Any:
        p["self"] = p
        return p["a"] + 1

    pj.jit(f)({"a": X})


def test_a_module_of_nnx() -> None:
    """A counter that never advances warns; a module that is returned does not."""
    model = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    with pytest.warns(LostUpdateWarning, match=r"args\[0\].rngs.count"):
        pj.jit(lambda m, x: m(x))(model, X)
    pj.jit(lambda m, x: (m(x), m))(model, X)
    pj.grad(lambda m, x: (m(x).sum(), m), argnums=1, has_aux=True)(model, X)


OUTER: dict[str, Callable[[Any, Any], Any]] = {
    "jit": lambda f, m: pj.jit(f)(m),
    "grad": lambda f, m: pj.grad(f)(m),
    "grad in jit": lambda f, m: pj.jit(lambda m: pj.grad(f)(m))(m),
    "by another argument": lambda f, m: pj.grad(lambda x, m: f(m) * x)(1.0, m),
    "checkpoint": lambda f, m: pj.checkpoint(f)(m),
    "vmap": lambda f, m: pj.vmap(lambda x, m: f(m), in_axes=(0, None))(X, m),
    "cond": lambda f, m: pj.cond(True, f, f, m),
}
INNER: dict[str, Callable[[Any], Any]] = {
    "nnx.jit": lambda m: nnx.jit(lambda m: m(jnp.ones((2, 3))).sum())(m),
    "nnx.remat": lambda m: nnx.remat(lambda m: m(jnp.ones((2, 3))))(m).sum(),
    "nested": lambda m: nnx.jit(lambda m: nnx.remat(lambda m: m(jnp.ones((2, 3))))(m))(m).sum(),
    "nnx.cond": lambda m: nnx.cond(True, lambda m: m(jnp.ones((2, 3))).sum(), lambda m: 0.0, m),
}


@pytest.mark.parametrize("outer", OUTER.values(), ids=OUTER)
@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_what_a_transformation_of_nnx_writes_back(inner: Any, outer: Any) -> None:
    """What it left alone is no change; what it changed is one."""
    outer(inner, nnx.Linear(3, 3, rngs=nnx.Rngs(0)))
    norm = nnx.BatchNorm(3, momentum=0.9, rngs=nnx.Rngs(0))
    with pytest.warns(LostUpdateWarning) as told:
        outer(inner, norm)
    assert "mean.value, args" in str(told[0].message) or "mean.value, m." in str(told[0].message)
    assert "scale" not in str(told[0].message)


HANDED: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "jit": (lambda x: jax.jit(lambda x: x)(x), False),
    "one of two": (lambda x: jax.jit(lambda x, y: (y, x))(x, x + 1)[1], False),
    "the other one": (lambda x: jax.jit(lambda x, y: (y, x))(x, x + 1)[0], True),
    "scan": (lambda x: jax.lax.scan(lambda c, _: (c, None), x, length=3)[0], False),
    "rows": (lambda x: jax.lax.scan(lambda c, row: (c, row), 0.0, x)[1], False),
    "a carry that rotates": (
        lambda x: jax.lax.scan(lambda c, _: (c[::-1], None), (x, x + 1), length=3)[0][0],
        True,
    ),
    "one branch": (lambda x: jax.lax.cond(x.sum() > 0, lambda x: x, lambda x: 2 * x, x), True),
    "both branches": (lambda x: jax.lax.cond(x.sum() > 0, lambda x: x, lambda x: x, x), False),
    "while": (
        lambda x: jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0], c[1] + 1), (x, 0))[0],
        False,
    ),
    "sum": (lambda x: jax.jit(lambda x: x + 1)(x), True),
}


@pytest.mark.parametrize("name", HANDED)
def test_what_an_inner_function_of_jax_hands_through(name: str) -> None:
    """The program of the inner function decides whether an attribute was changed."""
    inner, is_change = HANDED[name]

    def f(cell: Any) -> Any:
        cell.h = inner(cell.h)
        return cell.w.sum()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pj.jit(f)(Cell())
    assert [warning.category for warning in caught] == [LostUpdateWarning] * is_change


def test_where_nothing_runs() -> None:
    """`eval_shape` and `make_jaxpr` lose nothing; the function warns when it is compiled after."""
    loss = fresh_loss()
    pj.eval_shape(loss, Net(), X)
    pj.make_jaxpr(loss)(Net(), X)
    with pytest.warns(LostUpdateWarning):
        pj.jit(loss)(Net(), X)


def test_all_arguments_are_in_the_cure() -> None:
    """Of several that are changed in vain, all numbers and names are said."""

    def change(a: Any, b: Any, *, c: Any) -> Any:
        return a(X) + b(X) + c(X)

    text = r"update_argnums=\(0, 1\) and update_argnames='c': then"
    with pytest.warns(LostUpdateWarning, match=text):
        pj.jit(change)(Net(), Net(), c=Net())


W = jnp.ones(3)


class Counted(pj.Module):
    def __init__(self, **parts: Any) -> None:
        self.w = W
        vars(self).update(parts)


def said(calls: Iterable[tuple[Any, ...]], **options: Any) -> list[str]:
    """What is said when a function is called with these arguments, one after the other."""

    def step(*args: Any) -> Any:
        return jnp.float32(0)

    compiled = pj.jit(step, **options)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for args in calls:
            compiled(*args)
    assert all(warning.filename == __file__ for warning in caught)
    assert all(warning.category is UserWarning for warning in caught)
    return [str(warning.message) for warning in caught]


CHANGING: dict[str, tuple[Callable[[int], Any], str]] = {
    # what changes: (the argument of call i, what is said at the fourth compilation)
    "a number": (
        lambda i: Counted(rate=0.5 * i),
        "args[0].rate, a number of a module: 0.0, 0.5, 1.0",
    ),
    "a count": (
        lambda i: [Counted(), Counted(n=i)],
        "args[0][1].n, a number of a module: 0, 1, 2, 3",
    ),
    "in a list": (
        lambda i: Counted(rates=[0.5, i]),
        "args[0].rates[1], a number of a module: 0, 1, 2",
    ),
    "beside a text that changes": (
        lambda i: Counted(n=i, name=f"step{i}", is_training=i % 2 == 0),
        "args[0].n, a number of a module: 0, 1, 2, 3",
    ),
}


@pytest.mark.parametrize("name", CHANGING)
def test_a_number_that_was_another_one_each_time(name: str) -> None:
    """The fourth trace warns, once, with the path, the values and the cure; not a sooner one."""
    make, expected = CHANGING[name]
    assert said((make(i), W) for i in range(3)) == []
    [text] = said((make(i), W) for i in range(9))
    assert text.startswith("step at ")
    assert expected in text
    assert "Make it an array" in text


NOT_TOLD: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "shapes": lambda i: (jnp.ones(i + 1), Counted(n=1)),
    "a flag and a mode": lambda i: (
        Counted(is_training=i % 2 == 0, mode=("train", "eval")[i // 2 % 2]),
    ),
    "three numbers": lambda i: (Counted(n=i % 3),),
    "a text": lambda i: (Counted(tag=f"step{i}"),),
    "a function": lambda i: (Counted(act=lambda x: x),),
    "a length": lambda i: (Counted(losses=[W] * i),),
    "keys": lambda i: ({f"step{i}": W},),
    "a number that is data": lambda i: ({"rate": 0.5 * i}, float(i)),
    "static arguments": lambda i: (W, i),
    "models of other classes": lambda i: ([Counted(n=i), {"n": i}, [Counted(n=i)]][i % 3],),
}


@pytest.mark.parametrize("name", NOT_TOLD)
def test_what_is_not_told(name: str) -> None:
    """Whatever else a function is compiled for: JAX's own log explains it."""
    static = {"static_argnums": 1} if name.startswith("static") else {}
    assert said(map(NOT_TOLD[name], range(12)), **static) == []


def test_a_large_model() -> None:
    """A structure that is exponentially long when unfolded is looked at once for each object."""
    node: Any = [W]
    for _ in range(60):
        node = [node, node]
    [text] = said((node, Counted(n=i)) for i in range(4))
    assert "args[1].n, a number" in text
