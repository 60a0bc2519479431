# SPDX-License-Identifier: Apache-2.0
"""Classes of equinox, flax, chex and JAX are opened and built by their fields, without a call."""

from __future__ import annotations

import abc
import dataclasses
import functools
import gc
import pickle
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


class Node(struct.PyTreeNode):  # type: ignore[misc]  # untyped base
    weight: Any
    other: Any = None


BY_FIELDS: dict[str, Callable[[Any], Any]] = {
    "module": Linear,
    "inheritance": Deeper,
    "converter": Converted,
    "abstract": Concrete,
    "partial": lambda w: equinox.Partial(jnp.add, w, x=w),
    "linear": lambda w: equinox.nn.Linear(2, 2, key=jax.random.key(0)),
    "attention": lambda w: equinox.nn.MultiheadAttention(2, 4, key=jax.random.key(0)),
    "mlp": lambda w: equinox.nn.MLP(2, 2, 3, 1, key=jax.random.key(0)),
    "lstm": lambda w: equinox.nn.LSTMCell(2, 2, key=jax.random.key(0)),
    "conv": lambda w: equinox.nn.Conv2d(1, 2, 3, key=jax.random.key(0)),
    "dropout": lambda w: equinox.nn.Dropout(0.5),
    "register_dataclass": Known,
    "slots": lambda w: Slotted(weight=w),
    "flax.struct": State,
    "flax.struct without meta fields": Node,
}

BY_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "no fields": lambda w: Empty(),
    "a field that isn't set": Lazy,
    "generic": lambda w: Parametrized[int](w),
    "bound method": lambda w: Concrete(w).double,
    "wrapped function": lambda w: equinox.filter_jit(jnp.negative),
    "norm": lambda w: equinox.nn.LayerNorm(3),
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


@pytest.mark.parametrize("name", [*BY_FIELDS, *BY_FUNCTIONS])
def test_it_crosses_the_boundary(name: str) -> None:
    """Through `jit`, shared as it was; and its structure is pickled where that can be."""
    make = (BY_FIELDS | BY_FUNCTIONS)[name]
    tree = make(W)
    out = jaxinterop.jit(lambda pair: pair)([tree, tree])
    assert out[0] is out[1]
    assert type(out[0]) is type(tree)
    if name in ("module", "inheritance", "converter", "register_dataclass", "slots", "no fields"):
        spec = pydag.dag_structure([tree, tree])
        assert pickle.loads(pickle.dumps(spec)) == spec


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


def test_static_fields_are_structure() -> None:
    """Compared by `==`: another value is another structure, and another trace."""
    assert pydag.dag_structure(Linear(W)) != pydag.dag_structure(Linear(W, name="other"))
    f = jaxinterop.jit(lambda module: module.name)
    assert [f(Linear(W)), f(Linear(W, name="other"))] == ["linear", "other"]


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


def test_attributes_in_any_order() -> None:
    """Instances that set their fields in turns."""
    modules = [Deeper(W), Linear(W), Deeper(W)]
    flipped = object.__new__(Deeper)
    for name, value in reversed(list(vars(modules[0]).items())):
        object.__setattr__(flipped, name, value)
    modules.insert(1, flipped)
    for _ in range(3):
        leaves, spec = pydag.dag_flatten(modules, identity="nodes")
        assert [x if isinstance(x, float) else "W" for x in leaves[:6]] == ["W", 0.25, "W"] * 2
        assert pydag.dag_structure(modules, identity="nodes") == spec


# --- classes with code of their own ---


def own_init() -> Any:
    @register_dataclass
    @dataclasses.dataclass
    class Own:
        weight: Any

        def __init__(self, weight: Any) -> None:
            self.weight, self.also = weight, True

    return Own


def post_init() -> Any:
    @register_dataclass
    @dataclasses.dataclass
    class Own:
        weight: Any

        def __post_init__(self) -> None:
            self.also = True

    return Own


def own_new() -> Any:
    @register_dataclass
    @dataclasses.dataclass
    class Own:
        weight: Any

        def __new__(cls, weight: Any) -> Any:
            self = object.__new__(cls)
            vars(self)["also"] = True
            return self

    return Own


def own_setattr() -> Any:
    @register_dataclass
    @dataclasses.dataclass
    class Own:
        weight: Any

        def __setattr__(self, name: str, value: Any) -> None:
            vars(self).update({name: value, "also": True})

    return Own


def own_metaclass() -> Any:
    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            self = super().__call__(*args, **kwargs)
            self.also = True
            return self

    @register_dataclass
    @dataclasses.dataclass
    class Own(metaclass=Meta):
        weight: Any

    return Own


def wrapped_init() -> Any:
    @dataclasses.dataclass
    class Own:
        weight: Any

    init: Any = Own.__init__

    @functools.wraps(init)
    def with_more(self: Any, weight: Any) -> None:
        init(self, weight)
        self.also = True

    Own.__init__ = with_more  # type: ignore[method-assign]  # meant
    return register_dataclass(Own)


