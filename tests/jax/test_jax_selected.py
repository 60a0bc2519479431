# SPDX-License-Identifier: Apache-2.0
"""`static=`: which leaves are static, said in one vocabulary; and numbers that change each time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from operations import python_calls

import pydag
from pydag import jaxinterop
from pydag.jaxinterop import Dag


@pydag.register_fields
class Layer:
    def __init__(self, width: Any = 2) -> None:
        self.w, self.width, self.rate = jnp.ones(2), width, 0.5


def kinds(layer: Layer) -> str:
    """Which of the numbers are static."""
    names = ("width", "rate")
    return ",".join(n for n in names if not isinstance(getattr(layer, n), jax.core.Tracer))


SELECTIONS: dict[str, tuple[Any, str]] = {
    "predicate": (lambda leaf: leaf == 2 if isinstance(leaf, int) else False, "width"),
    "class": (int, "width"),
    "classes": ((int, float), "width,rate"),
    "pattern": ("width", "width"),
    "pattern with a dot": (".width", "width"),
    "pattern with a star": ("*r*t*", "rate"),
    "list": (["rate", int], "width,rate"),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_each_way_to_say_it(name: str) -> None:
    """At each call, whatever was compiled before."""
    where, expected = SELECTIONS[name]
    f = jaxinterop.jit(kinds, static=where)
    assert [f(Layer()), f(Layer()), f(Layer())] == [expected] * 3
    assert jaxinterop.make_jaxpr(lambda layer: layer.w, static=where)(Layer()) is not None


# Calls of one structure, one after another, and which of their numbers `n` are static.
BY_VALUE: dict[str, tuple[Any, list[Any], list[bool]]] = {
    "large": (lambda v: v == "a" or (isinstance(v, int) and v > 5), [1, 7, 1, 9, 7, 2, 8],
        [False, True, False, True, True, False, True]),
    "in a list": (["['s']", lambda v: isinstance(v, float) and v < 0], [1.5, -1.5, 2.5, -2.5],
        [False, True, False, True]),
    "flags": (lambda v: v is True or v == "a", [False, True, False], [False, True, False]),
    "NumPy": (lambda v: isinstance(v, str) or v == np.float32(2), [np.float32(x) for x in
        (1, 2, 3, 2)], [False, True, False, True]),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_VALUE)
def test_a_predicate_is_asked_of_the_values_at_each_call(name: str) -> None:
    """A number that was data in one call may be static in the next, also where the core calls."""
    where, numbers, expected = BY_VALUE[name]
    traced = jax.core.Tracer
    f = jaxinterop.jit(
        lambda d: ("data" if isinstance(d["n"], traced) else "static", d["n"]), static=where
    )
    for _ in range(3):
        found = [f({"n": number, "s": "a"}) for number in numbers]
        assert [kind == "static" for kind, _ in found] == expected
        assert [number for _, number in found] == numbers


def test_a_class_is_decided_by_the_class_alone() -> None:
    """Other numbers of the same structure are data, and the core makes the calls."""
    f = jaxinterop.jit(lambda d: d["n"] + 1, static=str)
    assert float(f({"n": 1.5, "s": "a"})) == 2.5
    calls = python_calls(lambda: [f({"n": n + 0.25, "s": "a"}) for n in range(5)])
    assert "CompiledFunction.run" not in calls


def scanned(f: Callable[[Any], Any], **how: Any) -> Any:
    return lambda t: jaxinterop.scan(lambda c, _: (f(c), (c, None))[1], t, length=1, **how)[0]


def looped(f: Callable[[Any], Any], **how: Any) -> Any:
    return lambda t: jaxinterop.fori_loop(0, 1, lambda _, c: (f(c), c)[1], t, **how)


def whiled(f: Callable[[Any], Any], **how: Any) -> Any:
    return lambda t: jaxinterop.while_loop(lambda c: c.w[0] < 0, lambda c: (f(c), c)[1], t, **how)


WRAPPERS: dict[str, Callable[..., Any]] = {
    "jit": jaxinterop.jit,
    "vmap": lambda f, **o: jaxinterop.vmap(f, None, axis_size=2, **o),
    "checkpoint": jaxinterop.checkpoint,
    "grad": jaxinterop.grad,
    "value_and_grad": jaxinterop.value_and_grad,
    "jacfwd": jaxinterop.jacfwd,
    "jacrev": jaxinterop.jacrev,
    "hessian": jaxinterop.hessian,
    "scan": scanned,
    "fori_loop": looped,
    "while_loop": whiled,
    "make_jaxpr": jaxinterop.make_jaxpr,
    "keep_sharing": jaxinterop.keep_sharing(jax.named_call, static="width"),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_every_wrapper_has_it(name: str) -> None:
    """A static number is the number inside."""
    seen = []

    def f(layer: Layer) -> Any:
        seen.append(type(layer.width))
        return jnp.sum(layer.w) * layer.width

    options = {} if name == "keep_sharing" else {"static": "width"}
    WRAPPERS[name](f, **options)(Layer())
    assert set(seen) == {int}


def test_a_gradient_has_none_for_what_is_static() -> None:
    """By one argument or by several; keyword arguments are looked at, too."""

    def f(layer: Layer, other: Any, *, scale: Any) -> Any:
        assert (layer.width, other["width"], scale["width"]) == (2, 3, 4)
        return jnp.sum(layer.w) * layer.rate + other["x"] * scale["x"]

    given: dict[str, Any] = {"scale": {"width": 4, "x": 2.0}}
    one = jaxinterop.grad(f, static="*width*")(Layer(), {"width": 3, "x": 1.0}, **given)
    assert one.width is None
    assert (one.w.tolist(), float(one.rate)) == ([0.5, 0.5], 2.0)
    two = jaxinterop.grad(f, (1, 0), static="*width*")(Layer(), {"width": 3, "x": 1.0}, **given)
    assert two[0]["width"] is None
    assert float(two[0]["x"]) == 2.0
    assert two[1].width is None


def test_an_object_that_holds_arrays_may_be_a_constant() -> None:
    """`static=cls`, as the error about it says; the object itself comes in."""

    class Table:
        def __init__(self) -> None:
            self.values = jnp.arange(3.0)

    table = Table()
    with pytest.raises(TypeError, match="static=Table"):
        jaxinterop.jit(lambda tree: tree["table"].values)({"table": table})
    f = jaxinterop.jit(lambda tree: (tree["table"].values * tree["x"], tree["table"]), static=Table)
    values, out = f({"table": table, "x": 2.0})
    assert values.tolist() == [0.0, 2.0, 4.0]
    assert out is table


def test_a_selection_that_selects_nothing() -> None:
    """The error lists the nearest paths that exist."""
    with pytest.raises(ValueError, match="no path matches the pattern 'widht'") as caught:
        jaxinterop.jit(kinds, static="widht")(Layer())  # codespell:ignore
    assert "width" in str(caught.value)
    nothing: list[Any] = [lambda leaf: False, str, (bytes, str), [str]]
    for where in nothing:
        with pytest.raises(ValueError, match="selects none of 3 leaves"):
            jaxinterop.jit(kinds, static=where)(Layer())
    for wrap in (jaxinterop.grad, jaxinterop.vmap, jaxinterop.checkpoint, scanned, looped):
        with pytest.raises(ValueError, match="no path matches"):
            wrap(lambda layer: 0.0, static="widht")(Layer())  # codespell:ignore
    with pytest.raises(ValueError, match="no path matches"):
        Dag(Layer(), static="widht")  # codespell:ignore
    wrong: list[Any] = [3, {"a": 1}]
    for where in wrong:
        with pytest.raises(TypeError, match="which leaves"):
            jaxinterop.jit(kinds, static=where)(Layer())


def test_an_array_that_is_selected() -> None:
    """It can't be part of a key; the error says which one it is."""
    with pytest.raises(TypeError, match=r"args\[0\]\.w is an array and selected by static="):
        jaxinterop.jit(kinds, static="w")(Layer())


