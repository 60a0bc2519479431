# SPDX-License-Identifier: Apache-2.0
"""What holds for every wrapper: sharing, options, signatures, attributes, errors."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.experimental import checkify
from jax_models import tied_under
from wrappers import APART, IMPOSSIBLE, WRAPPERS

import pydag
import pydag.jaxinterop as pj
from pydag import _core
from pydag.jaxinterop.compiled import function, stages
from pydag.jaxinterop.content.content import take_apart
from pydag.jaxinterop.content.leaves import copied
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.foreign import flax_private
from pydag.jaxinterop.treatments.arguments import static_argument
from pydag.registry.function_names import FunctionNames, function_name
from pydag.structure.calls import Applied, FunctionName, as_in_file

ROOT = Path(__file__).parents[2]
TABLE = {*WRAPPERS, *APART}


def test_it_has_all_wrappers() -> None:
    """The table has whatever `jaxinterop` shows of its rooms of wrappers, and nothing else."""
    shown = {name: getattr(pj, name) for name in vars(pj)["__all__"]}
    rooms = ("pydag.jaxinterop.wrappers.", "pydag.jaxinterop.compiled.jit")
    found = {
        n for n, thing in shown.items() if str(getattr(thing, "__module__", "")).startswith(rooms)
    }
    assert found == TABLE
    assert not WRAPPERS.keys() & APART.keys()


def test_the_list_of_functions_names_them() -> None:
    """Each name leads into the reference."""
    text = (ROOT / "docs/functions.md").read_text("utf-8")
    assert set(re.findall(r"\[`pj\.(\w+)[^`]*`\]\(reference/jax\.md#", text)) >= TABLE


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


def two(tree: Any) -> Any:
    """The sum of two leaves that are shared by accident, and are two here."""
    assert tree[0] is not tree[1]
    return [tree[0] + 1, tree[1] + 2]


def with_rule(f: Any) -> Any:
    """The function, with a rule that nobody asks for."""
    if isinstance(f, pj.custom_jvp):
        f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    else:
        f.defvjp(lambda x: (f(x), None), lambda saved, ct: (ct,))
    return f


j: Any = pj


# By way of each wrapper, with options, what a function of a tree gives that returns a tree like it.
WITH_OPTIONS: dict[str, Callable[..., Any]] = {
    "jit": lambda f, tree, **how: j.jit(f, **how)(tree),
    "vmap": lambda f, tree, **how: j.vmap(f, **how)(tree),
    "checkpoint": lambda f, tree, **how: j.checkpoint(f, **how)(tree),
    "vjp": lambda f, tree, **how: j.vjp(f, tree, **how)[0],
    "jvp": lambda f, tree, **how: j.jvp(f, (tree,), (tree,), **how)[0],
    "linearize": lambda f, tree, **how: j.linearize(f, tree, **how)[0],
    "cond": lambda f, tree, **how: j.cond(True, f, f, tree, **how),
    "switch": lambda f, tree, **how: j.switch(0, [f, f], tree, **how),
    "scan": lambda f, tree, **how: j.scan(lambda c, _: (f(c), None), tree, length=1, **how)[0],
    "fori_loop": lambda f, tree, **how: j.fori_loop(0, 1, lambda _, c: f(c), tree, **how),
    "while_loop": lambda f, tree, **how: j.while_loop(
        lambda c: c[-1] < 1, lambda c: [*f(c[:-1]), c[-1] + 1], [*tree, 0], **how
    )[:-1],
    "map": lambda f, tree, **how: j.map(f, tree, **how),
    "custom_jvp": lambda f, tree, **how: j.jit(with_rule(j.custom_jvp(f, **how)), **how)(tree),
    "custom_vjp": lambda f, tree, **how: j.jit(with_rule(j.custom_vjp(f, **how)), **how)(tree),
    "keep_sharing": lambda f, tree, **how: j.keep_sharing(jax.jit, **how)(f)(tree),
}


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_identity_of_nodes_only(name: str) -> None:
    """With `identity="nodes"` arrays that are shared by accident go in apart: everywhere."""
    z = jnp.zeros(2)
    found = WITH_OPTIONS[name](two, [z, z], identity="nodes")
    assert [leaf.tolist() for leaf in found] == [[1.0, 1.0], [2.0, 2.0]]


def test_identity_of_nodes_only_in_derivatives() -> None:
    """What is differentiated by goes in apart, too, and what is added to it."""
    z, how = jnp.zeros(2), {"identity": "nodes"}
    tree = [z, z]
    added = j.apply_updates(tree, [z + 1, z + 2], **how)
    assert [leaf.tolist() for leaf in added] == [[1.0, 1.0], [2.0, 2.0]]
    assert len(j.make_jaxpr(two, **how)(tree).in_avals) == 2
    gradient = j.grad(lambda t: jnp.sum(t[0] * 3 + t[1] * 5), **how)(tree)
    assert [leaf.tolist() for leaf in gradient] == [[3.0, 3.0], [5.0, 5.0]]
    for jacobian in (j.jacfwd, j.jacrev):
        rows = jacobian(lambda t: t[0][0] * 3 + t[1][0] * 5, **how)(tree)
        assert [row.tolist() for row in rows] == [[3.0, 0.0], [5.0, 0.0]]


class Box:
    """A node in the namespace `boxes` alone."""

    def __init__(self, content: Any) -> None:
        self.content = content


pydag.register_fields(Box, namespace="boxes")


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_a_namespace(name: str) -> None:
    """Classes of a namespace are nodes where a wrapper gets its name."""
    shared = Box(jnp.arange(2.0))

    def f(pair: Any) -> Any:
        assert pair[0] is pair[1]
        assert type(pair[0]) is Box
        return pair

    found = WITH_OPTIONS[name](f, [shared, shared], namespace="boxes")
    assert found[0] is found[1]
    assert type(found[0]) is Box
    assert found[0].content.tolist() == [0.0, 1.0]


tied = tied_under("a", "b", lambda: jnp.arange(3.0), name="net")


def double(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    assert tree["a"] is tree["b"]
    return pydag.dag_map(lambda x: x if isinstance(x, str) else 2 * x, tree)


def assert_doubled(tree: Any) -> None:
    """Asserts that the tree is what `double` makes."""
    assert tree["a"] is tree["b"]
    assert (tree["a"].tolist(), tree["name"]) == ([0.0, 2.0, 4.0], "net")


@pytest.mark.parametrize("name", ["jit", "vmap", "checkpoint", "named_call"])
def test_a_transformation(name: str) -> None:
    """A function that takes a function and gives one."""
    transformation = getattr(jax, name)
    assert_doubled(pj.keep_sharing(transformation)(double)(tied()))


def test_a_function_of_a_function_and_trees() -> None:
    """One that isn't a transformation is made one by `functools.partial`."""
    mapped = pj.keep_sharing(lambda f: functools.partial(jax.lax.map, f))
    assert_doubled(mapped(double)(tied()))


