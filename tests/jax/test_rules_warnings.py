# SPDX-License-Identifier: Apache-2.0
"""Warnings: what is lost, what was tied, and numbers that change at each call."""

import io
import logging
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax_models import Net

import pydag
import pydag.jaxinterop as pj

X = jnp.array([1.0, 2.0])
Z = jnp.zeros(2)


class Norm(pj.Module):
    """A module that has a mean, configuration, and no cache at first."""

    def __init__(self) -> None:
        self.mean, self.calls, self.inference, self.cached = X, 0, False, None
        self.log: list[Any] = [X * 3]


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
    """The path, the function, and the cures, once for each trace."""

    def loss(model: Any) -> Any:
        model.mean = model.mean * 0.9
        return (model.mean**2).sum()

    with pytest.warns(pj.LostUpdateWarning) as told:
        wrap(loss)(Norm())
    assert len(told) == 1
    assert told[0].filename == __file__
    text = str(told[0].message)
    assert ".mean, and the change is lost" in text
    assert f"loss at {__file__}" in text
    assert "Return what was changed" in text
    assert "change a copy" in text


def test_the_cure_names_the_argument_and_the_trace_tells_once() -> None:
    """By number or by name; a compiled function says it when it is traced."""

    def loss(x: Any, model: Any) -> Any:
        model.mean = model.mean * x
        return model.mean.sum()

    f = pj.jit(loss)
    with pytest.warns(pj.LostUpdateWarning, match=r"args\[1\]\.mean(.|\n)*update_argnums=1"):
        f(X, Norm())
    f(X, Norm())
    with pytest.warns(pj.LostUpdateWarning, match="update_argnames='model'"):
        f(X, model=Norm())


def test_a_body_names_its_own_parameters() -> None:
    """In a loop the path begins with the name of the body's parameter."""

    def body(x: Any, block: Any) -> Any:
        block.mean = block.mean * 2
        return x + block.mean, None

    blocks = pj.tree.map(lambda a: jnp.stack([a, a]), Norm())
    with pytest.warns(pj.LostUpdateWarning, match=r"body at .* changed block\.mean, "):
        pj.scan(body, X, blocks)


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
        pj.jit(f)({"m": Norm()})
    assert f"args[0]['m']{path}" in str(told[0].message)


def test_a_change_beside_an_updated_argument() -> None:
    """An argument that is updated says nothing about another one of its class."""

    def f(one: Any, two: Any) -> Any:
        one.mean, two.mean = one.mean + 1, two.mean + 1
        return one.mean.sum()

    with pytest.warns(pj.LostUpdateWarning) as told:
        pj.jit(f, update_argnums=0)(Norm(), pj.tree.copy(Norm()))
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
        (lambda b: (b.pop("labels") - b["x"]).sum(), {"labels": Z, "x": X}),
        (lambda b: [b.update(x=b["x"] / 255), b["x"].sum()][1], {"x": X}),
        (lambda b: [b.append(b[0] > 0), b[1] * b[0]][1], [X]),
        (
            lambda b: [b.update(m=pj.tree.map(lambda a: a * 2, b["m"])), b["m"].mean][1],
            {"m": Norm()},
        ),
        (lambda m: (_set(m, inference=True), m.mean * 2)[1], Norm()),
        (lambda m: (_set(m, log=list(m.log), name="n"), m.mean * 2)[1], Norm()),
        (lambda m: _changed(m).mean, Norm()),
        (_changed, Norm()),
        (lambda m: {"model": [_changed(m)]}, Norm()),
        (lambda m: pj.Dag({"m": _changed(m)}), Norm()),
        (lambda m: pydag.dag_copy(_changed(m)), Norm()),
        (lambda m: pj.tree.map(lambda a: a * 2, _changed(m)), Norm()),
        (lambda m: _changed(pj.tree.copy(m)).mean.sum(), Norm()),
        (lambda layer: layer.weight.sum(), Casting([1.0, 2.0])),
    ],
)
def test_silent_about_changes(f: Any, arg: Any) -> None:
    """Plain dicts and lists, flags, what is returned, copies, and what a class does when built."""
    pj.jit(f)(arg)


# --- ties ---


class Pair(eqx.Module):
    a: Any
    b: Any


class Triple(Pair):
    c: Any


@pytest.mark.parametrize("wrap", ["jit", "checkpoint", "vmap", "eval_shape"])
@pytest.mark.parametrize("part", ["whole", "part"])
def test_every_wrapper_tells_of_a_lost_tie(wrap: str, part: str) -> None:
    """A result, or a part of it, in which what was one object in the argument is two."""
    assert pj.LostTieWarning is pydag.errors.LostTieWarning  # as is that of integrations.torch

    def scaled(tree: Any) -> Any:
        out = jax.tree.map(lambda x: x * 0.5, tree)
        return out if part == "whole" else {"out": [out], "loss": out.a.sum()}

    wrapped: dict[str, Any] = {
        "jit": pj.jit(scaled),
        "checkpoint": pj.checkpoint(scaled),
        "vmap": pj.vmap(scaled),
        "eval_shape": lambda tree: pj.eval_shape(scaled, tree),
    }
    with pytest.warns(pj.LostTieWarning) as told:
        wrapped[wrap](Pair(X, X))
    text = str(told[0].message)
    assert len(told) == 1
    assert "args[0].a and args[0].b are one object" in text
    assert "pj.tree.map" in text
    assert "dag_map" not in text