class Held(jaxinterop.Module):
    """A module that holds more than arrays."""

    def __init__(self) -> None:
        self.w, self.b = jnp.ones((2, 2)), jnp.ones(2)
        self.act, self.name, self.width, self.steps = jnp.tanh, "held", 3, jnp.int32(0)


def is_matrix(leaf: Any) -> bool:
    return leaf.ndim > 1  # type: ignore[no-any-return]  # of Any


def summed(model: Any) -> Any:
    return model.w.sum() + model.b.sum()


def test_one_predicate_for_all(tmp_path: Any) -> None:
    """It is asked about arrays and data: no function, text or configuration of the model."""
    model = Held()
    gradient = jaxinterop.grad(summed, wrt=is_matrix)(model)
    assert (gradient.w.tolist(), gradient.b) == ([[1.0, 1.0], [1.0, 1.0]], None)
    state = jaxinterop.optimizer(optax.adam(0.1), wrt=is_matrix).init(model)
    assert list(state[0].mu) == ["w"]
    mask = pydag.dag_mask(model, is_matrix)
    assert [mask.w, mask.b, mask.act, mask.name, mask.width] == [True, *[False] * 4]
    assert jaxinterop.mask(model, is_matrix)({"w": 1, "b": 2}) == {"w": True, "b": False}
    inner = pydag.dag_mask(Dag(model), is_matrix).tree
    assert (inner.w, inner.b) == (True, False)
    jaxinterop.save(tmp_path / "m", model, structure=False)
    like = Held()
    loaded = jaxinterop.load(tmp_path / "m", like, only=is_matrix)
    assert loaded.b is like.b
    assert loaded.w is not like.w


def test_a_predicate_of_static() -> None:
    """It is asked about every leaf that could be static, and no array."""
    asked: list[Any] = []

    def is_text(leaf: Any) -> bool:
        asked.append(leaf)
        return isinstance(leaf, str)

    jaxinterop.jit(summed, static=is_text)(Held())
    assert set(asked) == {jnp.tanh, "held", 3}


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda f: jaxinterop.grad(summed, wrt=f)(Held()), "args[0].b"),
        (lambda f: jaxinterop.jit(jaxinterop.grad(summed, wrt=f))(Held()), "args[0].b"),
        (lambda f: jaxinterop.grad(lambda x, m: m["w"], 1, wrt=[f])(0, {"w": 1.0}), "args[1]['w']"),
        (lambda f: jaxinterop.optimizer(optax.sgd(0.1), wrt=f).init(Held()), "params.b"),
        (lambda f: jaxinterop.mask(Held(), f), "tree.b"),
        (lambda f: jaxinterop.jit(summed, static=f)(Held()), "args[0].act"),
    ],
)
def test_an_error_of_a_predicate_names_the_leaf(call: Any, path: str) -> None:
    """As a note."""
    with pytest.raises(AttributeError) as caught:
        call(lambda leaf: leaf.missing)
    assert caught.value.__notes__[0] == f"raised while selecting {path}"


@pytest.mark.parametrize(
    "selection", ["*.weight", "w", is_matrix, jnp.ndim, jax.Array, functools.partial(is_matrix)]
)
def test_a_mask_without_a_model(selection: Any) -> None:
    """It would be one answer for every leaf."""
    with pytest.raises(TypeError, match=r"pj\.mask\(model, where\)"):
        jaxinterop.mask(selection)
    with pytest.raises(TypeError, match=r"pj\.mask\(model, where\)"):
        jaxinterop.mask(selection, Held())