def test_what_has_the_form_of_the_arguments() -> None:
    """Such a result comes as a pair of positional and keyword arguments."""
    args, kwargs = pj.keep_sharing(jax.grad)(lambda p, q: p["a"] * p["b"] * q)(
        {"a": jnp.float32(2.0), "b": jnp.float32(3.0)}, q=5.0
    )
    assert args == ({"a": 15.0, "b": 10.0},)
    assert kwargs == {"q": 6.0}


def test_identity_and_namespace() -> None:
    """Both are given where the transformation is wrapped."""
    jit = pj.keep_sharing(jax.jit, identity="nodes")
    w = jnp.ones(2)

    def apart(x: Any, y: Any) -> Any:
        assert x is not y
        return x + y

    assert jit(apart)(w, w).tolist() == [2.0, 2.0]


MORE: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "beside it": (lambda f: lambda t: ("more", f(t)), lambda out: out[1]),
    "in a dict": (lambda f: lambda t: {"z": f(t), "a": 3}, lambda out: out["z"]),
    "in a list": (lambda f: lambda t: [[f(t)], None], lambda out: out[0][0]),
    "several results": (lambda f: lambda t: (f(t), f(t)), lambda out: out[1]),
    "by jit": (lambda f: jax.jit(lambda t: (f(t), 1)), lambda out: out[0]),
    "checkify": (checkify.checkify, lambda out: out[1]),
    "its shape": (lambda f: lambda t: [jax.eval_shape(f, t)], lambda out: out[0]),
    "mapped": (
        lambda f: lambda t: (jax.vmap(f, axis_size=2, in_axes=None)(t), 0),
        lambda out: out[0],
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_a_transformation_that_returns_more_than_the_result(name: str) -> None:
    """What it returns comes out, and in it the result, tied."""
    transformation, result_of = MORE[name]
    w = jnp.float32(3.0)
    out = result_of(
        pj.keep_sharing(transformation)(lambda p: {"d": p["b"], "c": [p["a"]], "e": "text"})(
            {"a": w, "b": w}
        )
    )
    assert list(out) == ["d", "c", "e"]
    assert out["c"][0] is out["d"]
    assert out["e"] == "text"


def test_a_transformation_that_returns_a_value_and_a_derivative() -> None:
    """The derivative has the form of the arguments."""
    w = jnp.float32(3.0)
    value, ((gradient,), kwargs) = pj.keep_sharing(jax.value_and_grad)(lambda p: p["a"] * p["b"])(
        {"a": w, "b": w}
    )
    assert (float(value), float(gradient["a"]), kwargs) == (9.0, 6.0, {})
    assert gradient["a"] is gradient["b"]


def test_a_check_that_fails() -> None:
    """The error of `checkify` comes beside the result."""

    def checked(p: Any) -> Any:
        checkify.check(p["a"] > 3, "too small")
        return {"x": p["a"]}

    error, out = pj.keep_sharing(checkify.checkify)(checked)({"a": jnp.float32(1.0)})
    assert "too small" in error.get()
    assert float(out["x"]) == 1.0


# What a function with a rule of JAX's has and ours hasn't: a rule may return what it logs as a part
# of the result, and `checkpoint` computes again.
LEFT_OUT = (
    *("defvjp_with_logs", "defvjp_with_accums", "defremat", "defremat_with_logs", "remat_rules"),
)


def f(x: Any) -> Any:
    """A function of one array."""
    return x * 2


def with_own_rule(m: Any, name: str) -> Any:
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
    "custom_jvp": lambda m: with_own_rule(m, "custom_jvp"),
    "custom_vjp": lambda m: with_own_rule(m, "custom_vjp"),
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
    """A function may say another signature than it has, or be a partial."""
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
    """The types are JAX's, when a function is wrapped or when it is called."""
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
    wrapper = getattr(pj, name)
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


every_wrapper = pytest.mark.parametrize("name", WRAPPERS)


def tied_deeper(value: float = 3.0) -> dict[str, Any]:
    """One array at two places, and leaves that JAX can't trace."""
    w = jnp.full((2, 2, 2), value)
    return {"a": w, "b": [w], "name": "net", "none": None, "function": jnp.sin}


def double_deeper(tree: Any) -> Any:
    """The tree with its array doubled."""
    assert tree["a"] is tree["b"][0]
    assert (tree["name"], tree["none"], tree["function"]) == ("net", None, jnp.sin)
    return {**tree, "a": (twice := 2 * tree["a"]), "b": [twice]}


def assert_tied(tree: Any, value: float) -> None:
    """Asserts that the tree is as `tied`, with another number."""
    assert tree["a"] is tree["b"][0]
    assert tree["a"].shape == (2, 2, 2)
    assert (tree["a"] == value).all()
    assert (tree["name"], tree["none"], tree["function"]) == ("net", None, jnp.sin)


@every_wrapper
def test_inside_and_outside_of_every_wrapper(name: str) -> None:
    """What is one object outside is one inside, and the other way round."""
    assert_tied(WRAPPERS[name](double_deeper)(tied_deeper()), 6.0)


WITHOUT_IDENTITY = ("custom_jvp", "custom_vjp")  # in their results leaves have none


@every_wrapper
def test_around_every_other(name: str) -> None:
    """Wrappers may be nested in any order."""
    for inner, wrap in WRAPPERS.items():
        if (name, inner) not in IMPOSSIBLE and inner not in WITHOUT_IDENTITY:
            assert_tied(WRAPPERS[name](wrap(double_deeper))(tied_deeper()), 6.0)


@pytest.mark.parametrize("name", [n for n in WRAPPERS if ("grad", n) not in IMPOSSIBLE])
def test_a_gradient_through_it(name: str) -> None:
    """The gradient is as without the wrapper, and tied; also compiled, and over one more axis."""

    def loss(tree: Any) -> Any:
        found = WRAPPERS[name](double_deeper)(tree)
        return jnp.sum(found["a"] * found["b"][0])

    gradient = pj.grad(loss)
    for found in (gradient(tied_deeper()), pj.jit(gradient)(tied_deeper())):
        assert found["a"] is found["b"][0]
        assert (found["a"] == 24.0).all()
        assert (found["name"], found["none"], found["function"]) == (None, None, None)
    w = jnp.full((2, 2, 2, 2), 3.0)
    mapped = pj.vmap(gradient)({**tied_deeper(), "a": w, "b": [w]})
    assert mapped["a"] is mapped["b"][0]
    assert (mapped["a"] == 24.0).all()


RETURNED_AS_GIVEN = [n for n in WRAPPERS if n not in ("scan", "fori_loop", "while_loop")]


@pytest.mark.parametrize("name", RETURNED_AS_GIVEN)
def test_what_is_returned(name: str) -> None:
    """An input, an alias of it and the same fresh object twice are what they are outside, too."""

    def f(tree: Any) -> Any:
        fresh = tree["a"] + 1
        layer = [fresh]
        return {
            "input": tree["a"],
            "alias": tree["b"][0],
            "fresh": fresh,
            "again": [layer, layer],
            "other": tree["a"] + 1,
        }

    given = tied_deeper()
    out = WRAPPERS[name](f)(given)
    assert out["input"] is out["alias"]
    assert out["fresh"] is out["again"][0][0]
    assert out["again"][0] is out["again"][1]
    assert len({id(out[key]) for key in ("input", "fresh", "other")}) == 3
    assert (out["other"] == 4.0).all()
    assert given["a"] is given["b"][0]


@every_wrapper
def test_trees_without_arrays(name: str) -> None:
    """Empty DAGs, None and leaves that JAX can't trace go in and come out.

    Where one differentiates by such leaves alone, that is an error.
    """
    by = ["grad", "value_and_grad", "hessian", "jacfwd", "jacrev"]
    text = {"a": (), "b": [None, "text"]}
    trees: list[Any] = [{}, [], None, text]
    for tree in trees:
        if name in ("vmap", "map"):
            found = WRAPPERS[name](lambda pair: pair)([tree, jnp.ones(2)])[0]
        elif tree is text and name in by:
            with pytest.raises(TypeError, match="nothing to differentiate by"):
                WRAPPERS[name](lambda t: t)(tree)
            continue
        else:
            found = WRAPPERS[name](lambda t: t)(tree)
        assert found == tree


@every_wrapper
def test_an_exception_inside(name: str) -> None:
    """The exception passes through as it is; the arguments and the next call are as before."""
    fails = True

    def f(tree: Any) -> Any:
        if fails:
            raise TypeError("mine")
        return double_deeper(tree)

    wrapped, tree = WRAPPERS[name](f), tied_deeper()
    with pytest.raises(TypeError, match=r"^mine"):
        wrapped(tree)
    assert_tied(tree, 3.0)
    fails = False
    assert_tied(wrapped(tree), 6.0)


@every_wrapper
def test_a_function_that_changes_its_argument(name: str) -> None:
    """The function changes its own copy; under `jax.disable_jit`, too, the result is tied alike."""

    def f(tree: Any) -> Any:
        tree["a"] = tree["b"][0] = tree["a"] * 2
        return tree

    tree = tied_deeper()
    assert_tied(WRAPPERS[name](f)(tree), 6.0)
    with jax.disable_jit():
        if name not in ("shard_map", "switch"):
            assert_tied(WRAPPERS[name](f)(tree), 6.0)
    assert_tied(tree, 3.0)


@every_wrapper
def test_a_cycle(name: str) -> None:
    """`CycleError`, before JAX sees it."""
    cycle: list[Any] = [jnp.ones(2)]
    cycle.append(cycle)
    with pytest.raises(pydag.CycleError):
        WRAPPERS[name](lambda tree: tree)(cycle)


def test_a_state_that_is_a_sequence() -> None:
    """The state of a chain has optax's length, items, order and text; an empty one is true."""
    tree = {"a": jnp.ones(2)}
    state: Any = pj.optimizer(optax.chain(optax.scale_by_adam(), optax.scale(0.1))).init(tree)
    adam, scale = state
    assert len(state) == 2
    assert (state[0], state[1]) == (adam, scale)
    assert int(adam.count) == 0
    assert repr(state) == repr((adam, scale))
    empty: Any = pj.optimizer(optax.identity()).init(tree)
    assert (len(empty), bool(empty)) == (0, True)


def test_dags_in_texts_and_pickles() -> None:
    """The keys and the structure of a Dag have texts, and keys are pickled; hints name `.tree`."""
    dag = pj.Dag({"a": jnp.ones(2)})
    [(path, _)] = jax.tree_util.tree_leaves_with_path(dag)
    assert pickle.loads(pickle.dumps(path)) == path
    assert "'a'" in repr(path)
    assert "Content" in repr(jax.tree.structure(dag)) or "'a'" in repr(jax.tree.structure(dag))
    with pytest.raises(AttributeError, match=r"write dag\.tree\.weight"):
        _ = dag.weight  # type: ignore[attr-defined]  # that is the mistake


def test_what_is_compared_with_something_else() -> None:
    """What pydag gives JAX as static data is unequal to anything of another class."""
    assert take_apart({"a": jnp.ones(2)}, Options())[1] != 1
    assert static_argument(3, 0, Options()) != 3


def test_a_custom_rule_as_a_method() -> None:
    """A function with a rule of its own is a method where a class has it; JAX's names are there."""

    class Model(pj.Module):
        @pj.custom_jvp
        def double(self: Any, x: Any) -> Any:
            return 2 * x

        double.defjvps(None, lambda dx, y, self, x: 3 * dx)

    assert float(jax.grad(Model().double)(jnp.float32(1))) == 3.0
    assert isinstance(Model.double, type(Model.__dict__["double"]))

    @functools.partial(pj.custom_jvp, nondiff_argnums=(1,))
    def scaled(x: Any, by: float) -> Any:
        return by * x

    with pytest.raises(TypeError, match="use defjvp"):
        scaled.defjvps(lambda dx, y, x: dx)


def test_options_that_jax_refuses() -> None:
    """An option that JAX refuses is an error that names pydag's option."""
    with pytest.raises((TypeError, ValueError), match="update_argnums"):
        pj.jit(lambda x: x, update_argnums=5)
    mesh = jax.make_mesh((1,), ("x",))
    spec: Any = jax.sharding.PartitionSpec("x")  # type: ignore[no-untyped-call]  # no types
    mapped = pj.shard_map(lambda p: p, mesh=mesh, in_specs=spec, out_specs=spec)
    with pytest.raises(ValueError, match="in_specs") as caught:
        mapped({"a": jnp.float32(1)})
    assert "JAX counts the arrays one by one: 0: " in "".join(caught.value.__notes__)


def test_a_compiled_function_of_what_has_no_weak_references() -> None:
    """A method of an object without weak references is compiled, and runs."""

    class Slotted:
        __slots__ = ("by",)

        def scaled(self, x: Any) -> Any:
            return 3 * x

    assert float(pj.jit(Slotted().scaled)(jnp.float32(2))) == 6.0


def test_attributes_of_compiled_functions_are_pickled_as_a_dict() -> None:
    """What a compiled function has as attributes is copied as a plain dict."""
    compiled = pj.jit(math_square)
    copied = copy.copy(vars(compiled))
    assert type(copied) is dict
    assert copied.keys() >= {"__wrapped__"}


def math_square(x: Any) -> Any:
    """The square of a number."""
    return x * x


def test_many_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that was compiled for very many structures forgets them, and goes on."""
    monkeypatch.setattr(function, "_MOST", 3)
    total = pj.jit(lambda tree: sum(tree.values()))
    for i in range(1, 6):
        assert float(total({str(k): jnp.float32(1) for k in range(i)})) == i


def test_without_optax(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pj.optimizer` says which package it needs; an optimizer can be copied."""
    made: Any = pj.optimizer(optax.identity())
    state = copy.copy(made).init({"a": jnp.ones(2)})
    assert len(copy.copy(made.init.__self__).init({"a": jnp.ones(2)})) == len(state)
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match="pip install optax"):
        pj.optimizer(made)


