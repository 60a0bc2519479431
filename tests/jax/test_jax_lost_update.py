# SPDX-License-Identifier: Apache-2.0
"""Warnings about lost updates, and about numbers that change at each call."""

from __future__ import annotations

import io
import logging
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
    """The cure has all numbers and names of several that are changed in vain."""

    def change(a: Any, b: Any, *, c: Any) -> Any:
        return a(X) + b(X) + c(X)

    text = r"update_argnums=\(0, 1\) and update_argnames='c': then"
    with pytest.warns(LostUpdateWarning, match=text):
        pj.jit(change)(Net(), Net(), c=Net())


class Counted(pj.Module):
    def __init__(self, **parts: Any) -> None:
        self.w = X
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
    assert said((make(i), X) for i in range(3)) == []
    [text] = said((make(i), X) for i in range(9))
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
    "a length": lambda i: (Counted(losses=[X] * i),),
    "keys": lambda i: ({f"step{i}": X},),
    "a number that is data": lambda i: ({"rate": 0.5 * i}, float(i)),
    "static arguments": lambda i: (X, i),
    "models of other classes": lambda i: ([Counted(n=i), {"n": i}, [Counted(n=i)]][i % 3],),
}


@pytest.mark.parametrize("name", NOT_TOLD)
def test_what_is_not_told(name: str) -> None:
    """Whatever else a function is compiled for: JAX's own log explains it."""
    static = {"static_argnums": 1} if name.startswith("static") else {}
    assert said(map(NOT_TOLD[name], range(12)), **static) == []


def test_a_large_model() -> None:
    """A structure that is exponentially long when unfolded is looked at once for each object."""
    node: Any = [X]
    for _ in range(60):
        node = [node, node]
    [text] = said((node, Counted(n=i)) for i in range(4))
    assert "args[1].n, a number" in text


ROW = jnp.array([1.0, 2.0])
Z = jnp.zeros(2)


class Mean(pj.Module):
    """A module that has a mean, configuration, and no cache at first."""

    def __init__(self) -> None:
        self.mean, self.calls, self.inference, self.cached = ROW, 0, False, None
        self.log: list[Any] = [ROW * 3]


@jax.tree_util.register_pytree_node_class
class Casting:
    """A node written by hand, whose constructor casts."""

    def __init__(self, weight: Any) -> None:
        self.weight = jnp.asarray(weight)

    def tree_flatten(self) -> Any:
        """The weight."""
        return (self.weight,), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Any:
        """Casts again."""
        return cls(*children)


def with_rule(make: Any, define: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A wrapper that gives a function a rule of its own."""

    def wrap(f: Any) -> Any:
        g = make(f)
        define(g, f)
        return g

    return wrap


WRAPPERS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "switch": lambda f: lambda m: pj.switch(0, [f, lambda m: m.mean.sum()], m),
    "jvp": lambda f: lambda m: pj.jvp(f, (m,), (pj.tree.map(jnp.ones_like, m),)),
    "custom_jvp": with_rule(
        pj.custom_jvp, lambda g, f: g.defjvp(lambda p, t: (f(*p), t[0].mean.sum()))
    ),
    "custom_vjp": with_rule(
        pj.custom_vjp, lambda g, f: g.defvjp(lambda m: (f(m), None), lambda _, ct: (None,))
    ),
    "keep_sharing": pj.keep_sharing(lambda f: f),
    "map": lambda f: lambda m: pj.map(f, pj.tree.map(lambda a: a[None], m)),
    "jit": pj.jit,
    "grad": pj.grad,
    "value_and_grad": pj.value_and_grad,
    "jacrev": pj.jacrev,
    "checkpoint": pj.checkpoint,
    "vmap": lambda f: pj.vmap(f, in_axes=None, axis_size=2),
    "vjp": lambda f: lambda m: pj.vjp(f, m),
    "linearize": lambda f: lambda m: pj.linearize(f, m),
    "cond": lambda f: lambda m: pj.cond(True, f, lambda m: m.mean.sum(), m),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_every_wrapper_tells_of_a_lost_change(wrap: Any) -> None:
    """The warning has the path, the function, and the cures, once for each trace."""

    def loss(model: Any) -> Any:
        model.mean = model.mean * 0.9
        return (model.mean**2).sum()

    with pytest.warns(pj.LostUpdateWarning) as told:
        wrap(loss)(Mean())
    assert len(told) == 1
    assert told[0].filename == __file__
    text = str(told[0].message)
    assert ".mean, and the change is lost" in text
    assert f"loss at {__file__}" in text
    assert "Return what was changed" in text
    assert "change a copy" in text


def test_the_cure_names_the_argument_and_the_trace_tells_once() -> None:
    """An argument is named by number or by name; a compiled function warns when it is traced."""

    def loss(x: Any, model: Any) -> Any:
        model.mean = model.mean * x
        return model.mean.sum()

    f = pj.jit(loss)
    with pytest.warns(pj.LostUpdateWarning, match=r"args\[1\]\.mean(.|\n)*update_argnums=1"):
        f(ROW, Mean())
    f(ROW, Mean())
    with pytest.warns(pj.LostUpdateWarning, match="update_argnames='model'"):
        f(ROW, model=Mean())


def test_a_body_names_its_own_parameters() -> None:
    """In a loop the path begins with the name of the body's parameter."""

    def body(x: Any, block: Any) -> Any:
        block.mean = block.mean * 2
        return x + block.mean, None

    blocks = pj.tree.map(lambda a: jnp.stack([a, a]), Mean())
    with pytest.warns(pj.LostUpdateWarning, match=r"body at .* changed block\.mean, "):
        pj.scan(body, ROW, blocks)


def _lazy(m: Any) -> None:
    m.cached = m.mean * 2


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda m: setattr(m, "calls", 1), ".calls"),
        (lambda m: delattr(m, "mean"), ".mean"),
        (lambda m: m.log.append(m.mean * 2), ".log[1]"),
        (lambda m: m.log.clear(), ".log[0]"),
        (_lazy, ".cached"),
    ],
)
def test_what_a_change_is(change: Any, path: str) -> None:
    """Numbers that change, items and attributes that come or go, a weight made lazily."""

    def f(box: Any) -> Any:
        change(box["m"])
        return jnp.zeros(())

    with pytest.warns(pj.LostUpdateWarning) as told:
        pj.jit(f)({"m": Mean()})
    assert f"args[0]['m']{path}" in str(told[0].message)
    assert ("make it an array" in str(told[0].message)) == (path == ".calls")


