"""A class that was changed after pydag had seen it is opened and built as JAX does it now."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import pytest

import pydag

equinox: Any = pytest.importorskip("equinox")

import jax
import jax.numpy as jnp
from jax.tree_util import register_dataclass
from operations import python_calls

from pydag import jaxinterop


class Meta(type):
    """A metaclass that a test changes."""


def record(base: type = object, meta: type = type) -> Any:
    """A new class of JAX's, with a field that is no child."""
    body = {"__annotations__": {"x": Any, "y": Any, "m": Any}, "y": 5.0, "m": "meta"}
    cls = dataclasses.dataclass(meta("Record", (base,), body))
    return register_dataclass(cls, data_fields=["x", "y"], meta_fields=["m"])


def module() -> Any:
    class Made(equinox.Module):  # type: ignore[misc]  # untyped base
        x: Any
        y: Any = 5.0
        m: Any = equinox.field(static=True, default="meta")

    return Made


class Doubling:
    """A data descriptor: gives twice what is stored, and counts what is written."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    def __get__(self, instance: Any, cls: type) -> Any:
        return self if instance is None else 2 * vars(instance)["x"]

    def __set__(self, instance: Any, value: Any) -> None:
        self.written.append(value)
        vars(instance)["x"] = value


def put_property(cls: Any) -> None:
    cls.x = property(lambda self: 42.0, lambda self, value: None)


def put_read_only_property(cls: Any) -> None:
    cls.x = property(lambda self: 42.0)


def put_descriptor(cls: Any) -> None:
    cls.x = Doubling()


def put_property_over_meta(cls: Any) -> None:
    cls.m = property(lambda self: "other", lambda self, value: None)


def put_getattribute(cls: Any) -> None:
    read = object.__getattribute__
    cls.__getattribute__ = lambda self, name: 99.0 if name == "x" else read(self, name)


def put_setattr(cls: Any) -> None:
    def write(self: Any, name: str, value: Any) -> None:
        object.__setattr__(self, name, -value if isinstance(value, float) else value)

    cls.__setattr__ = write


def put_init(cls: Any) -> None:
    before = cls.__init__

    def init(self: Any, *args: Any, **options: Any) -> None:
        before(self, *args, **options)
        vars(self)["x"] = -1.0

    cls.__init__ = init


def put_new(cls: Any) -> None:
    def new(cls: type, *args: Any, **options: Any) -> Any:
        made: Any = object.__new__(cls)
        vars(made)["extra"] = 1
        return made

    cls.__new__ = new


def put_default(cls: Any) -> None:
    cls.y = 7.0


def put_method(cls: Any) -> None:
    cls.norm = lambda self: self.x


CHANGES: list[Callable[[Any], None]] = [
    put_property,
    put_read_only_property,
    put_descriptor,
    put_property_over_meta,
    put_getattribute,
    put_setattr,
    put_init,
    put_new,
    put_default,
    put_method,
]


def outcome(run: Callable[[], Any]) -> Any:
    """What a function gives, an object as its attributes; or the type of the error."""
    try:
        found = run()
    except (AttributeError, TypeError) as error:
        return type(error)
    return dict(object.__getattribute__(found, "__dict__")) if hasattr(found, "x") else found


def of_module() -> tuple[Any, Any]:
    return (module(),) * 2


def of_record() -> tuple[Any, Any]:
    return (record(),) * 2


def of_base() -> tuple[Any, Any]:
    base = type("Base", (), {})
    return base, record(base)


@pytest.mark.parametrize("make", [of_module, of_record, of_base])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_counts_from_then_on(
    make: Callable[[], tuple[Any, Any]], change: Callable[[Any], None]
) -> None:
    """Leaves, what is built, and what is built for a structure from before are as in JAX."""
    changed, cls = make()
    node = cls(1.0, 2.0)
    leaves, spec = pydag.dag_flatten(node)
    treedef = jax.tree.structure(node)
    for _ in range(2):
        pydag.dag_map(lambda x: x + 1, node)
    change(changed)
    for _ in range(2):
        assert outcome(lambda: pydag.dag_leaves(node)) == outcome(lambda: jax.tree.leaves(node))
        for f in (float, abs):
            mapped = functools.partial(pydag.dag_map, f, node)
            assert outcome(mapped) == outcome(functools.partial(jax.tree.map, f, node))
        built = outcome(lambda: pydag.dag_unflatten(spec, leaves))
        assert built == outcome(lambda: jax.tree.unflatten(treedef, leaves))


@pytest.mark.parametrize("make", [record, module])
def test_a_change_that_is_undone(make: Callable[[], Any]) -> None:
    """A class that is again as it was has the structure from before; no code runs for a node."""
    cls = make()
    node = cls(1.0, 2.0)
    spec = pydag.dag_structure(node)
    put_property(cls)
    assert pydag.dag_leaves(node) == jax.tree.leaves(node)
    del cls.x
    assert pydag.dag_leaves(node) == [1.0, 2.0] == jax.tree.leaves(node)
    assert pydag.dag_structure(node) == spec
    assert python_calls(functools.partial(pydag.dag_map, float, node)) == []


@pytest.mark.parametrize("make", [record, module])
def test_a_change_that_says_nothing(make: Callable[[], Any]) -> None:
    """A new method or counter leaves the structure as it is, and the core opens and builds on."""
    cls = make()
    node = cls(1.0, 2.0)
    spec = pydag.dag_structure(node)
    for count in range(3):
        cls.count = count
        cls.method = lambda self: None
        assert pydag.dag_structure(node) == spec
        assert python_calls(functools.partial(pydag.dag_map, float, node)) == []


def test_the_structure_of_a_record_stays() -> None:
    """Trees from before and after the change fit one another, as JAX's do."""
    cls = record()
    before = cls(1.0, 2.0)
    spec = pydag.dag_structure(before)
    put_setattr(cls)
    after = cls(3.0, 4.0)
    assert pydag.dag_structure(after) == spec
    assert spec.flatten_up_to(after) == [-3.0, -4.0]
    assert pydag.dag_leaves(after) == jax.tree.leaves(after) == [-3.0, -4.0]


