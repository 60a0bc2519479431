# SPDX-License-Identifier: Apache-2.0
"""`custom_jvp` and `custom_vjp`: identity spans each argument; JAX adds up. `checkpoint`."""

from __future__ import annotations

import functools
import math
import os
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax_models import number, tied_under

import pydag
from pydag import jaxinterop


def product_jvp() -> Any:
    """The product of the two places, with its own derivative, ten times too large."""

    @jaxinterop.custom_jvp
    def f(p: Any) -> Any:
        assert p["a"] is p["b"]
        return {"out": p["a"] * p["b"], "name": p["name"]}

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (p,), (t,) = primals, tangents
        assert p["a"] is p["b"]
        assert t["a"] is t["b"]
        assert t["name"] is None
        slope = 10 * (t["a"] * p["b"] + p["a"] * t["b"])
        return f(p), {"out": slope, "name": None}

    return f


def product_vjp() -> Any:
    """The same, backward."""

    @jaxinterop.custom_vjp
    def f(p: Any) -> Any:
        assert p["a"] is p["b"]
        return {"out": p["a"] * p["b"], "name": p["name"]}

    def forward(p: Any) -> Any:
        assert p["a"] is p["b"]
        return f(p), {"saved": p, "why": "because"}

    def backward(saved: Any, cotangent: Any) -> Any:
        p = saved["saved"]
        assert p["a"] is p["b"]
        assert saved["why"] == "because"
        assert cotangent["name"] is None
        both = 10 * cotangent["out"] * (p["a"] + p["b"])
        return ({"a": both, "b": both, "name": None},)

    f.defvjp(forward, backward)
    return f


tied = tied_under("a", "b", number, name="net")


@pytest.mark.parametrize("make", [product_jvp, product_vjp])
def test_inside_one_argument(make: Any) -> None:
    """What is one object is one in the rules too, and has one derivative."""
    f = make()
    assert f(tied()) == {"out": 9.0, "name": "net"}
    gradient = jaxinterop.grad(lambda p: f(p)["out"])(tied())
    assert gradient["a"] is gradient["b"]
    assert (float(gradient["a"]), gradient["name"]) == (60.0, None)
    assert float(jax.grad(lambda w: f({"a": w, "b": w, "name": "net"})["out"])(3.0)) == 60.0


def test_between_arguments() -> None:
    """`f(w, w)` is two inputs to its rule, and the gradient of w is the sum: nothing is lost."""

    def check(f: Any) -> None:
        w = jnp.float32(3.0)
        assert float(jaxinterop.grad(lambda w: f(w, w))(w)) == 3.0 + 5.0 * 3.0
        gradient = jaxinterop.grad(lambda p: f(p["a"], p["b"]))({"a": w, "b": w})
        assert gradient["a"] is gradient["b"]
        assert float(gradient["a"]) == 18.0
        x, y = jaxinterop.grad(f, argnums=(0, 1))(w, w)
        assert (float(x), float(y)) == (3.0, 15.0)

    @jaxinterop.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defjvp(
        lambda primals, tangents: (
            f(*primals),
            tangents[0] * primals[1] + 5 * tangents[1] * primals[0],
        )
    )
    check(f)

    @jaxinterop.custom_jvp
    def g(x: Any, y: Any) -> Any:
        return x * y

    g.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: 5 * t * x)
    check(g)

    @jaxinterop.custom_vjp
    def h(x: Any, y: Any) -> Any:
        return x * y

    h.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, ct: (ct * saved[1], 5 * ct * saved[0]))
    check(h)


def test_two_halves_of_one_cotangent() -> None:
    """A rule that gives one object two cotangents is an error with both paths, never a guess."""

    @jaxinterop.custom_vjp
    def f(p: Any) -> Any:
        return p["a"] * p["b"]

    def backward(p: Any, cotangent: Any) -> Any:
        return ({"a": cotangent * p["b"], "b": cotangent * p["a"]},)

    f.defvjp(lambda p: (f(p), p), backward)
    assert jaxinterop.grad(f)({"a": 2.0, "b": 3.0}) == {"a": 3.0, "b": 2.0}
    w = jnp.float32(3.0)
    with pytest.raises(pydag.SharingError, match=r"\['a'\] and tree\['b'\] are one obj") as caught:
        jaxinterop.grad(f)({"a": w, "b": w})
    assert any("the cotangent of argument 0 of f" in n for n in caught.value.__notes__)


