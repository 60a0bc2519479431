# SPDX-License-Identifier: Apache-2.0
"""Leaves that are no values, arrays in meta fields: refused in every wrapper."""

from __future__ import annotations

import collections
import functools
import weakref
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
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


def closing_over(x: Any) -> Any:
    """A function that leads to its argument."""
    return lambda: x * 2


RETURNED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "closure": (closing_over, "being traced: f32"),
    "closure over a holder": (lambda x: closing_over(Sub([x])), "being traced: f32"),
    "bound method": (lambda x: x.sum, "a method bound to f32"),
    "exception": (ValueError, "ValueError, a class that is not registered"),
    "values": (lambda x: {"a": x}.values(), "an iterator or a view"),
    "generator": (lambda x: (y for y in [x]), "an iterator or a view"),
    "empty iterator": (lambda x: iter([1]), "an iterator or a view"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_results(name: str) -> None:
    """What leads to a tracer would be dead for the caller; an iterator could be used but once."""
    make, says = RETURNED[name]
    for wrap in (pj.jit, pj.vmap):
        with pytest.raises(TypeError, match=rf"^result\['r'\] is .*{says}"):
            wrap(lambda x: {"r": make(x)})(W)


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


class Record:
    def __init__(self, scale: Any) -> None:
        self.w = jnp.ones(2)
        self.scale = scale


pydag.register_fields(Record, data_fields=["w"], meta_fields=["scale"])


def loss(tree: Any) -> Any:
    return jnp.sum(tree["net"].w)


class Net(pj.Module):
    def __init__(self) -> None:
        self.layers = [{"w": jnp.ones(2)}]


ONES = jnp.ones(2)
Pair = collections.namedtuple("Pair", "a b")

HELD: dict[str, tuple[Any, str]] = {
    "a list": ([np.ones(2)], "scale[0]"),
    "a dict in a tuple": ((1, {"a": ONES}), "scale[1]['a']"),
    "a namedtuple": (Pair(1, ONES), "scale[1]"),
    "a deque in a list": ([collections.deque([ONES])], "scale[0][0]"),
    "a module": (Net(), "scale.layers[0]['w']"),
    "modules in a tuple": ((2, Net()), "scale[1].layers[0]['w']"),
    "a derived leaf": (pj.Derived(jnp.exp, ONES), "scale.sources[0]"),
    "a partial": (functools.partial(jnp.add, ONES), "scale.args[0]"),
}


@pytest.mark.parametrize("what", HELD)
def test_an_array_at_any_depth(what: str) -> None:
    """What containers, modules and derived leaves hold counts, and the path leads to it."""
    value, path = HELD[what]
    for work in (pj.jit(loss), pj.grad(loss), pj.Dag):
        for _ in range(2):
            with pytest.raises(TypeError, match=r"\['net'\]\.scale is a meta field of") as info:
                work({"net": Record(value)})
            assert f"holds an array: {path} is f" in str(info.value)


def deep(value: Any) -> Any:
    for _ in range(100_000):
        value = (value,)
    return value


def test_what_is_no_array() -> None:
    """Values, functions, modules without arrays and depth are nothing to refuse."""
    plain = Record(3)
    values = [
        jnp.float32,
        [1],
        {"a": {2}},
        np.dtype("int8"),
        np.float32(1),
        deep(1),
        frozenset([(1, "a")]),
        1j,
    ]
    for value in [*values, len, functools.partial(max, 1, key=abs), range(3), plain.scale]:
        assert pj.grad(loss)({"net": Record(value)})["net"].w.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="holds an array"):
        pj.grad(loss)({"net": Record(deep(ONES))})