@pytest.mark.parametrize("wrap", [pj.jit, pj.checkpoint, pj.vmap, lambda f: pj.grad(f, argnums=1)])
@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda m, x: setattr(m, "mean", x), ".mean"),
        (lambda m, x: m.log.__setitem__(0, x), ".log[0]"),
        (lambda m, x: setattr(m, "mean", jax.jit(lambda a, b: (b, a))(m.mean, x)[0]), ".mean"),
        (lambda m, x: setattr(m, "mean", jax.jit(lambda a, b: (b, a))(x, m.mean)[0]), None),
    ],
)
def test_an_array_of_another_argument(wrap: Any, change: Any, path: str | None) -> None:
    """An attribute that gets another input's array was changed; one that gets its own wasn't."""

    def f(m: Any, x: Any) -> Any:
        change(m, x)
        return (0 * x).sum()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        wrap(f)(Mean(), jnp.array([5.0, 7.0]))
    assert [w.category for w in told] == [LostUpdateWarning] * (path is not None)
    assert all(f"args[0]{path}" in str(w.message) for w in told)


def test_a_change_beside_an_updated_argument() -> None:
    """An argument that is updated says nothing about another one of its class."""

    def f(one: Any, two: Any) -> Any:
        one.mean, two.mean = one.mean + 1, two.mean + 1
        return one.mean.sum()

    with pytest.warns(pj.LostUpdateWarning) as told:
        pj.jit(f, update_argnums=0)(Mean(), pj.tree.copy(Mean()))
    assert "args[1].mean" in str(told[0].message)
    assert "args[0]" not in str(told[0].message)


def _set(m: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(m, name, value)
    return m


def _changed(m: Any) -> Any:
    m.mean = m.mean + 1
    return m


@pytest.mark.parametrize(
    ("f", "arg"),
    [
        (lambda b: (b.pop("labels") - b["x"]).sum(), {"labels": Z, "x": ROW}),
        (lambda b: [b.update(x=b["x"] / 255), b["x"].sum()][1], {"x": ROW}),
        (lambda b: [b.append(b[0] > 0), b[1] * b[0]][1], [ROW]),
        (
            lambda b: [b.update(m=pj.tree.map(lambda a: a * 2, b["m"])), b["m"].mean][1],
            {"m": Mean()},
        ),
        (lambda m: (_set(m, inference=True), m.mean * 2)[1], Mean()),
        (lambda m: (_set(m, log=list(m.log), name="n"), m.mean * 2)[1], Mean()),
        (lambda m: _changed(m).mean, Mean()),
        (_changed, Mean()),
        (lambda m: {"model": [_changed(m)]}, Mean()),
        (lambda m: pj.Dag({"m": _changed(m)}), Mean()),
        (lambda m: pydag.dag_copy(_changed(m)), Mean()),
        (lambda m: pj.tree.map(lambda a: a * 2, _changed(m)), Mean()),
        (lambda m: _changed(pj.tree.copy(m)).mean.sum(), Mean()),
        (lambda layer: layer.weight.sum(), Casting([1.0, 2.0])),
    ],
)
def test_silent_about_changes(f: Any, arg: Any) -> None:
    """Plain dicts and lists, flags, what is returned, copies, and what a class does when built."""
    pj.jit(f)(arg)


# --- selections ---


# --- numbers ---
def test_explain_cache_misses_shows_what_differs() -> None:
    """The log names the path and both values."""
    said, logger = io.StringIO(), logging.getLogger("pydag.jaxinterop")
    handler = logging.StreamHandler(said)
    logger.addHandler(handler)
    model, f = Mean(), pj.jit(lambda m: m.mean.sum())
    try:
        f(model)
        model.calls = 7
        with jax.explain_cache_misses(True):
            f(model)
    finally:
        logger.removeHandler(handler)
    assert "args[0].calls" in said.getvalue()
    assert "first:  0" in said.getvalue()
    assert "second: 7" in said.getvalue()
