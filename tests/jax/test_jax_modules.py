# SPDX-License-Identifier: Apache-2.0
"""`Module`; what a module holds as a number is configuration; in a record it is data."""

from __future__ import annotations

import copy
import dataclasses
import functools
import subprocess
import sys
from collections import OrderedDict, deque, namedtuple
from typing import Any, Generic, TypeVar, cast

import jax
import jax.numpy as jnp
import pytest
from jax_models import Net
from wrappers import WRAPPERS

import pydag
from pydag import jaxinterop


class Module:
    """Every subclass is a module."""

    def __init_subclass__(cls) -> None:
        pydag.register_module(cls)


class Norm(Module):
    """An array, a number, a flag and a width."""

    def __init__(self, eps: Any = 0.5) -> None:
        self.scale = jnp.ones((2, 2, 2))
        self.eps = eps
        self.is_training = True
        self.shape: list[Any] = [2, (1, {"channels": 3})]

    def __call__(self, x: Any) -> Any:
        assert self.is_training is True
        assert type(self.eps) is float
        assert jnp.zeros(self.shape[0]).shape == (2,)
        return x * self.scale + self.eps


@pydag.register_fields
class Record:
    def __init__(self, x: Any) -> None:
        self.x = x


Pair = namedtuple("Pair", "a b")

HOLDERS: dict[str, Any] = {
    "itself": lambda x: x,
    "list": lambda x: [x],
    "tuple": lambda x: (x, [x]),
    "dict": lambda x: {"a": x},
    "OrderedDict": lambda x: OrderedDict(a=x),
    "deque": lambda x: deque([x]),
    "namedtuple": lambda x: Pair(x, [x]),
    "nested": lambda x: {"a": [(x, {"b": deque([x])})]},
}


@pytest.mark.parametrize("number", [True, 3, 0.5, 2j])
@pytest.mark.parametrize("holder", HOLDERS)
def test_the_nearest_registered_owner_counts(holder: str, number: Any) -> None:
    """Builtin containers are looked through; a record in a module holds data, and vice versa."""

    class Holder(Module):
        def __init__(self, content: Any) -> None:
            self.content = HOLDERS[holder](content)

    def kinds(tree: Any) -> Any:
        seen.append({isinstance(x, jax.core.Tracer) for x in pydag.dag_leaves(tree)})
        return 0

    seen: list[set[bool]] = []
    for tree in (Holder(number), Holder(Record(number)), Record(Holder(number)), [Holder(number)]):
        jaxinterop.jit(kinds)(tree)
    assert seen == [{False}, {True}, {False}, {False}]


@pytest.mark.parametrize("name", [n for n in WRAPPERS if n != "keep_sharing"])
def test_every_wrapper_leaves_configuration_alone(name: str) -> None:
    """In, inside and out: what is a number there is the number."""

    def f(tree: Any) -> Any:
        norm = tree["norm"]
        assert (norm.eps, norm.is_training) == (0.5, True)
        norm.scale = norm.scale * 2
        return tree

    norm = Norm()
    out = WRAPPERS[name](f)({"norm": norm, "same": norm})
    assert out["norm"] is out["same"]
    assert type(out["norm"].eps) is float
    assert out["norm"].is_training is True
    assert out["norm"].shape == [2, (1, {"channels": 3})]
    assert (out["norm"].scale == 2.0).all()


def test_a_number_that_is_configuration_and_data() -> None:
    """A list that a module and a dict hold: `SharingError`, with both paths."""

    class Holder(Module):
        def __init__(self, sizes: Any) -> None:
            self.sizes = sizes

    sizes = [1, 2]
    for f in (jaxinterop.jit(lambda *_: 0), jaxinterop.vmap(lambda *_: 0)):
        with pytest.raises(pydag.SharingError) as caught:
            f(Holder(sizes), {"sizes": sizes})
        assert "args[0].sizes[0]" in str(caught.value)
        assert "args[1]['sizes'][0]" in str(caught.value)
    arrays = [jnp.ones(2)]
    out = jaxinterop.jit(lambda *trees: trees)(Holder(arrays), {"sizes": arrays})
    assert out[0].sizes is out[1]["sizes"]


T = TypeVar("T")


def test_repr_is_a_view_unless_the_class_has_its_own() -> None:
    """Its own is what it defines or inherits; what `@dataclass` writes isn't."""

    class Own(Net):
        def __repr__(self) -> str:
            return "own"

    class Below(Own):
        pass

    @dataclasses.dataclass
    class Data(jaxinterop.Module):
        w: Any
        n: int = 1

    assert repr(Net(jnp.ones(3))) == str(pydag.view(Net(jnp.ones(3))))
    assert (repr(Own(1.0)), repr(Below(1.0))) == ("own", "own")
    assert repr(Data(jnp.ones(2))) == str(pydag.view(Data(jnp.ones(2))))
    unfinished = object.__new__(Data)
    assert "Data object at" in repr(unfinished)