def test_odd_descriptions() -> None:
    """What has a shape and a dtype that no array has is left as it is by `eval_shape`."""

    class Odd:
        shape, dtype = "many", "odd"

    odd = Odd()
    assert stages._description(odd) is odd


def test_writes_of_flax() -> None:
    """Modules and Variables of NNX are written in place, also by functions of flax's own."""
    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    source = pydag.dag_map(lambda x: x + 1 if isinstance(x, jax.Array) else x, model)
    pydag.dag_update(model, source)
    assert (model.kernel[...] == source.kernel[...]).all()
    dag = pj.Dag(model)
    pydag.dag_update([dag], [pj.Dag(source)])
    assert flax_private.writer_of(int) is None
    variable, other = nnx.Param(jnp.ones(2)), nnx.Param(jnp.zeros(2))
    writer = flax_private.writer_of(nnx.Param)
    assert writer is not None
    writer(variable, (jnp.zeros(2),))
    assert variable[...].tolist() == other[...].tolist()
    writer = flax_private.writer_of(nnx.Linear)
    assert writer is not None
    children = tuple(_core.open_one_level(source)[0])
    writer(model, children)
    assert model.kernel is source.kernel


@dataclasses.dataclass
class WithDefaults:
    """A record whose fields may be those of the class."""

    w: Any = 1.5
    size: int = 2