def test_a_metaclass_that_makes_instances_otherwise() -> None:
    """A `__call__` that the metaclass got later runs for what is built, as in JAX."""
    meta: Any = type("Changing", (type,), {})
    cls = record(meta=meta)
    node = cls(1.0, 2.0)
    pydag.dag_map(float, node)
    assert python_calls(functools.partial(pydag.dag_map, float, node)) == []

    def call(cls: Any, *args: Any, **options: Any) -> Any:
        made = type.__call__(cls, *args, **options)
        made.x = -8.0
        return made

    meta.__call__ = call
    assert pydag.dag_map(float, node).x == jax.tree.map(float, node).x == -8.0


def test_a_class_with_more_versions_than_python_counts() -> None:
    """Python stops to count the changes of a class at some point; they are seen none the less."""
    cls = record()
    node = cls(1.0, 2.0)
    for i in range(1500):
        cls.count = i
        pydag.dag_leaves(node)
    put_property(cls)
    assert pydag.dag_leaves(node) == [42.0, 2.0]
    del cls.x
    assert pydag.dag_leaves(node) == [1.0, 2.0]


def test_a_compiled_function_after_a_change() -> None:
    """`jit` gives what the function gives without it, also for a class that was changed."""
    cls = record()
    node = cls(jnp.ones(2), jnp.ones(2))
    double = jaxinterop.jit(lambda node: pydag.dag_map(lambda x: 2 * x, node))
    for _ in range(3):
        assert double(node).x.tolist() == [2.0, 2.0]
    cls.x = property(lambda self: 5.0 * vars(self)["x"], lambda s, v: vars(s).update(x=v))
    assert jax.tree.leaves(node)[0].tolist() == [5.0, 5.0]
    for _ in range(3):
        assert vars(double(node))["x"].tolist() == [10.0, 10.0]


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


def test_another_attribute_of_a_module_is_equinoxs_to_open() -> None:
    """An attribute that is neither field nor cached leaves the instance to equinox."""
    module = Cached(1.0)
    object.__setattr__(module, "more", 2.0)
    object.__setattr__(module, "total", 3.0)
    assert pydag.dag_leaves(module) == jax.tree.leaves(module) == [1.0]
    built = pydag.dag_map(lambda x: x, module)
    assert vars(built).keys() == vars(jax.tree.map(lambda x: x, module)).keys()
