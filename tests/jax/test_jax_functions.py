# SPDX-License-Identifier: Apache-2.0
"""Callables that hold a model, errors about functions, and what JAX promises of `jit`."""

from __future__ import annotations

import functools
import re
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax_models import Model

import pydag
import pydag.jaxinterop as pj

X = jnp.array([1.0, 2.0])


class Scale(eqx.Module):
    """An equinox module that can be called."""

    w: jax.Array

    def __call__(self, x: Any) -> Any:
        return self.w * x


class Trainer:
    """An object that nobody registered, with a model, or with a function."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def step(self, model: Any) -> Any:
        """Is given the model."""
        return model.w

    def twice(self, x: Any) -> Any:
        """Needs nothing of the object."""
        return 2 * x

    @classmethod
    def made(cls, x: Any) -> Any:
        """Needs nothing of the class."""
        return 2 * x


def by_hand(fun: Any) -> Any:
    """A wrapper that says what it wraps."""
    return functools.wraps(fun)(lambda x: fun(x))


def applied(fun: Any, x: Any) -> Any:
    """Calls a function that is an argument."""
    return fun(x)


PARTIAL: Any = jax.tree_util.Partial


# Functions that hold a model, of x: they give w * x.
HOLDERS: dict[str, Any] = {
    "method": lambda m: m.step,
    "module": lambda m: m,
    "partial": lambda m: functools.partial(Model.step, m),
    "partial of JAX": lambda m: PARTIAL(Model.step, m),
    "vmap": lambda m: pj.vmap(m.step),
    "jax.vmap": lambda m: jax.vmap(m),
    "checkpoint": lambda m: pj.checkpoint(m.step),
    "jax.checkpoint": lambda m: jax.checkpoint(m.step),
    "by hand": by_hand,
    "by hand twice": lambda m: by_hand(by_hand(m.step)),
    "partial of a wrapper": lambda m: functools.partial(by_hand(m)),
    "argument": lambda m: functools.partial(applied, by_hand(m)),
    "named after another": lambda m: functools.update_wrapper(pj.checkpoint(m), jnp.sin),
    "nested": lambda m: pj.checkpoint(jax.vmap(pj.checkpoint(by_hand(m.step)))),
    "keep_sharing": lambda m: pj.keep_sharing(jax.checkpoint)(m.step),
    "method of an object that holds it": lambda m: Trainer([m]).held[0].step,
}


@pytest.mark.parametrize("name", HOLDERS)
def test_a_callable_that_holds_a_model_is_refused_by_jit(name: str) -> None:
    """A TypeError with what to write, whatever wraps the callable."""
    cure = r"holds a model(.|\n)*pj\.jit\((Model\.step|Model\.__call__|step|applied)\)\(model"
    with pytest.raises(TypeError, match=cure):
        pj.jit(HOLDERS[name](Model()))


@pytest.mark.parametrize(
    ("held", "cure"),
    [
        (lambda: Scale(X), r"pj\.jit\(Scale\.__call__\)\(model"),
        (lambda: functools.partial(jnp.dot, X), r"\(model"),
        (lambda: functools.partial(Model.step, Model()), r"pj\.jit\(Model\.step\)\(model"),
        (lambda: Trainer([Model()]).step, r"pj\.jit\(Trainer\.step\)\(model"),
        (lambda: pj.vmap(pj.grad(Model().step)), r"pj\.jit\(Model\.step\)\(model"),
        (lambda: eqx.filter_grad(Scale(X)), r"\(model"),
        (lambda: functools.lru_cache(Model().step), r"pj\.jit\(Model\.step\)\(model"),
        (lambda: np.vectorize(Model()), r"\(model"),
        (lambda: pj.custom_jvp(Model().step), r"pj\.jit\(Model\.step\)\(model"),
    ],
    ids=[
        "equinox",
        "array",
        "partial",
        "trainer",
        "grad",
        "eqx.filter_grad",
        "cache",
        "NumPy",
        "custom",
    ],
)
def test_other_callables_that_hold_a_model(held: Any, cure: str) -> None:
    """Modules and wrappers of others, arrays in partials, attributes, and rules are refused."""
    with pytest.raises(TypeError, match=cure):
        pj.jit(held())


CALLS: dict[str, Any] = {
    "checkpoint": lambda f: pj.checkpoint(f)(jnp.ones(2)),
    "grad of checkpoint": lambda f: pj.vjp(pj.checkpoint(f), jnp.ones(2))[1](jnp.ones(2))[0],
    "cond": lambda f: pj.cond(True, f, f, jnp.ones(2)),
    "switch": lambda f: pj.switch(1, [f, f, f], jnp.ones(2)),
    "while_loop": lambda f: pj.while_loop(lambda c: (c == 1).all(), f, jnp.ones(2)),
}


# `jax.checkpoint` itself remembers what it traced.
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "name", [x for x in HOLDERS if x not in ("jax.checkpoint", "keep_sharing")]
)
def test_what_a_callable_holds_is_closed_over_at_each_call(name: str, call: str) -> None:
    """No answer is stale where JAX remembers traces by the function."""
    model = Model()
    model.w = jnp.float32(3.0)
    function = HOLDERS[name](model)
    assert CALLS[call](function).tolist() == [3.0, 3.0]
    model.w = jnp.float32(5.0)
    assert CALLS[call](function).tolist() == [5.0, 5.0]


@pytest.mark.parametrize("what", ["scan", "fori_loop", "map", "associative_scan"])
def test_bodies_that_hold_a_model(what: str) -> None:
    """Such bodies are traced anew, too."""
    model = Model()
    scaled = by_hand(model.step)
    bodies = {
        "scan": functools.wraps(scaled)(lambda c, _: (scaled(c), None)),
        "fori_loop": functools.wraps(scaled)(lambda _, c: scaled(c)),
        "map": scaled,
        "associative_scan": functools.wraps(scaled)(lambda a, b: scaled(a) + b),
    }
    calls: dict[str, Any] = {
        "scan": lambda f: pj.scan(f, jnp.ones(2), length=1)[0],
        "fori_loop": lambda f: pj.fori_loop(0, 1, f, jnp.ones(2)),
        "map": lambda f: pj.map(f, jnp.ones((1, 2)))[0],
        "associative_scan": lambda f: pj.associative_scan(f, jnp.ones((2, 2)))[1] - 1,
    }
    for weight in (X, 5 * X, 7 * X):
        model.w = weight
        assert calls[what](bodies[what]).tolist() == weight.tolist()


def triple(x: Any) -> Any:
    """Linear."""
    return 3 * x


PULLBACKS: dict[str, Any] = {
    "pj.vjp": lambda: pj.vjp(triple, X)[1],
    "pj.linearize": lambda: pj.linearize(triple, X)[1],
    "jax.vjp": lambda: jax.vjp(triple, X)[1],
    "jax.linearize": lambda: jax.linearize(triple, X)[1],
    "jax.linear_transpose": lambda: jax.linear_transpose(triple, X),
    "vmap": lambda: pj.vmap(pj.vjp(jnp.sin, jnp.float32(0.0))[1]),
    "by hand": lambda: by_hand(jax.vjp(triple, X)[1]),
    "of a model": lambda: pj.vjp(Model().step, X)[1],
}


@pytest.mark.parametrize("name", PULLBACKS)
def test_a_pullback_is_no_model(name: str) -> None:
    """A pullback holds constants that never change, so `jit` takes it, as `jax.jit` does."""
    pull = PULLBACKS[name]()
    [once], [compiled] = (jax.tree.leaves(f(X)) for f in (pull, pj.jit(pull)))
    assert compiled.tolist() == once.tolist()


@functools.wraps(Trainer)
def like_a_class(x: Any) -> Any:
    """Says that it wraps a class."""
    return 2 * x


PLAIN: dict[str, Any] = {
    "wraps a function": lambda: by_hand(triple),
    "wraps a compiled function": lambda: by_hand(pj.jit(triple)),
    "wraps a class": lambda: like_a_class,
    "wraps a method": lambda: by_hand(Trainer(3).twice),
    "method": lambda: Trainer([jnp.tanh, 3, None]).twice,
    "class method": lambda: Trainer.made,
    "partial of numbers": lambda: functools.partial(lambda n, x: n * x, 3),
    "closure": lambda: (lambda w: lambda x: w * x)(X),
    "jnp.vectorize": lambda: jnp.vectorize(lambda x: 2 * x),
    "eqx.filter_jit": lambda: eqx.filter_jit(triple),
    "eqx.filter_grad": lambda: eqx.filter_grad(lambda x: (x * x).sum()),
    "pj.grad": lambda: pj.grad(lambda x: (x * x).sum()),
    "ufunc": lambda: jnp.tanh,
    "policy": lambda: pj.checkpoint(triple, policy=jax.checkpoint_policies.everything_saveable),
    "selected": lambda: pj.grad(lambda x: (x * x).sum(), wrt=jax.Array),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_callable_without_a_model_is_compiled(name: str) -> None:
    """Functions, numbers and classes are no model; what a function closes over is JAX's matter."""
    function = PLAIN[name]()
    assert pj.jit(function)(X).tolist() == function(X).tolist()


