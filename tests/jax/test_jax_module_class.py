# SPDX-License-Identifier: Apache-2.0
"""`pydag.jaxinterop.Module`, and classes of modules as JAX sees them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import Any, Generic, TypeVar, cast

import jax
import jax.numpy as jnp
import pytest

import pydag
from pydag import jaxinterop

T = TypeVar("T")


class Net(jaxinterop.Module):
    """A tied weight, and configuration."""

    def __init__(self) -> None:
        self.w = self.tied = jnp.ones(3)
        self.depth, self.name = 2, "net"

    def __call__(self, x: Any) -> Any:
        for _ in range(self.depth):
            x = x * self.w
        return jnp.sum(x * self.tied)


def test_a_subclass_is_a_module() -> None:
    """Its numbers are configuration, and stay in the gradient."""
    gradient = jaxinterop.jit(jaxinterop.grad(lambda net: net(1.0)))(Net())
    assert gradient.w.tolist() == [3.0, 3.0, 3.0]
    assert gradient.w is gradient.tied
    assert gradient.depth == 2


def test_jax_sees_each_leaf_once() -> None:
    """To JAX's own functions an instance is a node that holds its distinct data."""
    net = Net()
    assert [x.shape for x in jax.tree.leaves(net)] == [(3,)]
    doubled = jax.jit(lambda net: jax.tree.map(lambda x: 2 * x, net))(net)
    assert doubled.w is doubled.tied
    assert (doubled.depth, doubled.w.tolist()) == (2, [2.0, 2.0, 2.0])
    wait: Any = jax.block_until_ready
    assert wait(net) is net
    assert jax.grad(lambda net: net(1.0))(net).w.tolist() == [3.0, 3.0, 3.0]


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

    assert repr(Net()) == str(pydag.view(Net()))
    assert (repr(Own()), repr(Below())) == ("own", "own")
    assert repr(Data(jnp.ones(2))) == str(pydag.view(Data(jnp.ones(2))))
    unfinished = object.__new__(Data)
    assert "Data object at" in repr(unfinished)


def test_pickle_and_copy() -> None:
    """What is shared stays shared."""
    for again in (pickle.loads(pickle.dumps(Net())), copy.deepcopy(Net())):
        assert again.w is again.tied
        assert (again.depth, again.w.tolist()) == (2, [1.0, 1.0, 1.0])


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


def test_records_and_namespaces_are_not_told_to_jax() -> None:
    """Those are for `register`."""

    @pydag.register_fields
    class Record:
        pass

    @pydag.register_module(namespace="elsewhere")
    class Elsewhere:
        pass

    for thing in (Record(), Elsewhere()):
        assert jax.tree.leaves(thing) == [thing]


def test_modules_registered_before_the_import() -> None:
    """JAX knows them once `pydag.jaxinterop` is imported."""
    source = """
import pydag
@pydag.register_module
class Net:
    def __init__(self):
        self.w = self.tied = 1.5j
import jax, numpy as np
before = len(jax.tree.leaves(Net())), type(jax.tree.leaves(Net())[0]).__name__
import pydag.jaxinterop
net = Net()
net.w = net.tied = np.ones(2)
print(before, [x.shape for x in jax.tree.leaves(net)])
"""
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert out.stdout == "(1, 'Net') [(2,)]\n"


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