def test_class_keywords_generics_and_further_hooks() -> None:
    """Keywords reach the next `__init_subclass__`, `Generic` keeps its parameters."""
    seen = []

    class Tagged(jaxinterop.Module):
        def __init_subclass__(cls, tag: str = "", **options: Any) -> None:
            super().__init_subclass__(**options)
            seen.append((cls.__name__, tag))

    class Box(Tagged, Generic[T], tag="box"):
        def __init__(self, content: T) -> None:
            self.content, self.size = content, 1

    class IntBox(Box[int], tag="int"):
        pass

    class Mixed(Generic[T], Tagged):  # noqa: PYI059 (such an order, too)
        def __init__(self) -> None:
            self.w, self.size = jnp.ones(2), 1

    assert seen == [("Box", "box"), ("IntBox", "int"), ("Mixed", "")]
    made: list[Any] = [Box(jnp.ones(2)), Mixed()]
    int_box: Any = IntBox
    for tree in [*made, int_box(jnp.ones(2))]:
        assert len(jax.tree.leaves(tree)) == 1
        assert jaxinterop.tree.map(lambda x: x + 1, tree).size == 1


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"slots": True}, {"eq": False}])
def test_dataclasses(options: dict[str, Any]) -> None:
    """Fields that are marked static are structure, also where the decorator makes a new class."""

    class Layer(jaxinterop.Module):
        __annotations__ = {"w": Any, "n": int, "name": str}
        n = 3
        name = dataclasses.field(default="layer", metadata={"static": True})

    decorate: Any = dataclasses.dataclass(**options)
    layer = decorate(Layer)(jnp.ones(2))
    again = jax.tree.map(lambda x: x + 1, layer)
    assert (again.w.tolist(), again.n, again.name) == ([2.0, 2.0], 3, "layer")
    assert len(pydag.dag_leaves(layer)) == 2
    assert len(jax.tree.leaves(layer)) == 1


def test_register_module_registers_with_jax() -> None:
    """A class that JAX knows already stays as it is; `register` may say more afterwards."""

    @pydag.register_module
    class Plain:
        def __init__(self) -> None:
            self.w = self.v = jnp.ones(2)

    assert len(jax.tree.leaves(Plain())) == 1

    @pydag.register_module
    @jax.tree_util.register_pytree_node_class
    class Known:
        def tree_flatten(self) -> tuple[tuple[int, ...], None]:
            return (1, 2, 3), None

        @classmethod
        def tree_unflatten(cls, _: None, __: Any) -> Any:
            return cls()

    assert jax.tree.leaves(Known()) == [1, 2, 3]
    jaxinterop.register(Plain, identity="nodes")
    assert len(jax.tree.leaves(Plain())) == 2
    with pytest.raises(ValueError, match="Duplicate"):
        jaxinterop.register(Plain)
    with pytest.raises(ValueError, match="Duplicate"):
        jaxinterop.register(Known)


def test_modules_registered_before_the_import() -> None:
    """JAX knows them once `pydag.jaxinterop` is imported."""
    source = """
import pydag
@pydag.register_module
class Tied:
    def __init__(self):
        self.w = self.tied = 1.5j
import jax, numpy as np
before = len(jax.tree.leaves(Tied())), type(jax.tree.leaves(Tied())[0]).__name__
import pydag.jaxinterop
net = Tied()
net.w = net.tied = np.ones(2)
print(before, [x.shape for x in jax.tree.leaves(net)])
"""
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert out.stdout == "(1, 'Tied') [(2,)]\n"


def test_annotated_fields_without_init() -> None:
    """Annotations make no `__init__`: an error about arguments says which decorator does."""

    class Layer(jaxinterop.Module):
        w: Any
        b: Any

    class Bare(jaxinterop.Module):
        pass

    class Base:
        def __init__(self, w: Any) -> None:
            self.w = w

    class Mixed(jaxinterop.Module, Base):
        pass

    cure = r"annotated fields \(w, b\) make none\n  Decorate it with @dataclasses.dataclass"
    layer: Any = Layer
    makers: list[Any] = [lambda: layer(1, 2), lambda: layer(w=1)]
    for make in makers:
        with pytest.raises(TypeError, match=cure):
            make()
    with pytest.raises(TypeError, match=r"Bare\(\) takes no arguments: the class has no __init__$"):
        cast(Any, Bare)(1)
    decorated: Any = dataclasses.dataclass(Layer)
    assert decorated(1, b=2).b == 2
    assert Mixed(3).w == 3
    assert vars(Bare()) == {}