def test_jit_as_a_decorator_in_a_class_makes_a_method() -> None:
    """The model is an argument of it: a changed weight counts."""
    model = Model()
    assert model.compiled(2.0).tolist() == [2.0, 4.0]
    model.w = X * 10
    assert model.compiled(2.0).tolist() == [20.0, 40.0]
    assert float(pj.jit(functools.partial(jnp.sum, axis=0))(X)) == 3.0


# --- errors ---
def failing(model: Any, x: Any) -> Any:
    """Needs the value of a traced array."""
    return x if model.w[0] > 0 else -x


@pytest.mark.parametrize(
    "call",
    [
        lambda: pj.jit(failing)(Model(), X),
        lambda: pj.checkpoint(failing)(Model(), X),
        lambda: pj.vmap(failing)(pj.tree.map(lambda w: w[None], Model()), X[None]),
        lambda: pj.cond(True, failing, failing, Model(), X),
        lambda: pj.scan(lambda c, x: (c, failing(Model(), x)) if c > 0 else c, 0.0, X),
    ],
    ids=["jit", "checkpoint", "vmap", "cond", "scan"],
)
def test_jaxs_error_types_and_few_frames(call: Any) -> None:
    """An error of JAX's keeps its type, and shows at most three frames of pydag."""
    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        call()
    frames = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert sum(str(Path(pydag.__file__).parent) in name for name in frames) <= 3