jax.tree_util.register_dataclass(WithDefaults, ["w"], ["size"])


def test_fields_that_only_the_class_has() -> None:
    """A field that an instance lacks is the class's default, as JAX finds it, and shared."""
    record = object.__new__(WithDefaults)
    leaves, spec = pydag.dag_flatten([record, record])
    assert leaves == [1.5] == jax.tree.leaves([record])
    built = pydag.dag_unflatten(spec, [3.0])
    assert built[0] is built[1]
    assert (built[0].w, built[0].size) == (3.0, 2)


def test_calls_that_are_values() -> None:
    """A partial in a derived value is equal to one of the same content, and known by its name."""
    one = Applied(math_square, 2.0)
    assert one == Applied(math_square, 2.0)
    assert hash(one) == hash(Applied(math_square, 2.0))
    assert one != 3
    assert as_in_file(one).args == (2.0,)
    with pytest.raises(TypeError, match="known by name alone"):
        FunctionName("module:f")()


def test_names_of_functions() -> None:
    """A class method has a name, and what has no module none; functions= takes what has one."""
    assert function_name(Holder.made) == f"{__name__}:Holder.made"
    assert function_name(functools.partial(math_square)) is None
    with pytest.raises(TypeError, match="can be found by their names"):
        FunctionNames([lambda x: x])


