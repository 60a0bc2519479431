"""`jaxinterop.jit`: sharing crosses the boundary, and what is compiled is compiled once."""

from __future__ import annotations

import functools
import gc
import inspect
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from small_models import tied_under

import pydag
from pydag import jaxinterop

tied = tied_under("encoder", "decoder", lambda: jnp.ones((2, 2)))


def untied() -> dict[str, Any]:
    """The same with two weights."""
    return {"encoder": jnp.ones((2, 2)), "decoder": jnp.ones((2, 2))}


def doubled(tree: Any) -> Any:
    """The tree with all of its numbers doubled."""
    return pydag.dag_map(lambda x: x * 2, tree)


class Counted:
    """A function for `jit` that counts how often it is traced."""

    def __init__(self, function: Any) -> None:
        self.traces = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.traces += 1
            return function(*args, **kwargs)

        self.function = counted


# The problem, in eight lines.


def test_plain_jax_loses_the_tie() -> None:
    """Without pydag: two buffers after a map, two gradients, and donation refused."""
    params = tied()
    out = jax.tree.map(lambda x: x * 2, params)
    assert out["encoder"] is not out["decoder"]
    gradient = jax.grad(lambda p: jnp.sum(p["encoder"] * p["decoder"]))(params)
    assert gradient["encoder"] is not gradient["decoder"]
    step = jax.jit(lambda p: jax.tree.map(lambda x: x + 1, p), donate_argnums=0)
    with pytest.raises(jax.errors.JaxRuntimeError, match="donate the same buffer twice"):
        step(tied())


def test_pydag_keeps_the_tie() -> None:
    """With pydag: one buffer, one gradient, and donation works."""
    out = pydag.dag_map(lambda x: x * 2, tied())
    assert out["encoder"] is out["decoder"]
    gradient = jaxinterop.grad(lambda p: jnp.sum(p["encoder"] * p["decoder"]))(tied())
    assert gradient["encoder"] is gradient["decoder"]
    params = tied()
    out = jaxinterop.jit(doubled, donate_argnums=0)(params)
    assert out["encoder"] is out["decoder"]
    assert params["encoder"].is_deleted()


# Identity.


def test_what_is_two_stays_two() -> None:
    """Equal arrays that are two objects aren't merged."""
    out = jaxinterop.jit(doubled)(untied())
    assert out["encoder"] is not out["decoder"]


def test_shared_containers() -> None:
    """Containers have identity, too: a list at two places is one list in the result."""

    @jaxinterop.jit
    def f(tree: Any) -> Any:
        assert tree["x"] is tree["y"]
        fresh = [tree["x"][0] * 2]
        return [fresh, fresh, tree["x"], tree["y"]]

    shared = [jnp.ones(2)]
    out = f({"x": shared, "y": shared})
    assert out[0] is out[1]
    assert out[2] is out[3]
    assert out[2] is not shared


def test_an_alias_made_inside() -> None:
    """A function may tie what was not tied, and part what was."""
    tie = jaxinterop.jit(lambda p: {"encoder": p["encoder"], "decoder": p["encoder"]})
    out = tie(untied())
    assert out["encoder"] is out["decoder"]
    part = jaxinterop.jit(lambda p: {"encoder": p["encoder"], "decoder": p["decoder"] * 1})
    with pytest.warns(jaxinterop.LostTieWarning):
        out = part(out)
    assert out["encoder"] is not out["decoder"]


def test_no_arguments() -> None:
    """A function without arguments, and one that returns nothing."""
    assert jaxinterop.jit(lambda: jnp.ones(()))() == 1.0
    assert jaxinterop.jit(lambda: None)() is None


def test_sixty_levels_of_sharing() -> None:
    """`t = [t, t]`, sixty times, is one array on both sides of the boundary."""
    tree: Any = [jnp.float32(1.0)]
    for _ in range(60):
        tree = [tree, tree]
    out = jaxinterop.jit(doubled)(tree)
    assert out[0] is out[1]
    assert pydag.dag_leaves(out) == [2.0]


def test_a_deep_tree() -> None:
    """Depth is no matter for JAX, which sees a flat sequence."""
    tree: Any = [jnp.float32(1.0)]
    for _ in range(100_000):
        tree = [tree]
    assert pydag.dag_leaves(jaxinterop.jit(doubled)(tree)) == [2.0]


# When it traces.


def test_other_structure_shape_or_type_is_another_trace() -> None:
    """As in JAX."""
    counted = Counted(lambda x: x)
    f = jaxinterop.jit(counted.function)
    for tree in ([jnp.ones(2)], (jnp.ones(2),), [jnp.ones(3)], [jnp.ones(2, int)], [1.0], [1.0]):
        f(tree)
    assert counted.traces == 5