def test_errors_name_paths_and_the_users_function() -> None:
    """JAX's words speak of the user's function, and of the path of the leaf."""
    with pytest.raises(TypeError, match=r"args\[0\]\['layers'\]\[1\]\.w"):
        pj.jit(lambda t: t)({"layers": [Model(), _with_object()]})
    with pytest.raises(jax.errors.TracerBoolConversionError, match=r"failing at .*test_jax_func"):
        pj.jit(failing)(Model(), X)
    wrapped: Any = pj.jit(failing)
    assert wrapped.__wrapped__ is failing


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (lambda pj: pj.jit(failing, donate=0), r"jit\(\).*'donate'. Did you mean 'donate_argnums'"),
        (lambda pj: pj.jit(failing, update_argnum=0), "Did you mean 'update_argnums'"),
        (lambda pj: pj.vmap(failing, in_axis=0), r"vmap\(\).*'in_axis'. Did you mean 'in_axes'"),
        (
            lambda pj: pj.scan(failing, 0, namespaces=""),
            r"scan\(\).*'namespaces'. Did you mean 'namespace'",
        ),
        (lambda pj: pj.jit(X), r"can't be called: f32\[2\]\n  Pass the function itself"),
        (lambda pj: pj.grad(X), r"can't be called: f32\[2\]\n  Pass the function itself"),
        (lambda pj: pj.cond(True, len, 42), "can't be called: 42"),
        (lambda pj: pj.switch(0, [len, 42]), "can't be called: 42"),
        (lambda pj: pj.while_loop(42, len, 0), "can't be called: 42"),
        (lambda pj: pj.while_loop(len, 42, 0), "can't be called: 42"),
        (lambda pj: pj.fori_loop(0, 1, 42, 0), "can't be called: 42"),
        (lambda pj: pj.scan(42, 0, X), "can't be called: 42"),
        (lambda pj: pj.map(42, X), "can't be called: 42"),
        (lambda pj: pj.associative_scan(42, 0), "can't be called: 42"),
        (lambda pj: pj.grad(failing, "w"), r"'w' can't be.*integer\n.*selected by wrt="),
        (lambda pj: pj.grad(lambda x: (x, 1))(1.0), r"pair of its value.*has_aux=True"),
        (lambda pj: pj.grad(lambda x: x, (0, -1))(1.0), r"\(0, -1\) names an argument twice"),
        (lambda pj: pj.cond(True, len, len, X, operand=X), "others by position"),
        (lambda pj: _by_rule(pj, X), "cotangent for each of 1 arguments"),
        (lambda pj: _by_rule(pj, ({"b": X},)), "at the cotangent of argument 0 of by_rule"),
    ],
)
def test_mistakes_get_a_cure(mistake: Any, text: str) -> None:
    """A TypeError that says what to write."""
    with pytest.raises(TypeError) as caught:
        mistake(pj)  # untyped: a type checker would find these
    assert re.search(text, "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())]))


def _by_rule(pj: Any, cotangents: Any) -> Any:
    """A gradient that a rule gives."""

    def by_rule(tree: Any) -> Any:
        return tree["a"].sum()

    function = pj.custom_vjp(by_rule)
    function.defvjp(lambda tree: (by_rule(tree), None), lambda saved, cotangent: cotangents)
    return pj.grad(function)({"a": X})


def _with_object() -> Any:
    model: Any = Model()
    model.w = object()
    return model


# --- what JAX promises ---
def placed(*axes: str) -> NamedSharding:
    """A sharding, made anew."""
    mesh = Mesh(jax.devices()[:1], ("x",))
    return NamedSharding(mesh, PartitionSpec(*axes))  # type: ignore[no-untyped-call]  # JAX's class has no types


@pytest.mark.parametrize(
    "options",
    [
        dict,
        lambda: {"static_argnames": "n"},
        lambda: {"donate_argnums": ()},
        lambda: {"in_shardings": ({"a": placed("x")}, None)},
        lambda: {"out_shardings": {"a": placed()}},
        lambda: {"compiler_options": {}},
    ],
    ids=["none", "static", "donated", "in", "out", "dict"],
)
def test_wrapping_again_compiles_nothing_anew(options: Any) -> None:
    """The same function, or partial, with equal options is traced once."""
    traces = []

    def f(tree: Any, n: Any) -> Any:
        traces.append(n)
        return {"a": tree["a"] * 2}

    partial = functools.partial(f)
    for _ in range(3):
        pj.jit(f, **options())({"a": X}, 2)
        pj.jit(partial, **options())({"a": X}, 2)
    assert len(traces) == 2


def test_dags_pullbacks_and_derived_are_pytrees() -> None:
    """All of these go through plain `jax.jit`."""
    tied = {"a": X, "b": X}
    dag = jax.jit(lambda d: jax.tree.map(lambda x: x * 2, d))(pj.Dag(tied))
    assert dag.tree["a"] is dag.tree["b"]
    pullback = jax.jit(lambda x: pj.vjp(lambda t: t["a"] * t["b"], {"a": x, "b": x})[1])(X)
    assert pullback(jnp.ones(2))[0]["a"].tolist() == [2.0, 4.0]
    pushforward = pj.linearize(lambda t: t["a"] * t["b"], tied)[1]
    assert pj.jit(lambda f, t: f(t))(pushforward, tied).tolist() == [2.0, 8.0]
    derived = pj.Derived(jnp.transpose, X[None])
    assert len(jax.tree.leaves(derived)) == 1


def test_cycles_and_depth() -> None:
    """A tree that holds itself is an error with its path; how deep a tree is doesn't matter."""
    cycle: dict[str, Any] = {"a": X}
    cycle["self"] = cycle
    with pytest.raises(ValueError, match=r"cycle(.|\n)*\['self'\]"):
        pj.jit(lambda t: t["a"])(cycle)
    deep: Any = X
    for _ in range(100_000):
        deep = [deep]
    assert pj.jit(lambda t: 1)(deep) == 1
    chain: Any = {"x": X}
    for _ in range(300):
        chain = {"x": X + 0, "inner": chain}
    assert pj.jit(lambda t: 1)(chain) == 1  # paths that are one when they are shortened


ONES = jnp.ones(3)


class Counting(pj.Module):
    """A model with methods for every wrapper."""

    def __init__(self) -> None:
        self.w, self.depth = jnp.zeros(3), 2

    def __call__(self, x: Any) -> Any:
        return self.w @ x

    def loss(self, x: Any, target: Any = 3.0) -> Any:
        return (self(x) - target) ** 2

    def step(self, carry: Any, x: Any) -> Any:
        carry = carry + self(x)
        return carry, carry

    def once(self, _: Any, carry: Any) -> Any:
        return carry + self(ONES)

    def more(self, carry: Any) -> Any:
        return carry + self(ONES) + 1

    def goes_on(self, carry: Any) -> Any:
        return carry < 2 + self(ONES)

    def added(self, one: Any, other: Any) -> Any:
        return one + other + self(ONES)


def function(model: Any, x: Any, power: int = 1) -> Any:
    """A function for partials."""
    return model(x) ** power


XS = jnp.stack([ONES, ONES])

# Makes of a model a function of an array, and what that gives for weights of 0 and of 1.
IN_PLACE: dict[str, tuple[Callable[[Any], Callable[..., Any]], Any, Any]] = {
    "value_and_grad": (lambda net: lambda x: pj.value_and_grad(net.loss)(x)[0], 9.0, 0.0),
    "grad": (lambda net: lambda x: jnp.sum(pj.grad(net)(x)), 0.0, 3.0),
    "jacfwd": (lambda net: lambda x: jnp.sum(pj.jacfwd(net)(x)), 0.0, 3.0),
    "vmap": (lambda net: lambda x: pj.vmap(net)(x[None])[0], 0.0, 3.0),
    "checkpoint": (lambda net: pj.checkpoint(net.loss), 9.0, 0.0),
    "scan": (lambda net: lambda x: pj.scan(net.step, 0.0, XS)[0], 0.0, 6.0),
    "associative_scan": (lambda net: lambda x: pj.associative_scan(net.added, XS)[1, 0], 2.0, 5.0),
    "map": (lambda net: lambda x: pj.map(net, XS)[0], 0.0, 3.0),
    "fori_loop": (lambda net: lambda x: pj.fori_loop(0, 2, net.once, 0.0), 0.0, 6.0),
    "while_loop": (lambda net: lambda x: pj.while_loop(net.goes_on, net.more, 0.0), 2.0, 8.0),
    "cond": (lambda net: lambda x: pj.cond(True, net, jnp.sum, x), 0.0, 3.0),
    "switch": (lambda net: lambda x: pj.switch(1, [jnp.sum, net.loss], x), 9.0, 0.0),
    "vjp": (lambda net: lambda x: pj.vjp(net.loss, x)[0], 9.0, 0.0),
    "jvp": (lambda net: lambda x: pj.jvp(net, (x,), (x,))[1], 0.0, 3.0),
    "linearize": (lambda net: lambda x: pj.linearize(net, x)[1](x), 0.0, 3.0),
    "make_jaxpr": (
        lambda net: (
            lambda x: jax.core.eval_jaxpr(
                (closed := pj.make_jaxpr(net)(x)).jaxpr, closed.consts, x
            )[0]
        ),
        0.0,
        3.0,
    ),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_training_in_place_changes_the_answer(name: str) -> None:
    """The answer is that of the model as it is at the call, and nothing is warned about."""
    make, before, after = IN_PLACE[name]
    net = Counting()
    wrapped = make(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(jnp.sum(wrapped(ONES))) == before
        net.w = jnp.ones(3)
        assert float(jnp.sum(wrapped(ONES))) == after
