# SPDX-License-Identifier: Apache-2.0
"""Leaves that are no values: refused in every wrapper, as arguments and as results."""

from __future__ import annotations

import functools
import itertools
import types
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from wrappers import WRAPPERS

import pydag
import pydag.jaxinterop as pj

W = jnp.ones((2, 2))
SAYS = r"\['sub'\]\[0\] is an object of .*\.Sub, a class that is not registered"


class Sub:
    """The registration was forgotten here."""

    def __init__(self, w: Any = W) -> None:
        self.w = w

    def __call__(self, x: Any) -> Any:
        return x @ self.w


@pydag.register_fields
class Top:
    """A registered class."""

    def __init__(self, sub: Any) -> None:
        self.sub = sub


class Inherited(Top):
    """A registration of a base class doesn't hold for it."""


class OwnDict(dict[str, Any]):
    """A subclass of a container is no container."""


@pytest.mark.parametrize("name", WRAPPERS)
def test_in_every_wrapper(name: str) -> None:
    """No wrapper takes one, and none returns one: there it would be a leak."""
    with pytest.raises(TypeError, match=SAYS):
        WRAPPERS[name](lambda t: t)({"w": W, "sub": [Sub()]})
    is_loop = name in ("scan", "fori_loop", "while_loop")  # in which the structure has to stay

    def leaks(t: Any) -> Any:
        return {**t, "sub": [Sub(t["w"])]}

    with pytest.raises(TypeError, match=r"\['sub'\]\[0\] is 'text'(.|\n)*Sub" if is_loop else SAYS):
        WRAPPERS[name](leaks)({"w": W, "sub": ["text"]} if is_loop else {"w": W})


def test_the_other_ways_in() -> None:
    """`Dag`, a registered class, ahead of time and in loops."""
    bad = [Sub()]
    calls: list[Callable[[], Any]] = [
        lambda: pj.Dag(bad),
        lambda: pj.jit(lambda t: 0).lower(bad),
        lambda: pj.eval_shape(lambda t: 0, bad),
        lambda: pj.make_jaxpr(lambda t: 0.0)(bad),
        lambda: pj.scan(lambda c, x: (c, x), 1.0, {"x": jnp.ones(2), "s": Sub()}),
        lambda: pj.associative_scan(lambda a, b: a, {"x": jnp.ones(2), "s": Sub()}),
        lambda: pj.jvp(lambda t: t, ([1.0, Sub()],), ([1.0, Sub()],)),
        lambda: pj.jit(lambda t, more: 0, donate_argnums=0)([1.0], more=bad),
        lambda: pj.Dag([Inherited(1)]),
        lambda: pj.Dag([OwnDict(a=W)]),
        lambda: jax.tree.leaves(pj.register(Top)(Sub())),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"is an object of .*, a class that is not registered"):
            call()


@pytest.mark.parametrize("cure", [pydag.register_fields, pydag.register_module])
def test_registering_is_the_cure(cure: Any) -> None:
    """Once its class is registered, the object is a node: traced, trained and noticed."""

    class Late(Sub):
        pass

    f = pj.jit(lambda tree: tree["sub"].w)
    tree = {"sub": Late()}
    with pytest.raises(TypeError, match=cure.__name__):
        f(tree)
    cure(Late)
    assert f(tree)[0, 0] == 1.0
    tree["sub"].w = W * 100
    assert f(tree)[0, 0] == 100.0


def test_a_selection_is_the_cure_for_a_constant() -> None:
    """`static=cls`: who writes it has said that the object is one, and that it stays as it is."""
    sub = Sub()
    f = pj.jit(lambda tree: tree["sub"](tree["x"]), static=Sub)
    assert f({"sub": sub, "x": jnp.ones(2)}).tolist() == [2.0, 2.0]


def test_a_partial_of_jax_is_the_cure_for_partials() -> None:
    """`jax.tree_util.Partial` is a node: of a function and its arguments."""
    partial: Any = jax.tree_util.Partial
    f = pj.jit(lambda tree: tree["f"](jnp.ones(2)))
    assert f({"f": partial(jnp.dot, W)}).tolist() == [2.0, 2.0]
    assert f({"f": partial(jnp.dot, 2 * W)}).tolist() == [4.0, 4.0]


def closing_over(x: Any) -> Any:
    """A function that leads to its argument."""
    return lambda: x * 2


RETURNED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "closure": (closing_over, "being traced: f32"),
    "closure of a closure": (lambda x: closing_over(closing_over(x)), "being traced: f32"),
    "default": (lambda x: lambda y=x: y, "being traced: f32"),
    "keyword default": (lambda x: lambda *, y=x: y, "being traced: f32"),
    "closure over a holder": (lambda x: closing_over(Sub([x])), "being traced: f32"),
    "partial of a closure": (lambda x: functools.partial(closing_over(x)), "being traced: f32"),
    "bound method": (lambda x: x.sum, "a method bound to f32"),
    "exception": (ValueError, "ValueError, a class that is not registered"),
    "slice": (lambda x: slice(x, None), "slice"),
    "values": (lambda x: {"a": x}.values(), "an iterator or a view"),
    "proxy": (lambda x: types.MappingProxyType({"a": x}), "an iterator or a view"),
    "generator": (lambda x: (y for y in [x]), "an iterator or a view"),
    "empty iterator": (lambda x: iter([1]), "an iterator or a view"),
    "map": (lambda x: map(jnp.sin, [x]), "an iterator or a view"),
    "chain": (lambda x: itertools.chain([x]), "an iterator or a view"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_results(name: str) -> None:
    """What leads to a tracer would be dead for the caller; an iterator could be used but once."""
    make, says = RETURNED[name]
    for wrap in (pj.jit, pj.vmap):
        with pytest.raises(TypeError, match=rf"^result\['r'\] is .*{says}"):
            wrap(lambda x: {"r": make(x)})(W)


def test_functions_in_results() -> None:
    """One that closes over concrete arrays is a constant; a cell may be empty."""

    def maker(x: Any) -> Any:
        def function() -> Any:
            return later

        if x is None:
            later = 1
        return function

    assert pj.jit(lambda x: closing_over(W))(W)()[0].tolist() == [2.0, 2.0]
    assert callable(pj.jit(maker)(W))


class World(pj.Module):
    """Its part knows it, the usual way round a cycle."""

    def __init__(self) -> None:
        self.w, self.part = W, {"world": weakref.ref(self)}


@pytest.mark.parametrize("make", [World, lambda: {"part": {"world": weakref.proxy(World)}}])
def test_weak_references(make: Any) -> None:
    """They would lead to the caller's objects, past the arguments."""
    world = make()
    with pytest.raises(TypeError, match=r"args\[0\]\S*part\S*\['world'\] is a weak reference"):
        pj.jit(lambda world: 1.0)(world)


def test_an_object_whose_text_is_endless() -> None:
    """Nothing writes an object down, nor runs code of its class, to see whether it is a value."""
    tower: Any = [0]
    for _ in range(60):
        tower = [tower, tower]

    class Endless:
        def __repr__(self) -> str:
            return repr(tower)

        def __eq__(self, other: object) -> bool:
            return self is other

        def __hash__(self) -> int:
            return 1

    assert float(pj.jit(lambda tree: tree)([Endless(), 1.0])[1]) == 1.0