class Holder:
    """Has a class method."""

    @classmethod
    def made(cls) -> Any:
        return cls()


def test_functions_of_trees() -> None:
    """`reduce` starts where it is told to; a transposition needs a structure of the inner trees."""
    w = jnp.float32(2)
    assert float(pj.tree.reduce(lambda a, b: a * b, {"a": w, "b": w, "c": 3.0})) == 6.0
    assert float(pj.tree.reduce(lambda a, b: a + b, [w], 10.0)) == 12.0
    with pytest.raises(ValueError, match="inner_treedef must be given"):
        pj.tree.transpose(jax.tree.structure([]), None, [])


def test_options_that_pydag_refuses() -> None:
    """A tree of booleans selects nothing for `static=`; an axis is a number or None."""
    with pytest.raises(TypeError):
        pj.jit(lambda tree: tree, static=[True, False])([1, 2])
    with pytest.raises((TypeError, ValueError)):
        pj.vmap(lambda x: x, out_axes="first")(jnp.ones(2))
    with pytest.raises(TypeError, match="vmap out_axes has 'first' for an array"):
        pj.vmap(lambda x: [x, x + 1], out_axes=[0, "first"])(jnp.ones(2))


def test_derived_values_in_a_dag() -> None:
    """A Dag is resolved as its tree is; a generator makes no derived value."""
    dag = pj.Dag({"a": jnp.ones(2)})
    assert pj.resolved(dag) is dag
    model = {"w": pj.Derived(math_square, jnp.float32(3))}
    assert float(pj.resolved(pj.Dag(model)).tree["w"]) == 9.0

    def numbers() -> Any:
        yield 1

    with pytest.raises(TypeError):
        pj.Derived(numbers)


def test_copies_of_arrays_of_numpy() -> None:
    """Another object for an array of NumPy has its memory."""
    array = np.ones(2)
    assert (copied(array) is array, np.shares_memory(copied(array), array)) == (False, True)


def test_what_an_optimizer_trains_has_a_text() -> None:
    """The static part of a state says how many arrays it is for."""
    state: Any = pj.optimizer(optax.identity()).init({"a": jnp.ones(2), "b": 3})
    assert repr(state.trained).startswith("Trained(1 of ")