def test_arguments_that_are_not_differentiated() -> None:
    """Rules get such arguments, given by number and by name, as they are; they may be anything."""

    def check(f: Any) -> None:
        p = {"a": jnp.float32(3.0)}
        assert float(f(jnp.sin, p, [2.0])) == pytest.approx(2 * float(jnp.sin(3.0)))
        assert float(f(jnp.sin, p=p, scale=[2.0])) == float(f(jnp.sin, p, [2.0]))
        assert jaxinterop.grad(lambda p: f(jnp.sin, p, [2.0]))(p) == {"a": 20.0}

    @jaxinterop.custom_vjp
    def plain(function: Any, p: Any, scale: Any) -> Any:
        return function(p["a"]) * scale[0]

    for options in (
        {"nondiff_argnums": (0, 2)},
        {"nondiff_argnums": (0,), "nondiff_argnames": ("scale",)},
    ):
        f = jaxinterop.custom_vjp(plain.fun, **options)
        f.defvjp(
            lambda function, p, scale: (function(p["a"]) * scale[0], p),
            lambda function, scale, p, ct: ({"a": 10 * ct * scale[0]},),
        )
        check(f)
        g = jaxinterop.custom_jvp(plain.fun, **options)

        def rule(function: Any, scale: Any, primals: Any, tangents: Any, g: Any = g) -> Any:
            return g(function, *primals, scale), 10 * scale[0] * tangents[0]["a"]

        g.defjvp(rule)
        check(g)


unnamed = tied_under("a", "b", number)


def product(p: Any) -> Any:
    """The sine of the product of the two places."""
    assert p["a"] is p["b"]
    out = jnp.sin(p["a"] * p["b"])
    return {"x": out, "y": [out], "name": "out"}


def test_checkpoint_options() -> None:
    """`policy` and `prevent_cse` reach JAX; static arguments are not opened."""
    policies: Any = jax.checkpoint_policies
    text = str(
        jaxinterop.make_jaxpr(
            jaxinterop.checkpoint(product, policy=policies.everything_saveable, prevent_cse=False)
        )(unnamed())
    )
    assert "everything_saveable" in text
    assert "prevent_cse=False" in text

    def scaled(shape: Any, p: Any, *, n: int) -> Any:
        assert shape == (2,)
        assert type(n) is int
        return jnp.broadcast_to(p["a"] * p["b"] * n, shape)

    for options in ({"static_argnums": 0, "static_argnames": "n"}, {"static_argnums": (0,)}):
        again = jaxinterop.checkpoint(scaled, **options)
        if "static_argnames" in options:
            assert again((2,), unnamed(), n=3).tolist() == [27.0, 27.0]
    wrong: Any = 1
    with pytest.raises(TypeError):
        jaxinterop.checkpoint(product, prevent_cse=wrong)(unnamed())


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="JAX takes no tree of them")
def test_prevent_cse_as_a_prefix() -> None:
    """One answer for one object."""
    p = unnamed()
    again = jaxinterop.checkpoint(product, prevent_cse=({"a": True, "b": True},))
    assert again(p)["name"] == "out"
    with pytest.raises(pydag.SharingError, match=r"args\[0\]\['b'\], the same object, is given Fa"):
        jaxinterop.checkpoint(product, prevent_cse=({"a": True, "b": False},))(p)


def test_a_static_argument_that_cannot_be_hashed() -> None:
    """A dict, given by position or by name, may be another one at each call."""

    def f(x: Any, config: Any, *, more: Any = None) -> Any:
        return x * config["scale"] + (more or [0.0])[0]

    config = {"scale": 2.0}
    again = jaxinterop.checkpoint(f, static_argnums=1, static_argnames="more")
    assert float(jaxinterop.grad(lambda x: again(x, config))(1.0)) == 2.0
    config["scale"] = 3.0
    assert float(jaxinterop.grad(lambda x: again(x, config, more=[1.0]))(1.0)) == 3.0
    assert float(jaxinterop.jit(lambda x: again(x, config, more=[1.0]))(1.0)) == 4.0


def times(*args: Any) -> Any:
    """The product of numbers."""
    return math.prod(args)


def with_defaults(x: Any, y: Any = 3.0, z: Any = 5.0) -> Any:
    """Such a product."""
    return x * y * z


def with_name(x: Any, y: Any = 3.0, *, scale: Any = 2.0) -> Any:
    """Such a product."""
    return x * y * scale


