# SPDX-License-Identifier: Apache-2.0
"""Classes that are opened, NNX, users' objects, `pj.tree`, derived leaves, several processes."""

import dataclasses
import importlib.util
from collections.abc import Callable
from typing import Any

import equinox as eqx
import flax.struct
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import pydag
import pydag.jaxinterop as pj

X = jnp.array([1.0, 2.0])


class Module(pj.Module):
    """A module of pydag's."""

    def __init__(self, a: Any, b: Any, n: int = 3) -> None:
        self.a, self.b, self.n = a, b, n


@pydag.register_module
class Registered:
    """Registered as a module."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b, self.n = a, b, 3


@pydag.register_fields
class Record:
    """A record."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


@pj.register
@pydag.register_fields
class Seen:
    """A record that JAX sees as a Dag."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Equinox(eqx.Module):
    """Of equinox."""

    a: Any
    b: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class JaxData:
    """A dataclass of JAX's."""

    a: Any
    b: Any


@flax.struct.dataclass
class FlaxData:
    """Of flax.struct."""

    a: Any
    b: Any


OF_CHEX: list[Any] = []
if importlib.util.find_spec("chex") is not None:
    chex: Any = importlib.import_module("chex")

    @chex.dataclass
    class ChexData:
        """Of chex."""

        a: Any
        b: Any

    made: Any = ChexData
    OF_CHEX.append(lambda a, b: made(a=a, b=b))


@jax.tree_util.register_pytree_node_class
class ByHand:
    """Registered with JAX by functions of its own."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> Any:
        """Both."""
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Any:
        """Built by the constructor."""
        return cls(*children)


class Nnx(nnx.Module):
    """Of NNX."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a = nnx.Param(a)
        self.b = self.a if b is a else nnx.Param(b)


CLASSES: tuple[Callable[..., Any], ...] = (
    Module, Registered, Record, Seen, Equinox, JaxData, FlaxData,
    ByHand, Nnx, *OF_CHEX,
)  # fmt: skip


@pytest.mark.parametrize("make", CLASSES)
def test_every_class_keeps_its_ties(make: Any) -> None:
    """Inside and out, in `jit`, in gradients and mapped; the class is the user's."""
    model = make(X, X)
    seen = []

    def loss(m: Any) -> Any:
        seen.append(type(m) is type(model) and m.a is m.b)
        return jnp.sum(m.a[...] * m.b[...])

    out = pj.jit(lambda m: (m, loss(m))[0])(model)
    gradient = pj.grad(loss)(model)
    mapped = pj.tree.map(lambda x: x * 3, model)
    assert seen == [True, True]
    for found, values in ((out, [1.0, 2.0]), (gradient, [2.0, 4.0]), (mapped, [3.0, 6.0])):
        assert type(found) is type(model)
        assert found.a is found.b
        assert found.a[...].tolist() == values


@pytest.mark.parametrize("cls", [Module, Registered, Seen])
def test_modules_are_one_node_to_jax(cls: Any) -> None:
    """Their children are the distinct arrays: plain `jax.tree.map` and `jax.jit` keep ties."""
    model = cls(X, X)
    assert len(jax.tree.leaves(model)) == 1
    for found in (jax.tree.map(lambda x: x + 0, model), jax.jit(lambda m: m)(model)):
        assert found.a is found.b
        assert found.a.tolist() == [1.0, 2.0]


def test_in_nnx_identity_is_the_variables() -> None:
    """A Variable or a module at two places is a tie; one array in two Variables is none."""
    variable, shared = nnx.Param(X), Nnx(X, X + 1)

    class Two(nnx.Module):
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    f = pj.jit(lambda m: (m, m.a is m.b)[0])
    assert (lambda m: m.a is m.b)(f(Two(variable, variable)))
    assert (lambda m: m.a is m.b)(f(Two(shared, shared)))
    apart = Two(nnx.Param(X), nnx.Param(X))
    gradient = pj.grad(lambda m: (m.a[...] * m.b[...] * 3).sum())(apart)
    assert gradient.a is not gradient.b
    assert gradient.a[...].tolist() == [3.0, 6.0]


# --- users' objects hold users' leaves ---


def test_fields_that_are_left_out() -> None:
    """At registration, or with the path where an attribute would be lost: never a default."""

    @dataclasses.dataclass
    class Data:
        a: Any
        b: Any = 0

    with pytest.raises((TypeError, ValueError), match="b"):
        pydag.register_fields(Data, ["a"])

    class Plain:
        def __init__(self, a: Any) -> None:
            self.a = a

    pydag.register_fields(Plain, ["a"])
    plain: Any = Plain(X)
    pj.jit(lambda m: m)(plain)
    plain.more = X
    with pytest.raises((TypeError, ValueError), match=r"more(.|\n)*args\[0\]\[0\]"):
        pj.jit(lambda m: m)([plain])


# --- pj.tree ---


# --- derived leaves ---


# --- several processes ---


def test_assert_same_everywhere_on_one_process() -> None:
    """One process agrees with itself, whatever the order of attributes."""
    model = Module(X, X)
    pj.assert_same_everywhere({"m": model, "n": 1})