@pytest.mark.parametrize("name", ["parameters", "state_dict", "forward", "to"])
def test_what_a_module_of_pytorch_has(name: str) -> None:
    """An `AttributeError` says what to write; any other name is as ever."""

    class Model(jaxinterop.Module):
        def __init__(self) -> None:
            self.w = jnp.ones(2)

    with pytest.raises(AttributeError, match=rf"'Model' object has no attribute '{name}'\n  \w"):
        getattr(Model(), name)
    with pytest.raises(AttributeError, match=r"has no attribute 'u'$"):
        getattr(Model(), "u")  # noqa: B009 (a type checker knows)
    assert not hasattr(Model(), "nothing")


class Tied(jaxinterop.Module):
    """Two names for one array, a list that holds it, and configuration."""

    def __init__(self, size: int) -> None:
        self.size, self.name, self.scale = size, "tied", None
        self.embed = self.unembed = jnp.ones(size)
        self.layers = [self.embed]

    @functools.cached_property
    def doubled(self) -> Any:
        return 2 * self.embed


@pytest.mark.parametrize(
    "changes",
    [{}, {"size": 3}, {"name": None}, {"scale": 2.0}, {"embed": 5}, {"layers": [], "name": "x"}],
)
def test_replace_of_a_module(changes: dict[str, Any]) -> None:
    """`copy.replace` gives a copy with other attributes; the rest are the same objects."""
    model = Tied(2)
    assert model.doubled.tolist() == [2, 2]
    before = dict(vars(model))
    new = type(model).__replace__(model, **changes)
    assert type(new) is Tied
    for name in ("size", "name", "scale", "embed", "unembed", "layers"):
        assert getattr(new, name) is changes.get(name, before[name])
    assert list(vars(new)) == ["size", "name", "scale", "embed", "unembed", "layers"]
    assert vars(model) == before
    if sys.version_info >= (3, 13):
        assert vars(copy.replace(model, **changes)).keys() == vars(new).keys()
        assert pydag.dag_structure(copy.replace(model)) == pydag.dag_structure(model)


def test_replace_of_what_a_module_lacks() -> None:
    """A name that is no attribute is a TypeError, also one of a method or of a cached property."""
    for name in ("head", "doubled", "__init__"):
        with pytest.raises(TypeError, match=rf"Tied has no attribute '{name}': \['embed', 'layers"):
            Tied(2).__replace__(**{name: 1})


def test_replace_of_slots_and_dataclasses() -> None:
    """Slots are replaced, too; of a dataclass it is Python's own function that does it."""

    class Slots(jaxinterop.Module):
        __slots__ = ("b", "w")

        def __init__(self) -> None:
            self.w, self.b = jnp.ones(2), 0.5

    @dataclasses.dataclass(frozen=True)
    class Frozen(jaxinterop.Module):
        w: Any
        rate: float = 0.5

    slots = Slots()
    assert slots.__replace__(b=0.25).w is slots.w
    assert slots.__replace__(b=0.25).b == 0.25
    assert slots.b == 0.5
    if sys.version_info >= (3, 13):
        frozen = Frozen(jnp.ones(2))
        new = copy.replace(frozen, rate=1.0)
        assert (new.w is frozen.w, new.rate, frozen.rate) == (True, 1.0, 0.5)


class Mean(jaxinterop.Module):
    """A running mean."""

    def __init__(self) -> None:
        self.mean = jnp.zeros(2)

    def __call__(self, x: Any) -> Any:
        self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
        return x - self.mean


class Normed(jaxinterop.Module):
    """A norm and a weight."""

    def __init__(self, norm: Mean) -> None:
        self.norm, self.w = norm, jnp.eye(2)

    def __call__(self, x: Any) -> Any:
        return self.norm(x) @ self.w


class Adapted(jaxinterop.Module):
    """Computes what the block does, until `a` is trained."""

    def __init__(self, base: Normed) -> None:
        self.base, self.a = base, jnp.zeros((2, 2))

    def __call__(self, x: Any) -> Any:
        return self.base(x) + x @ self.a


class Stack(jaxinterop.Module):
    """Two blocks with one norm."""

    def __init__(self) -> None:
        norm = Mean()
        self.one, self.two = Normed(norm), Normed(norm)

    def __call__(self, x: Any) -> Any:
        return self.two(self.one(x))


def test_an_adapted_model_keeps_the_state_that_its_layers_share() -> None:
    """The mean of the norm is updated twice in a step, with the adapter and without it."""
    x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    net = Stack()
    adapted: Any = pydag.dag_replace(net, net.one, Adapted(net.one))
    assert adapted.one.base.norm is adapted.two.norm
    step = jaxinterop.jit(lambda net, x: net(x), update_argnums=0)
    assert step(adapted, x).tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    assert adapted.one.base.norm is adapted.two.norm
    assert adapted.two.norm.mean.tolist() == [1.0, 1.5]
