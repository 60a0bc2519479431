# SPDX-License-Identifier: Apache-2.0
"""What JAX's wrappers and their results have, ours have, or say that they haven't; signatures."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
from pydag import jaxinterop
from pydag import jaxinterop as pj

# What a function with a rule of JAX's has and ours hasn't: a rule may return what it logs as a part
# of the result, and `checkpoint` computes again.
LEFT_OUT = (
    *("defvjp_with_logs", "defvjp_with_accums", "defremat", "defremat_with_logs", "remat_rules"),
)


def f(x: Any) -> Any:
    """A function of one array."""
    return x * 2


def with_rule(m: Any, name: str) -> Any:
    """A function with a rule of its own."""
    g = getattr(m, name)(f)
    if name == "custom_vjp":
        g.defvjp(lambda x: (f(x), None), lambda _, t: (f(t),))
    else:
        g.defjvp(lambda p, t: (f(*p), f(*t)))
    return g


OBJECTS: dict[str, Callable[[Any], Any]] = {
    "jit": lambda m: m.jit(f),
    "grad": lambda m: m.grad(f),
    "value_and_grad": lambda m: m.value_and_grad(f),
    "vmap": lambda m: m.vmap(f),
    "checkpoint": lambda m: m.checkpoint(f),
    "jacfwd": lambda m: m.jacfwd(f),
    "jacrev": lambda m: m.jacrev(f),
    "hessian": lambda m: m.hessian(f),
    "make_jaxpr": lambda m: m.make_jaxpr(f),
    "custom_jvp": lambda m: with_rule(m, "custom_jvp"),
    "custom_vjp": lambda m: with_rule(m, "custom_vjp"),
    "traced": lambda m: m.jit(f).trace(1.0),
    "lowered": lambda m: m.jit(f).lower(1.0),
    "compiled": lambda m: m.jit(f).lower(1.0).compile(),
    "vjp": lambda m: m.vjp(f, 1.0)[1],
    "linearize": lambda m: m.linearize(f, 1.0)[1],
}


@pytest.mark.parametrize("name", OBJECTS)
def test_public_attributes(name: str) -> None:
    """All that the installed JAX has; of linear maps an error says how to have them of trees."""
    theirs, ours = OBJECTS[name](jax), OBJECTS[name](pj)
    for attribute in [n for n in dir(theirs) if not n.startswith("_") and n not in LEFT_OUT]:
        if name in ("vjp", "linearize"):
            with pytest.raises(AttributeError, match=rf"pj\.Dag to .*\.{attribute}"):
                getattr(ours, attribute)
        else:
            assert callable(getattr(ours, attribute)) == callable(getattr(theirs, attribute))


MESH = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
DECORATED = (
    "jit", "grad", "value_and_grad", "vmap", "checkpoint", "remat", "jacfwd", "jacrev", "hessian",
    "jacobian", "make_jaxpr", "custom_jvp", "custom_vjp",
)  # fmt: skip


def decorate(name: str, m: Any, g: Any) -> Any:
    return getattr(m, name)(g)


DECORATORS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: functools.partial(decorate, name) for name in DECORATED},
    "shard_map": lambda m, g: m.shard_map(g, mesh=MESH, in_specs=None, out_specs=None),
}
OURS: dict[str, Callable[[Any, Any], Any]] = {
    **DECORATORS,
    "keep_sharing": lambda _, g: pj.keep_sharing(jax.named_call)(g),
}


def described(x: int, *, y: str = "z") -> float:
    """It has a text."""
    return 1.0


COST = [4]
described.cost = COST  # type: ignore[attr-defined]  # any attribute


@pytest.mark.parametrize("name", OURS)
def test_a_wrapper_has_the_attributes_of_the_function(name: str) -> None:
    """Names, text, annotations, signature, the function itself, and whatever it was given."""
    wrapped = OURS[name](pj, described)
    assert wrapped.cost is COST
    assert wrapped.__wrapped__ is described
    assert (wrapped.__name__, wrapped.__qualname__) == ("described", "described")
    assert (wrapped.__doc__, wrapped.__module__) == ("It has a text.", __name__)
    assert wrapped.__annotations__ == described.__annotations__
    assert inspect.signature(wrapped) == inspect.signature(described)


@pytest.mark.parametrize("name", DECORATORS)
def test_signatures_of_wrapped_functions_are_those_of_jax(name: str) -> None:
    """Also of one that says another signature than it has, and of a partial."""
    other = functools.wraps(described)(lambda *args, **kwargs: 1.0)
    other.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # as decorators do
        [inspect.Parameter("q", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    )
    for g in (described, other, functools.partial(described, 3)):
        found = [inspect.signature(DECORATORS[name](m, g)) for m in (jax, pj)]
        assert found[0] == found[1]


def generator(x: Any) -> Any:
    """No function to JAX."""
    yield x


def rule(m: Any, found: Any) -> Any:
    """The tangent by a rule that returns this."""
    g = m.custom_jvp(lambda x: (x,))
    g.defjvp(lambda p, t: found(p[0], t[0]))
    return m.jvp(g, (1.0,), (1.0,))


def pulled(m: Any, found: Any) -> Any:
    """The gradient by a rule that returns this."""
    g = m.custom_vjp(f)
    g.defvjp(lambda x: (f(x), None), lambda _, t: found(t))
    return m.grad(g)(1.0)


def lax(m: Any) -> Any:
    return jax.lax if m is jax else m


XS = jnp.ones(3)

# Mistakes, and what JAX calls them.
MISTAKES: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "grad of a generator": (lambda m: m.grad(generator), TypeError),
    "value_and_grad of a static method": (lambda m: m.value_and_grad(staticmethod(f)), TypeError),
    "hessian of no function": (lambda m: m.hessian(42), TypeError),
    "make_jaxpr of no function": (lambda m: m.make_jaxpr(42), TypeError),
    "shard_map of no function": (lambda m: DECORATORS["shard_map"](m, 42), TypeError),
    "vjp of no function": (lambda m: m.vjp(42, 1.0), TypeError),
    "jvp of no function": (lambda m: m.jvp(42, (1.0,), (1.0,)), TypeError),
    "linearize of no function": (lambda m: m.linearize(42, 1.0), TypeError),
    "eval_shape of no function": (lambda m: m.eval_shape(42, 1.0), TypeError),
    "jvp of fewer tangents": (lambda m: m.jvp(f, (1.0, 2.0), (1.0,)), TypeError),
    "jvp of a tuple and a list": (lambda m: m.jvp(f, (1.0,), [1.0]), TypeError),
    "jvp of other keys": (lambda m: m.jvp(f, ({"a": 1.0},), ({"b": 1.0},)), TypeError),
    "jvp of another dtype": (lambda m: m.jvp(f, (XS,), (XS.astype("float16"),)), TypeError),
    "jvp of another shape": (lambda m: m.jvp(f, (XS,), (jnp.ones(4),)), ValueError),
    "linearize, other keys": (
        lambda m: m.linearize(lambda d: d["a"], {"a": 1.0})[1]({"b": 1.0}),
        TypeError,
    ),
    "vjp, another form": (lambda m: m.vjp(f, 1.0)[1]([1.0]), ValueError),
    "vjp with reduce_axes": (lambda m: m.vjp(f, 1.0, reduce_axes=("i",)), NotImplementedError),
    "a tangent of another form": (lambda m: rule(m, lambda p, t: ((p,), [t])), TypeError),
    "a rule without a pair": (lambda m: rule(m, lambda p, t: p), TypeError),
    "cotangents that are no tuple": (lambda m: pulled(m, lambda t: t), TypeError),
    "a cotangent of another form": (lambda m: pulled(m, lambda t: ([t, t],)), TypeError),
    "in_axes that is a dict": (lambda m: m.vmap(f, in_axes={"a": 0}), TypeError),
    "in_axes that is text": (lambda m: m.vmap(f, in_axes="a"), TypeError),
    "in_axes of an array": (lambda m: m.vmap(f, in_axes=(XS,)), TypeError),
    "too many in_axes": (lambda m: m.vmap(f, in_axes=(0, 0))(XS), ValueError),
    "a number of no argument": (lambda m: m.jit(f, static_argnums=4), ValueError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_types_of_errors(name: str) -> None:
    """They are JAX's, when a function is wrapped or when it is called."""
    mistake, kind = MISTAKES[name]
    for m in (jax, pj):
        with pytest.raises(kind) as caught:
            mistake(m)
        assert not isinstance(caught.value, pydag.SharingError)