def test_a_layer_that_comes_back_as_two() -> None:
    """pydag warns of an object, too, whose arrays are still one."""
    layer = Pair(X, X + 1)
    with pytest.warns(pj.LostTieWarning, match=r"args\[0\]\.a and args\[0\]\.b are one"):
        pj.jit(lambda net: Pair(*(Pair(p.a, p.b) for p in (net.a, net.b))))(Pair(layer, layer))


def test_states_that_start_equal_are_no_tie() -> None:
    """Arrays of one value are one by chance, where their elements can be read."""

    def step(state: Any, x: Any) -> Any:
        return x, {"h": state["h"] + 1, "c": state["c"] * 2}

    _, state = pj.grad(step, 1, has_aux=True)({"h": Z, "c": Z}, 1.0)
    assert state["h"].tolist() == [1.0, 1.0]


def test_a_tie_that_one_of_two_copies_has_lost() -> None:
    """The copies may become two, and each keeps its own ties."""
    both = Triple(X, X, X + 1)
    with pytest.warns(pj.LostTieWarning, match=r"returned: result\['m'\]\.a and .*\['m'\]\.b"):
        pj.jit(lambda d: {"average": d["average"], "m": jax.tree.map(lambda x: x * 2, d["m"])})(
            {"average": both, "m": both}
        )


def test_an_equinox_module_that_jax_mapped() -> None:
    """pydag warns where configuration was mapped, too; `pj.tree.map` leaves configuration."""

    class Scale(eqx.Module):
        scale: jax.Array

    class Model(eqx.Module):
        a: Scale
        b: Scale
        drop: eqx.nn.Dropout

    part = Scale(X)
    model = Model(part, part, eqx.nn.Dropout(0.5))
    with pytest.warns(pj.LostTieWarning, match=r"args\[0\]\.a.* and args\[0\]\.b"):
        pj.jit(lambda m: jax.tree.map(lambda x: 0.9 * x if eqx.is_array(x) else x, m))(model)
    mapped = pj.jit(lambda m: pj.tree.map(lambda x: 0.9 * x, m))(model)
    assert mapped.a is mapped.b
    assert (mapped.drop.p, mapped.drop.inference) == (0.5, False)


KEY = jax.random.key(0)
PAIR = {"w": X, "v": X + 1}
SAME = {"w": X, "again": X}
BOTH = {"w": X, "again": X, "v": X + 1}


@pytest.mark.parametrize(
    ("f", "tree"),
    [
        (lambda s: (s[0] + 1, s[1] * 2), (X, X)),
        (lambda s: tuple(pj.tree.map(lambda x: x * 2, d) for d in s), (SAME, SAME)),
        (lambda d: {n: jax.random.split(k)[0] for n, k in d.items()}, {"a": KEY, "b": KEY}),
        (
            lambda d: {"a": d["a"] + 1, "b": d["b"] - 1},
            {"a": jnp.arange(2), "b": jnp.array([3, 4])},
        ),
        (lambda d: jax.tree.map(lambda x: x * 2, d), {"params": PAIR, "average": PAIR}),
        (
            lambda d: {n: pj.tree.map(lambda x: x * 2, d[n]) for n in d},
            {"m": BOTH, "average": BOTH},
        ),
        (lambda d: jax.tree.map(lambda x: x * 2, pydag.untie(d, ("b",))), {"a": X, "b": X}),
        (lambda m: {"a": m.w.sum(), "b": m.tied.sum()}, Net(X)),
        (lambda m: pj.tree.map(lambda x: x * 2, m), Net(X)),
        (lambda trees: trees[1], [SAME, {"w": X, "again": X + 1}]),
    ],
    ids=[
        "tuple",
        "in tuple",
        "keys",
        "integers",
        "copies",
        "tied copies",
        "untied",
        "other",
        "kept",
        "another",
    ],
)
def test_silent_about_ties(f: Any, tree: Any) -> None:
    """Where a tie is hardly meant, was untied on purpose, or is kept."""
    pj.jit(f)(tree)


# --- selections ---


# --- numbers ---


def test_explain_cache_misses_shows_what_differs() -> None:
    """The log names the path and both values."""
    said, logger = io.StringIO(), logging.getLogger("pydag.jaxinterop")
    handler = logging.StreamHandler(said)
    logger.addHandler(handler)
    model, f = Norm(), pj.jit(lambda m: m.mean.sum())
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
