# SPDX-License-Identifier: Apache-2.0
"""Classes of equinox, flax, chex and JAX are opened and built by their fields, without a call."""

from __future__ import annotations

import abc
import dataclasses
import functools
import gc
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import pytest

import pydag

equinox: Any = pytest.importorskip("equinox")
struct: Any = pytest.importorskip("flax.struct")

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass
from operations import python_calls

from pydag import jaxinterop

T = TypeVar("T")
W = jnp.arange(3.0)


class Linear(equinox.Module):  # type: ignore[misc]  # untyped base
    weight: Any
    eps: Any = 0.5
    name: Any = equinox.field(static=True, default="linear")


class Deeper(Linear):
    """Inherits fields, and adds some; sets them in another order."""

    inner: Any
    size: int = equinox.field(static=True)

    def __init__(self, inner: Any) -> None:
        self.size = 3
        self.inner = inner
        self.name = "deeper"
        self.eps = 0.25
        self.weight = inner


class Converted(equinox.Module):  # type: ignore[misc]  # untyped base
    value: Any = equinox.field(converter=jnp.asarray)


class Abstract(equinox.Module):  # type: ignore[misc]  # untyped base
    weight: equinox.AbstractVar[Any]

    @abc.abstractmethod
    def double(self) -> Any: ...


class Concrete(Abstract):
    weight: Any

    def double(self) -> Any:
        return 2 * self.weight


class Empty(equinox.Module):  # type: ignore[misc]  # untyped base
    pass


class Lazy(equinox.Module):  # type: ignore[misc]  # untyped base
    """Leaves a field to the default that the class has."""

    weight: Any
    bias: Any = 1.5
    name: Any = equinox.field(static=True, default="lazy")

    def __init__(self, weight: Any) -> None:
        self.weight = weight


class Parametrized(equinox.Module, Generic[T]):  # type: ignore[misc]  # untyped base
    weight: Any


@register_dataclass
@dataclasses.dataclass
class Known:
    weight: Any
    bias: Any = dataclasses.field(default_factory=list)
    name: str = dataclasses.field(default="known", metadata={"static": True})


@register_dataclass
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slotted:
    name: str = dataclasses.field(default="slotted", metadata={"static": True})
    weight: Any


class State(struct.PyTreeNode):  # type: ignore[misc]  # untyped base
    weight: Any
    name: Any = struct.field(pytree_node=False, default="state")


BY_FIELDS: dict[str, Callable[[Any], Any]] = {
    "module": Linear,
    "inheritance": Deeper,
    "converter": Converted,
    "abstract": Concrete,
    "partial": lambda w: equinox.Partial(jnp.add, w, x=w),
    "linear": lambda w: equinox.nn.Linear(2, 2, key=jax.random.key(0)),
    "conv": lambda w: equinox.nn.Conv2d(1, 2, 3, key=jax.random.key(0)),
    "register_dataclass": Known,
    "slots": lambda w: Slotted(weight=w),
    "flax.struct": State,
}

BY_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "no fields": lambda w: Empty(),
    "a field that isn't set": Lazy,
    "generic": lambda w: Parametrized[int](w),
    "bound method": lambda w: Concrete(w).double,
    "wrapped function": lambda w: equinox.filter_jit(jnp.negative),
}


def same(one: Any, other: Any) -> bool:
    """Whether two instances have equal attributes."""
    if isinstance(one, jax.Array):
        return one is other
    if type(one) is Slotted:
        return same([one.weight, one.name], [other.weight, other.name])
    if hasattr(one, "__dict__") and type(one) is type(other) and dataclasses.is_dataclass(one):
        ours, theirs = vars(one), vars(other)
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in ours)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or one is other


@pytest.mark.parametrize("name", [*BY_FIELDS, *BY_FUNCTIONS])
def test_it_is_opened_and_built_as_its_library_does(name: str) -> None:
    """The same leaves in the same order, the same paths, and an object that is like JAX's."""
    make = (BY_FIELDS | BY_FUNCTIONS)[name]
    tree = make(W)
    theirs, treedef = jax.tree.flatten(tree)
    ours, spec = pydag.dag_flatten(tree, identity="nodes")
    assert len(ours) == len(theirs)
    assert all(map(lambda a, b: a is b, ours, theirs))
    texts = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(tree)]
    accessors = pydag.dag_accessors(tree, identity="nodes")
    assert [accessor.codify("") for accessor in accessors] == texts
    built = pydag.dag_unflatten(spec, ours)
    assert type(built) is type(tree)
    assert same(built, jax.tree.unflatten(treedef, theirs))
    assert pydag.dag_structure(built, identity="nodes") == spec
    assert hash(spec) == hash(pydag.dag_structure(make(W), identity="nodes"))


@pytest.mark.parametrize("name", BY_FIELDS)
def test_no_call_for_a_node(name: str) -> None:
    """A tree of 200 costs as many calls as a tree of one, in and out."""
    one, many = [BY_FIELDS[name](W)], [BY_FIELDS[name](W) for _ in range(200)]
    gc.collect()
    for tree in (one, many, one, many):
        pydag.dag_flatten(tree)
    for work in (pydag.dag_flatten, pydag.dag_leaves, pydag.dag_copy):
        assert python_calls(functools.partial(work, many)) == python_calls(
            functools.partial(work, one)
        )
    leaves, spec = pydag.dag_flatten(many)
    names = python_calls(lambda: pydag.dag_unflatten(spec, leaves))
    assert [called for called in names if "<lambda>" not in called] == []


class Checked(equinox.Module):  # type: ignore[misc]  # untyped base
    weight: Any
    calls = 0

    def __check_init__(self) -> None:
        type(self).calls += 1