TRANSFORMATIONS = (
    "grad", "value_and_grad", "vjp", "jvp", "linearize", "jacfwd", "jacrev", "hessian", "vmap",
    "shard_map", "checkpoint", "remat", "eval_shape", "make_jaxpr", "custom_jvp", "custom_vjp",
    "jit", "jacobian",
)  # fmt: skip
LOOPS = ("scan", "while_loop", "fori_loop", "cond", "switch", "associative_scan", "map")
KEYWORDS = ("namespace", "identity")
OF_LEAVES = ("saveable_args", "in_nzs")  # flags for each leaf: JAX's `vjp` of a function of a Dag


def theirs(name: str) -> Any:
    """JAX's function of this name."""
    return getattr(jax if name in TRANSFORMATIONS else jax.lax, name)


def is_object(default: Any) -> bool:
    """Whether a default is a mark that only its own library can tell."""
    return type(default) is object or type(default).__module__.startswith("jax.")


@pytest.mark.parametrize("name", [*TRANSFORMATIONS, *LOOPS])
def test_the_signature_is_that_of_jax(name: str) -> None:
    """All parameters of the installed JAX, in order, with their defaults; ours have keywords."""
    wrapper = getattr(jaxinterop, name)
    if name == "jit":  # its overloads are for the type checker; the signature is the last one
        assert inspect.signature(wrapper).parameters.keys() >= {"in_shardings", "donate_argnums"}
        return
    mine = dict(inspect.signature(wrapper).parameters)
    given = dict(inspect.signature(theirs(name)).parameters)
    passed_on = any(p.kind is p.VAR_KEYWORD for p in mine.values())
    for parameter in given.values():
        # Deprecated by JAX, and without effect; and private.
        if parameter.name in ("concrete", *OF_LEAVES) or parameter.name.startswith("_use"):
            continue
        if parameter.name not in mine:
            assert passed_on, f"{parameter.name} is missing"
            continue
        ours = mine[parameter.name]
        assert ours.kind is parameter.kind or parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        if not is_object(parameter.default):
            assert ours.default == parameter.default
    positional = [
        n for n, p in given.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    assert [n for n in mine if n in positional] == [n for n in positional if n in mine]
    assert all(mine[n].kind is inspect.Parameter.KEYWORD_ONLY for n in KEYWORDS if n in mine)
