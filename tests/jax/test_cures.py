# SPDX-License-Identifier: Apache-2.0
"""The cure that an error about a static leaf names works for the object that it is about."""

import collections
import functools
import re
import threading
import types
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
import pydag.jaxinterop as pj

X = jnp.arange(2.0)
Partial: Any = jax.tree_util.Partial


class Pair(tuple[Any]):
    """A subclass of tuple, which JAX doesn't open."""


class NamedPair(NamedTuple):
    """The same as a named tuple."""

    x: Any


@pydag.register_fields
class Net:
    """A model, which can be hashed."""

    def __init__(self) -> None:
        self.w = X

    def value(self) -> Any:
        """Its array."""
        return self.w


class Parameter:
    """An array's wrapper that says how to make an array of it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value


NET = Net()
CURED: dict[str, tuple[Any, str, Any, Any]] = {  # what, the cure's text, what cures, how it is read
    "a tuple": (Pair((X,)), r"Make Pair a NamedTuple", NamedPair(X), lambda p: p[0]),
    "a partial": (
        functools.partial(jnp.add, X), "tree_util.Partial in the place", Partial(jnp.add, X),
        lambda p: p(0.0),
    ),
    "a partial of an object": (
        functools.partial(max, NET), "tree_util.Partial in the place", Partial(max, NET),
        lambda p: p.args[0].w,
    ),
    "a method": (
        NET.value, r"tree_util.Partial\(function, object\)", Partial(Net.value, NET), lambda p: p(),
    ),
    "a slice": (
        slice(NET), "start, stop and step as a tuple", (None, NET, None), lambda p: p[1].w,
    ),
    "a method of a list": ([X].append, "Pass the list, and call", [X], lambda p: p[0]),
    "a frozenset": (frozenset([NET]), "a list, a tuple or a dict", [NET], lambda p: p[0].w),
    "a set": ({1, 2}, r"Pass a frozenset\.", frozenset({1, 2}), lambda p: X * len(p) / 2),
    "a set of objects": ({NET}, r"Pass a list\.", [NET], lambda p: p[0].w),
    "bytes": (bytearray(b"ab"), r"Pass bytes\.", b"ab", lambda p: X * len(p) / 2),
    "a view": ({"a": X}.values(), r"list\(", [X], lambda p: p[0]),
    "a mapping": (types.MappingProxyType({"a": X}), r"dict\(", {"a": X}, lambda p: p["a"]),
    "an iterator": (iter([X]), r"list\(", [X], lambda p: p[0]),
    "memory": (memoryview(b"ab"), r"bytes\(", b"ab", lambda p: X * len(p) / 2),
    "objects": (np.array([X, None], object), r"tolist", [X, None], lambda p: p[0]),
    "an array by a method": (Parameter(X), r"jnp\.asarray", jnp.asarray(X), lambda p: p),
}  # fmt: skip


@pytest.mark.parametrize("what", CURED)
def test_following_the_cure(what: str) -> None:
    """The error names it, and what it says is then taken, in `jit` and by `grad`."""
    refused, text, cured, read = CURED[what]
    with pytest.raises(TypeError, match=r"^args\[0\]\['held'\]") as caught:
        pj.jit(lambda t: read(t["held"]))({"held": refused})
    assert re.search(text, str(caught.value))
    assert str(caught.value).count("Partial") <= 1
    assert pj.jit(lambda t: read(t["held"]))({"held": cured}).tolist() == [0.0, 1.0]

    def loss(t: Any) -> Any:
        return (t["w"] * read(t["held"])).sum()

    assert pj.grad(loss)({"held": cured, "w": jnp.ones(2)})["w"].tolist() == [0.0, 1.0]


class Unregistered:
    """An object that holds an array."""

    def __init__(self) -> None:
        self.w = X

    def value(self) -> Any:
        """Its array."""
        return self.w


@pytest.mark.parametrize(
    ("make", "wrap"),
    [
        (lambda obj: functools.partial(max, obj), lambda obj: Partial(max, obj)),
        (lambda obj: obj.value, lambda obj: Partial(type(obj).value, obj)),
        (lambda obj: Pair((obj,)), lambda obj: NamedPair(obj)),
        (lambda obj: obj, lambda obj: obj),
    ],
)
def test_two_cures_at_once(make: Any, wrap: Any) -> None:
    """Where an object in a partial isn't registered, either, the error says both."""

    class Late(Unregistered):
        pass

    with pytest.raises(TypeError, match=r"register_fields\(Late\)"):
        pj.jit(lambda t: 1.0)(make(Late()))
    pydag.register_fields(Late)
    assert jax.tree.leaves(pj.Dag(wrap(Late())))[0].tolist() == [0.0, 1.0]


def test_registering_a_subclass_of_tuple() -> None:
    """The other cure: it is opened by functions."""

    class Late(tuple[Any]):
        pass

    with pytest.raises(TypeError, match="register_pydag_node"):
        pj.jit(lambda t: t[0])(Late((X,)))
    pydag.register_pydag_node(Late, lambda p: (tuple(p), None), lambda _, parts: Late(parts))
    assert pj.jit(lambda t: t[0] * 2)(Late((X,))).tolist() == [0.0, 2.0]


def test_slices_are_values() -> None:
    """On each Python; they come in as they are, and equal ones are one."""
    seen: list[Any] = []

    @pj.jit
    def function(t: Any) -> Any:
        seen.append(t["cut"])
        return t["x"][t["cut"]]

    for start in (1, 1, 0):
        function({"x": X, "cut": slice(start, 2)})
    assert seen == [slice(1, 2), slice(0, 2)]


def test_names_don_t_make_a_view() -> None:
    """A class is known by what it is: one with "view" in its name is a class like others."""

    class Overview:
        pass

    with pytest.raises(TypeError, match=r"register_module\(Overview\)"):
        pj.jit(lambda t: 1.0)(Overview())


def test_what_can_t_be_registered() -> None:
    """For a class that can't be changed, registering is no cure; a constant is."""
    lock = threading.Lock()
    with pytest.raises(TypeError, match="lock, a class that is not registered") as caught:
        pj.jit(lambda t: t["x"])({"x": X, "held": lock})
    assert "register_" not in str(caught.value)
    assert pj.jit(lambda t: t["x"], static=type(lock))({"x": X, "held": lock})[1] == 1.0


def test_a_counter_is_opened() -> None:
    """Containers that pydag knows are no leaves."""
    tree = {"x": X, "n": collections.OrderedDict(a=1)}
    assert pj.jit(lambda t: t["n"]["a"] + t["x"])(tree).tolist() == [1.0, 2.0]