FUNCTIONS = {
    "*args": times,
    "defaults": with_defaults,
    "keyword": with_name,
    "positional": lambda x, /, y, z=2.0: x * y * z,
    "rest": lambda x, *rest: x * math.prod(rest),
    "partial": functools.partial(with_defaults, 2.0),
    "partial by name": functools.partial(with_defaults, y=7.0),
}
CALLS: list[tuple[tuple[float, ...], dict[str, float]]] = [
    ((2.0, 3.0, 5.0), {}),
    ((2.0,), {}),
    ((2.0,), {"z": 5.0}),
    ((2.0, 3.0), {"z": 5.0}),
    ((2.0,), {"y": 3.0}),
    ((2.0, 3.0), {"scale": 4.0}),
]


def outcome(lib: Any, kind: str, fun: Any, numbers: Any, call: Any, by: int | str) -> Any:
    """What rules are given, the value, and the derivative of an argument; or the error."""
    args, kwargs = call
    given: list[Any] = []

    def rule(*args: Any) -> Any:
        *others, primals, tangents = args
        given.append((others, len(primals)))
        slopes = [t * (i + 1) for i, t in enumerate(tangents)]
        return times(*primals) * 1.0, sum(slopes) * math.prod(others)

    def forward(*args: Any) -> Any:
        given.append(len(args))
        return fun(*args), args

    def backward(*args: Any) -> Any:
        *others, saved, cotangent = args
        given.append(others)
        count = len(saved) - sum(number in range(len(saved)) for number in set(numbers))
        return tuple(cotangent * (10 + i) * math.prod(others) for i in range(count))

    try:
        f = getattr(lib, kind)(fun, nondiff_argnums=numbers)
        f.defjvp(rule) if kind == "custom_jvp" else f.defvjp(forward, backward)
        given.append(float(f(*args, **kwargs)))
        if isinstance(by, str):
            slope = jax.grad(lambda x: f(*args, **{**kwargs, by: x}))(kwargs[by])
        else:
            slope = jax.grad(lambda x: f(*args[:by], x, *args[by + 1 :], **kwargs))(args[by])
        return *map(str, given), float(slope)
    except (TypeError, ValueError, IndexError, jax.errors.JAXTypeError) as error:
        return type(error)
    except (AttributeError, AssertionError):
        if lib is jax and "JAX_CUSTOM_JVP3" in os.environ:
            pytest.skip("JAX's coming custom_jvp can't do partials and negative numbers yet")
        raise


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("numbers", [(), (0,), (1,), (0, 2), (1, 1), (-1,), (0, -1), (3,)])
def test_arguments_without_derivative_are_counted_as_in_jax(
    kind: str, name: str, numbers: tuple[int, ...]
) -> None:
    """Arguments are given by number, negative or out of range, or by name, for any parameters."""
    is_hard = "partial" in name or min(numbers, default=0) < 0
    if is_hard and kind == "custom_jvp" and "JAX_CUSTOM_JVP3" in os.environ:
        pytest.skip("JAX's coming custom_jvp fails at partials and negative numbers itself")
    for call in CALLS:
        for by in (*range(len(call[0])), *call[1]):
            theirs, ours = (
                outcome(lib, kind, FUNCTIONS[name], numbers, call, by) for lib in (jax, jaxinterop)
            )
            assert ours == theirs, (call, by)


def test_arguments_without_derivative_that_nothing_has_a_name_of() -> None:
    """A name that no parameter has is an error, and so is a number that no argument has."""
    with pytest.raises(ValueError, match="with_defaults has no parameter 'w'"):
        jaxinterop.custom_vjp(with_defaults, nondiff_argnames=("w",))
    for kind in ("custom_jvp", "custom_vjp"):
        theirs, ours = (
            outcome(lib, kind, with_defaults, (-9,), CALLS[0], 0) for lib in (jax, jaxinterop)
        )
        assert ours == theirs


def test_rules_by_argument_may_leave_out_tangents() -> None:
    """None is zero: for a whole argument, for a leaf in one rule or in all, for integers."""
    two, three = jnp.float32(2.0), jnp.float32(3.0)

    def tangents(*rules: Any) -> Any:
        @jaxinterop.custom_jvp
        def f(x: Any, y: Any) -> Any:
            return {"a": x * y, "b": x + y, "n": jnp.int32(1)}

        f.defjvps(*rules)
        found = jaxinterop.jvp(f, (two, three), (two, three))[1]
        assert found["n"] is None
        return float(found["a"]), float(found["b"])

    by_x = lambda t, out, x, y: {"a": t * y, "b": t, "n": None}  # noqa: E731 (it is short)
    a_alone = lambda t, out, x, y: {"a": t * x, "b": None, "n": None}  # noqa: E731 (it is short)
    assert tangents(by_x, by_x) == (15.0, 5.0)
    assert tangents(by_x, a_alone) == (12.0, 2.0)
    assert tangents(a_alone, a_alone) == (10.0, 0.0)
    assert tangents(None, a_alone) == (6.0, 0.0)
    assert tangents(by_x, None) == (6.0, 2.0)
    assert tangents(None, None) == (0.0, 0.0)