def test_check_init_and_converters_run_when_one_is_made_and_not_when_rebuilt() -> None:
    """As in equinox: text may stand for an array."""
    checked, converted = Checked(W), Converted(1.0)
    assert isinstance(converted.value, jax.Array)
    assert Checked.calls == 1
    assert pydag.dag_map(lambda x: "x", checked).weight == "x"
    assert pydag.dag_map(lambda x: "x", converted).value == "x"
    assert Checked.calls == 1


def test_methods_of_modules_are_modules() -> None:
    """A method goes in as equinox's bound method; its module's arrays are traced."""
    concrete = Concrete(W)
    out = jaxinterop.jit(lambda f, module: (f(), f.__self__ is module))(concrete.double, concrete)
    assert out[0].tolist() == [0.0, 2.0, 4.0]
    assert out[1]


def test_a_field_that_isnt_set_stays_so() -> None:
    """The class's default is no leaf; a module that has the field is structured otherwise."""
    lazy = Lazy(W)
    assert pydag.dag_leaves(lazy)[0] is W
    built = pydag.dag_map(lambda x: 2 * x, lazy)
    assert "bias" not in vars(built)
    assert built.bias == 1.5
    whole = equinox.tree_at(lambda m: m.weight, lazy, W)
    object.__setattr__(whole, "bias", 2.5)
    object.__setattr__(whole, "name", "whole")
    both = [lazy, whole, lazy]
    out = jaxinterop.jit(lambda both: both)(both)
    assert [module.bias for module in out] == [1.5, 2.5, 1.5]
    assert out[0] is out[2]
    with pytest.raises(ValueError, match="Lazy"):
        pydag.dag_map(lambda a, b: a, lazy, whole)


# --- classes with code of their own ---


def with_code(**code: Any) -> Any:
    """A dataclass of JAX's with methods of its own, which set another attribute."""
    cls = type("Own", (), {"__annotations__": {"weight": Any}, **code})
    return register_dataclass(dataclasses.dataclass(cls))


def new(cls: Any, weight: Any) -> Any:
    self = object.__new__(cls)
    vars(self)["also"] = True
    return self


def own_functions() -> Any:
    """A class that its own functions open and build."""
    cls: Any = dataclasses.make_dataclass("Own", ["weight", ("also", bool, False)])
    jax.tree_util.register_pytree_node(
        cls, lambda own: ((own.weight,), None), lambda _, children: cls(children[0], True)
    )
    return cls


def put(own: Any, **attributes: Any) -> None:
    vars(own).update(attributes, also=True)


OWN: dict[str, Callable[[], Any]] = {
    "init": lambda: with_code(__init__=lambda own, weight: put(own, weight=weight)),
    "post_init": lambda: with_code(__post_init__=put),
    "new": lambda: with_code(__new__=new),
    "setattr": lambda: with_code(__setattr__=lambda own, name, value: put(own, **{name: value})),
    "functions": own_functions,
}


@pytest.mark.parametrize("name", OWN)
def test_a_class_with_code_of_its_own(name: str) -> None:
    """It runs, as in JAX."""
    tree = OWN[name]()(W)
    vars(tree).pop("also", None)
    leaves, spec = pydag.dag_flatten(tree)
    assert len(leaves) == 1
    built = pydag.dag_unflatten(spec, leaves)
    assert vars(built)["also"] is True
    assert built.weight is W


def test_a_dataclass_of_chex() -> None:
    """By its attributes, sorted by name, as chex opens it."""
    chex: Any = pytest.importorskip("chex")

    plain = chex.dataclass(type("Plain", (), {"__annotations__": {"weight": Any, "bias": Any}}))
    tree = plain(weight=W, bias=0.5)
    leaves, spec = pydag.dag_flatten([tree, tree])
    assert leaves[0] == 0.5
    assert leaves[1] is W
    assert jax.tree.leaves(tree)[0] == 0.5
    many = [plain(weight=W, bias=0.5) for _ in range(50)]
    pydag.dag_leaves([tree]), pydag.dag_leaves(many)
    assert python_calls(lambda: pydag.dag_leaves(many)) == python_calls(
        lambda: pydag.dag_leaves([tree])
    )
    one, two = pydag.dag_unflatten(spec, leaves)
    assert one is two
    assert one.weight is W
    assert list(vars(one)) == ["weight", "bias"]
    assert jaxinterop.grad(lambda p: jnp.sum(p.weight) * p.bias)(tree).bias == 3.0


def test_in_place() -> None:
    """Equinox's modules and JAX's dataclasses are not written to: others may rely on it."""
    for tree in (Linear(W), State(W), Known(W)):
        with pytest.raises(TypeError, match="another library"):
            pydag.dag_update(tree, pydag.dag_map(lambda x: np.asarray(x) + 1, tree))


class Cached(equinox.Module):  # type: ignore[misc]  # untyped base
    weight: Any
    name: Any = equinox.field(static=True, default="cached")

    @functools.cached_property
    def total(self) -> Any:
        return self.weight.sum()


def test_what_a_module_has_cached_is_no_field() -> None:
    """It changes no structure, is in no copy, and makes no further trace."""
    traced = []

    @jaxinterop.jit
    def loss(module: Any) -> Any:
        traced.append(1)
        return module.total * 2

    module = Cached(jnp.arange(3.0))
    spec = pydag.dag_structure(module)
    assert float(loss(module)) == 6.0
    assert float(module.total) == 3.0
    assert "total" in vars(module)
    assert pydag.dag_structure(module) == spec
    assert float(loss(module)) == 6.0
    assert len(traced) == 1
    assert python_calls(functools.partial(pydag.dag_structure, module)) == []
    doubled = pydag.dag_map(lambda x: 2 * x, module)
    assert "total" not in vars(doubled)
    assert float(doubled.total) == 6.0
