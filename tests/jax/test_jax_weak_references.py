# SPDX-License-Identifier: Apache-2.0
"""Weak references into the arguments of a call would lead to the caller's objects: an error."""

import gc
import weakref
from typing import Any

import jax.numpy as jnp
import pytest

import pydag
import pydag.jaxinterop as pj


@pydag.register_module
class Body:
    """Knows its parent, the usual way round a cycle."""

    def __init__(self, world: "World") -> None:
        self.x, self.world = jnp.float32(2.0), weakref.ref(world)


@pydag.register_module
class World:
    def __init__(self) -> None:
        self.g = jnp.float32(3.0)
        self.bodies = [Body(self)]


class Holder:
    """Nobody registered it."""

    def __init__(self, world: World) -> None:
        self.known = {"world": weakref.proxy(world)}


def energy(*args: Any) -> Any:
    return 1.0


def test_a_parent() -> None:
    """The error names both places and says what to do, at every call and in every wrapper."""
    world = World()
    for call in (pj.jit(energy), pj.grad(energy), pj.checkpoint(energy)):
        for _ in range(2):
            with pytest.raises(TypeError) as caught:
                call(world)
            text = str(caught.value)
            assert text.startswith("args[0].bodies[0].world is a weak reference to args[0], an obj")
            assert "Give a method what it needs of that object as an argument" in text


def test_proxies_and_holders() -> None:
    """A proxy is one; so is a reference in an object that is a constant."""
    world = World()
    world.bodies = []
    tree = {"p": weakref.proxy(world), "w": world}
    with pytest.raises(TypeError, match=r"init\['p'\] is a weak reference to init\['w'\]"):
        pj.scan(lambda c, _: (c, None), tree, length=2)
    with pytest.raises(
        TypeError, match=r"args\[0\]\['h'\]\.known\['world'\] is a weak reference to args\[1\]"
    ):
        pj.jit(energy)({"h": Holder(world)}, world)


def test_another_object() -> None:
    """A reference to what is no argument is a constant, until that becomes an argument."""
    world, other = World(), World()
    other.bodies = []
    compiled = pj.jit(energy)
    body = world.bodies[0]
    world.bodies = []
    for _ in range(3):
        assert float(compiled(body, other)) == 1.0
    with pytest.raises(TypeError, match=r"args\[0\]\.world is a weak reference to args\[1\]"):
        compiled(body, world)
    assert float(compiled(body, other)) == 1.0


def test_a_dead_reference() -> None:
    """It leads nowhere."""
    world = World()
    body = world.bodies[0]
    hash(body.world)
    del world
    gc.collect()
    assert float(pj.vmap(energy, in_axes=(0, None), out_axes=None)(jnp.ones(3), body)) == 1.0