def own_property() -> Any:
    @dataclasses.dataclass
    class Own:
        weight: Any

    def put(self: Any, value: Any) -> None:
        vars(self).update(hidden=value, also=True)

    Own.weight = property(lambda self: vars(self)["hidden"], put)
    return register_dataclass(Own)


def dropped_field() -> Any:
    @dataclasses.dataclass
    class Own:
        weight: Any
        also: bool = True

    return register_dataclass(Own, ("weight",), (), ("also",))


def own_functions() -> Any:
    @dataclasses.dataclass
    class Own:
        weight: Any
        also: bool = False

    jax.tree_util.register_pytree_node(
        Own, lambda own: ((own.weight,), None), lambda _, children: Own(children[0], True)
    )
    return Own


@pytest.mark.parametrize(
    "make",
    [
        own_init,
        post_init,
        own_new,
        own_setattr,
        own_metaclass,
        wrapped_init,
        own_property,
        dropped_field,
        own_functions,
    ],
)
def test_a_class_with_code_of_its_own(make: Callable[[], Any]) -> None:
    """It runs, as in JAX."""
    cls = make()
    tree = cls(W)
    vars(tree).pop("also", None)
    leaves, spec = pydag.dag_flatten(tree)
    assert len(leaves) == 1
    built = pydag.dag_unflatten(spec, leaves)
    assert vars(built)["also"] is True if make is not dropped_field else built.also
    assert built.weight is W


def test_getattr_of_its_own() -> None:
    """A class that computes what isn't set is asked."""

    @register_dataclass
    @dataclasses.dataclass
    class Computed:
        weight: Any

        def __getattr__(self, name: str) -> Any:
            if name == "weight":
                return W
            raise AttributeError(name)

    tree = Computed(W)
    del tree.weight
    assert pydag.dag_leaves(tree)[0] is W


def test_a_dataclass_of_chex() -> None:
    """By its attributes, sorted by name, as chex opens it; one with a `__post_init__` by chex."""
    chex: Any = pytest.importorskip("chex")

    class Plain:
        weight: Any
        bias: Any

    class Own:
        weight: Any

        def __post_init__(self) -> None:
            self.also = True

    plain, own = chex.dataclass(Plain), chex.dataclass(Own)

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
    posted = own(weight=W)
    del posted.also
    assert vars(pydag.dag_map(lambda x: x, posted))["also"]


def test_in_place() -> None:
    """Equinox's modules and JAX's dataclasses are not written to: others may rely on it."""
    for tree in (Linear(W), State(W), Known(W)):
        with pytest.raises(TypeError, match="another library"):
            pydag.dag_update(tree, pydag.dag_map(lambda x: np.asarray(x) + 1, tree))


def test_deref_leaves_them_to_jax() -> None:
    """What JAX opens by itself needs no `Node` around it."""
    tree = [Linear(W), State(W), Known(W)]
    flat = pydag.deref([tree, tree])
    assert len(jax.tree.leaves(flat)) == len(pydag.dag_leaves(tree))
    again = pydag.reref(flat)
    assert again[0] is again[1]
    assert again[0][0].weight is again[0][1].weight is W


def test_numbers_of_equinox_modules_are_configuration() -> None:
    """And those of JAX's dataclasses are data."""
    seen = []

    def f(module: Any, known: Any) -> Any:
        seen.extend([type(module.eps), isinstance(known.weight, jax.core.Tracer)])
        return 1

    jaxinterop.jit(f)(Linear(W), Known(0.5))
    assert seen == [float, True]


def test_a_release_that_opens_its_classes_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it can't be found out how a library opens its classes, its own functions do it."""
    from pydag.jaxinterop.foreign import equinox_private, jax_private
    from pydag.jaxinterop.registries.known_fields import known_fields

    assert known_fields(Linear, jax_private.registry[Linear]) is not None
    monkeypatch.setattr(equinox_private, "_opens_by_fields_in_equinox", lambda: 1 / 0)
    assert known_fields(Linear, jax_private.registry[Linear]) is None
    monkeypatch.setattr(jax_private, "_BY_FIELDS", [])
    assert known_fields(Known, jax_private.registry[Known]) is None
    assert known_fields(State, jax_private.registry[State]) is None


def test_an_array_in_a_meta_field_is_an_error() -> None:
    """At the first call, with path and class, also in a tuple; of every wrapper, and `Dag`."""

    @pydag.register_module(meta_fields=("idx",))
    class Gather:
        def __init__(self, idx: Any) -> None:
            self.w, self.idx = jnp.ones(3), idx

    for idx in (np.arange(2), jnp.arange(2), ("rows", (np.arange(2),))):
        for call, root in (
            (jaxinterop.jit(lambda x: x["g"].w), "args"),
            (jaxinterop.grad(lambda x: x["g"].w.sum()), "args"),
        ):
            with pytest.raises(
                TypeError, match=rf"^{root}\[0\]\['g'\]\.idx is a meta field of .*Ga"
            ):
                call({"g": Gather(idx)})
        with pytest.raises(TypeError, match=r"^tree\.idx is a meta field"):
            jaxinterop.Dag(Gather(idx))
    assert jaxinterop.jit(lambda g: g.w[g.idx[0]])(Gather((1, "text"))) == 1.0


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