class Pair(jaxinterop.Module):
    """Two weights."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b, self.name = a, b, "pair"


ONE, OTHER = jnp.ones(2), jnp.full(2, 3.0)
TIED: dict[str, Any] = {
    "dict": {"a": ONE, "b": ONE},
    "with an integer": {"a": ONE, "b": ONE, "n": jnp.arange(2), "name": "f"},
    "module": Pair(ONE, ONE),
    "list": [ONE, OTHER, ONE],
    "container": (lambda c: {"a": c, "b": c})({"w": ONE}),
    "nested": {"a": [ONE], "b": {"c": ONE, "d": OTHER}},
    "tuple": ({"a": ONE}, [ONE]),
    "not tied": {"a": ONE, "b": OTHER},
}


@pytest.mark.parametrize("name", TIED)
@pytest.mark.parametrize("wrap", [lambda f: f, jaxinterop.jit], ids=["eager", "jit"])
def test_a_rule_that_returns_the_cotangent_that_it_got(name: str, wrap: Any) -> None:
    """What is one object has the sum of the cotangents of its places, as without the rule."""

    def weighted(tree: Any) -> Any:
        leaves = pydag.dag_leaves(tree, identity="nodes")
        floats = [x for x in leaves if getattr(x, "dtype", None) == jnp.float32]
        return sum((x * (i + 2)).sum() for i, x in enumerate(floats))

    same = jaxinterop.custom_vjp(lambda tree: tree)
    same.defvjp(lambda tree: (tree, None), lambda _, cotangent: (cotangent,))
    found = wrap(jaxinterop.grad(lambda tree: weighted(same(tree))))(TIED[name])
    wanted = jaxinterop.grad(weighted)(TIED[name])
    assert pydag.dag_structure(found) == pydag.dag_structure(wanted)
    pairs = zip(pydag.dag_leaves(found), pydag.dag_leaves(wanted), strict=True)
    assert all(
        a is b or a == b if isinstance(a, str) else a.tolist() == b.tolist() for a, b in pairs
    )


def test_a_rule_of_a_tree_with_a_ref() -> None:
    """A ref that a function with a rule returns has no cotangent: there the rule gets None."""
    got = []

    def backward(_: None, cotangent: Any) -> Any:
        got.append(cotangent["ref"])
        return (cotangent,)

    same = jaxinterop.custom_vjp(lambda tree: tree)
    same.defvjp(lambda tree: (tree, None), backward)
    tree = {"ref": jax.new_ref(jnp.ones(2)), "x": jnp.ones(2)}
    found = jaxinterop.grad(lambda tree: (2 * same(tree)["x"]).sum())(tree)
    assert (found["ref"], found["x"].tolist(), got) == (None, [2.0, 2.0], [None])


def test_rules_of_a_function_that_defines_its_own() -> None:
    """Methods of the function that define rules, as `def_vmap`, are found on the wrapped one."""
    doubled = jax.custom_batching.custom_vmap(lambda x: 2 * x)
    wrapped: Any = jaxinterop.custom_jvp(doubled)
    assert wrapped.def_vmap == doubled.def_vmap


def test_a_rule_that_changes_the_cotangent_adds_up_itself() -> None:
    """A rule that doesn't is an error, whose cure works."""

    def loss(bwd: Any) -> Any:
        reverse = jaxinterop.custom_vjp(lambda tree: tree)
        reverse.defvjp(lambda tree: (tree, pydag.dag_structure(tree)), bwd)
        return jaxinterop.grad(lambda tree: (lambda r: (r["a"] + 2 * r["b"]).sum())(reverse(tree)))

    def negative(cotangent: Any) -> Any:
        return jaxinterop.tree.map(jnp.negative, cotangent)

    with pytest.raises(pydag.SharingError) as caught:
        loss(lambda _, cotangent: (negative(cotangent),))(TIED["dict"])
    assert any("pydag.retie(pydag.dag_structure(arg" in note for note in caught.value.__notes__)
    added = loss(lambda s, cotangent: (pydag.retie(s, negative(cotangent), jnp.add),))(TIED["dict"])
    assert added["a"].tolist() == [-3.0, -3.0]
    assert added["a"] is added["b"]