def test_wrapping_a_bound_method_again() -> None:
    """Equal bound methods are one function as long as a wrapper of one of them lives."""

    class Model:
        traces = 0

        def double(self, x: Any) -> Any:
            self.traces += 1
            return x * 2

    model = Model()
    first = jaxinterop.jit(model.double)
    assert first(1.0) == 2.0
    second = jaxinterop.jit(model.double)
    del first
    gc.collect()
    assert second(3.0) == 6.0
    assert model.traces == 1


def test_a_function_that_cannot_be_hashed() -> None:
    """Such a function is compiled for its wrapper alone."""

    class Callable:
        __hash__ = None  # type: ignore[assignment]  # the point of the test

        def __call__(self, x: Any) -> Any:
            return x + 1

    assert jaxinterop.jit(Callable())(1.0) == 2.0


def test_forms_of_the_decorator() -> None:
    """Bare, with keywords alone, and by `functools.partial`; the name and text stay."""

    @jaxinterop.jit
    def bare(x: Any) -> Any:
        """Adds one."""
        return x + 1

    @jaxinterop.jit(static_argnames="n")
    def with_keywords(x: Any, n: int) -> Any:
        return x + n

    @functools.partial(jaxinterop.jit, static_argnums=1)
    def partial(x: Any, n: int) -> Any:
        return x + n

    assert bare(1.0) == with_keywords(1.0, n=1) == partial(1.0, 1) == 2.0
    assert (getattr(bare, "__name__", ""), bare.__doc__) == ("bare", "Adds one.")
    assert list(inspect.signature(with_keywords).parameters) == ["x", "n"]


def test_the_name_is_seen_in_what_was_compiled() -> None:
    """The compiled function has the name of the Python function."""

    def descend(x: Any) -> Any:
        return x * 2

    assert "jit_descend" in jaxinterop.jit(descend).lower(1.0).as_text()


def test_every_option_of_jax() -> None:
    """The wrapper takes all that the installed `jax.jit` takes."""
    names = set(inspect.signature(jax.jit).parameters)
    values: dict[str, Any] = {
        "keep_unused": True,
        "inline": True,
        "compiler_options": {},
        "backend": None,
    }
    for name in names & values.keys():
        assert jaxinterop.jit(doubled, **{name: values[name]})([1.0]) == [2.0]
    with pytest.raises(TypeError, match="no_such_option"):
        jaxinterop.jit(doubled, no_such_option=1)  # type: ignore[call-overload]  # the point


def test_keep_unused() -> None:
    """Options reach the compiler: an unused argument is dropped, or not."""

    def first(x: Any, y: Any) -> Any:
        return x

    dropped = jaxinterop.jit(first).lower(1.0, 2.0).compile().as_text()
    kept = jaxinterop.jit(first, keep_unused=True).lower(1.0, 2.0).compile().as_text()
    assert dropped.count("parameter(1)") == 0
    assert kept.count("parameter(1)") == 1


def test_arguments_are_checked_as_by_jax() -> None:
    """Wrong options are JAX's own errors, when wrapping."""

    def f(a: Any, b: Any) -> Any:
        return a

    with pytest.raises(ValueError, match="positional arguments"):
        jaxinterop.jit(f, static_argnums=5)
    with pytest.raises(ValueError, match="invalid argnames"):
        jaxinterop.jit(f, donate_argnames="z")
    with pytest.raises(ValueError, match="cannot intersect"):
        jaxinterop.jit(f, static_argnums=0, donate_argnums=0)
    with pytest.raises(TypeError):
        jaxinterop.jit(3)  # type: ignore[call-overload]  # the point of the test


def test_under_plain_transformations() -> None:
    """A wrapped function may be compiled, mapped and differentiated by JAX."""

    @jaxinterop.jit
    def inner(tree: Any) -> Any:
        assert tree["encoder"] is tree["decoder"]
        return {"y": tree["encoder"] * tree["decoder"]}

    def square(x: Any) -> Any:
        return inner({"encoder": x, "decoder": x})

    assert jax.jit(square)(3.0)["y"] == 9.0
    assert jax.vmap(square)(jnp.arange(3.0))["y"].tolist() == [0.0, 1.0, 4.0]
    assert jax.grad(lambda x: square(x)["y"])(3.0) == 6.0
    out, tangent = jax.jvp(square, (3.0,), (1.0,))
    assert (out["y"], tangent["y"]) == (9.0, 6.0)


def test_arrays_are_freed() -> None:
    """Nothing keeps the arrays of a call, in or out, once the caller has let them go."""
    f = jaxinterop.jit(doubled)
    given, out = tied(), f(tied())
    out = f(given)
    alive = [weakref.ref(given["encoder"]), weakref.ref(out["encoder"])]
    del given, out
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
