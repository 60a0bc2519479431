# SPDX-License-Identifier: Apache-2.0
"""Instances of classes with a generated `__eq__` and `__hash__` are values if they hold values."""

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Any

import attrs
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from wrappers import WRAPPERS

import pydag
import pydag.jaxinterop as pj

X = jnp.arange(2.0)


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any
    name: str = "a"


@dataclasses.dataclass(frozen=True, order=True)
class Ordered:
    x: Any


@dataclasses.dataclass(unsafe_hash=True)
class Unsafe:
    x: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Slots:
    x: Any


@dataclasses.dataclass(frozen=True)
class Uncompared:
    """The array is in a field that is neither compared nor hashed."""

    x: Any = dataclasses.field(compare=False)


@attrs.frozen
class Attrs:
    x: Any


@attrs.define(unsafe_hash=True, slots=False)
class AttrsHash:
    x: Any


class Below(Frozen):
    """Inherits both methods, and has an attribute that they don't know."""

    def __init__(self, x: Any) -> None:
        super().__init__(0)
        object.__setattr__(self, "x", x)


@dataclasses.dataclass(frozen=True)
class HashByHand:
    """Wrote one of the methods alone."""

    x: Any

    def __hash__(self) -> int:
        return 1


CLASSES: list[Any] = [
    Frozen, Ordered, Unsafe, Slots, Uncompared, Attrs, AttrsHash, Below, HashByHand,
]  # fmt: skip


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("make", CLASSES, ids=lambda cls: cls.__name__)
def test_an_array_in_a_field_is_an_error_in_every_wrapper(name: str, make: Any) -> None:
    """With the path down to the field, and the cure."""
    with pytest.raises(TypeError, match=r"\['held'\]\[0\]\.x is f32\[2\]") as caught:
        WRAPPERS[name](lambda t: t)({"w": X, "held": [make(X)]})
    assert f"pydag.register_fields({make.__name__})" in str(caught.value)


CALLS: dict[str, Callable[[Any], Any]] = {
    "map": lambda t: pj.tree.map(lambda x: x, t),
    "leaves": pj.tree.leaves,
    "structure": pj.tree.structure,
    "copy": pj.tree.copy,
    "init": lambda t: pj.optimizer(optax.sgd(0.1)).init(t),
    "apply_updates": lambda t: pj.apply_updates(t, t),
    "Dag": pj.Dag,
    "static=": lambda t: pj.jit(lambda t: 1.0, static=Uncompared)(t),
    "trace": lambda t: pj.jit(lambda t: 1.0).trace(t),
}


@pytest.mark.parametrize("call", CALLS)
def test_and_wherever_trees_are_taken_apart(call: str) -> None:
    """In `pj.tree`, optimizers, Dags; `static=` doesn't help, as the array can be stale."""
    with pytest.raises(TypeError, match=r"\['held'\]\.x is f32\[2\], in an object of .*Uncompared"):
        CALLS[call]({"w": X, "held": Uncompared(X)})


@dataclasses.dataclass
class Plain:
    """A class that is no value and isn't registered."""

    x: Any


class Net(pj.Module):
    """A registered class."""

    def __init__(self) -> None:
        self.w = X

    def method(self) -> None:
        """Is bound to an array's owner."""


PLACES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a list": (lambda x: [1, {"a": x}], ".x[1]['a']"),
    "a dataclass": (Frozen, ".x.x"),
    "attrs": (lambda x: (Attrs(x), 1), ".x[0].x"),
    "a partial": (lambda x: functools.partial(jnp.add, x), ".x.args[0]"),
    "a frozenset": (lambda x: frozenset([Uncompared(1), HashByHand(x)]), ".x (an item).x"),
    "a module": (lambda x: Net(), ".x.w"),
    "a method": (lambda x: Net().method, ".x.__self__.w"),
    "an object": (Plain, ".x.x"),
}


@pytest.mark.parametrize("place", PLACES)
def test_arrays_are_found_at_any_depth(place: str) -> None:
    """Through containers, partials, modules, other objects."""
    make, path = PLACES[place]
    with pytest.raises(TypeError) as caught:
        pj.jit(lambda t: 1.0)(Frozen(make(X)))
    assert str(caught.value).startswith(f"args[0]{path} is f32[2], in an object of")


@pytest.mark.parametrize(
    "array", [np.ones(2), np.array(["a", "b"]), jax.random.key(0), jax.new_ref(X)], ids=str
)
def test_all_kinds_of_arrays_count(array: Any) -> None:
    """NumPy's, whatever their type, keys and refs."""
    with pytest.raises(TypeError, match=r"args\[0\]\.x is "):
        pj.grad(lambda t, w: w)(Frozen(array), 1.0)


def test_a_tracer_in_a_result() -> None:
    """It would be dead for the caller."""
    with pytest.raises(TypeError, match=r"result\['r'\]\.x is f32\[2\], in an object of .*Slots"):
        pj.jit(lambda x: {"r": Slots(2 * x)})(X)


class Color(enum.Enum):
    """An enumeration."""

    RED = 1


class ByHand:
    """Says by both methods that it is a value: what it hides is its author's matter."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByHand)

    def __hash__(self) -> int:
        return 1


@dataclasses.dataclass(frozen=True)
class BothByHand:
    """A dataclass that wrote both methods."""

    x: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BothByHand)

    def __hash__(self) -> int:
        return 1


@dataclasses.dataclass(frozen=True, eq=False)
class Inherits(ByHand):
    """Inherits both methods, and lets none be generated."""

    x: Any


VALUES: list[Any] = [
    *(make(3) for make in CLASSES), Frozen(Color.RED), Frozen(jnp.tanh), Frozen(None),
    Frozen((1, "a")), Frozen([1, 2.0]), Frozen({"a": 1}), Frozen(Frozen(Attrs(2))),
    Frozen(np.float32(1)), Frozen(np.dtype("int8")), Frozen(functools.partial(max, 1)),
    Frozen(Plain(3)), Frozen(ByHand(X)), Frozen(jax.devices()[0]), ByHand(X), BothByHand(X),
    Inherits(X),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_without_an_array_they_are_static_values(value: Any) -> None:
    """As are classes that define both methods themselves: the very object comes in."""
    seen: list[Any] = []
    function = pj.jit(lambda t: seen.append(t["held"]))
    for _ in range(2):
        function({"w": X, "held": value})
    assert len(seen) == 1
    assert seen[0] is value
    assert pj.grad(lambda t: t["w"].sum())({"w": X, "held": value})["w"].tolist() == [1.0, 1.0]


def test_equal_values_are_one() -> None:
    """Nothing is compiled anew for an equal one; another one is seen."""
    seen: list[Any] = []
    function = pj.jit(lambda t: seen.append(t["held"].x))
    for x in (1, 1, 2, 1):
        function({"held": Attrs(Frozen(x).x)})
    assert seen == [1, 2]


@pytest.mark.parametrize(
    "wrap", [lambda v: v, lambda v: (1, v), lambda v: functools.partial(max, v)]
)
@pytest.mark.parametrize("make", [Uncompared, HashByHand])
def test_a_static_argument_that_holds_an_array(wrap: Any, make: Any) -> None:
    """A `ValueError`: also in a tuple and in a partial."""
    for jit in (pj.jit, pj.checkpoint):
        with pytest.raises(ValueError, match=r"args\[1\]\S*\.x is f32\[2\](.|\n)*as an ordinary"):
            jit(lambda x, v: x, static_argnums=1)(X, wrap(make(X)))
    assert pj.jit(lambda x, v: x, static_argnums=1)(X, wrap(make(3)))[1] == 1.0


@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: functools.partial(max, v)])
def test_an_array_that_a_meta_field_leads_to(wrap: Any) -> None:
    """It is a `TypeError` with the path."""

    @pydag.register_fields(meta_fields=["meta"])
    class WithMeta:
        def __init__(self, meta: Any) -> None:
            self.w, self.meta = X, meta

    with pytest.raises(TypeError, match=r"\.meta is a meta field(.|\n)*: meta\S*\.x is f32\[2\]"):
        pj.jit(lambda r: r.w)(WithMeta(wrap(Frozen(X))))
    assert pj.jit(lambda r: r.w)(WithMeta(wrap(Frozen(3))))[1] == 1.0


def test_cycles_and_depth() -> None:
    """A cycle without an array is a value, and a long chain is looked through."""
    around = Plain(None)
    around.x = Frozen([around])
    assert pj.jit(lambda t: t["w"])({"w": X, "held": Frozen(around)})[1] == 1.0
    around.x = Frozen([around, X])
    with pytest.raises(TypeError, match=r"\['held'\]\.x\.x\.x\[1\] is f32\[2\]"):
        pj.jit(lambda t: t["w"])({"w": X, "held": Frozen(around)})
    chain: Any = X
    for _ in range(20_000):
        chain = Frozen(chain)
    with pytest.raises(TypeError, match=r"is f32\[2\], in an object of .*Frozen"):
        pj.jit(lambda t: t["w"])({"w": X, "held": chain})


@pytest.mark.parametrize("cure", [pydag.register_fields, pydag.register_module])
def test_registering_is_the_cure(cure: Any) -> None:
    """Once its class is registered, the array is traced, and mapped, and trained."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Late:
        x: Any

    @attrs.frozen
    class LateAttrs:
        x: Any

    for cls in (Late, LateAttrs):
        with pytest.raises(TypeError, match=f"register_fields\\({cls.__name__}\\)"):
            pj.grad(lambda t: (t.x**2).sum())(cls(X))
        cure(cls)
        assert pj.grad(lambda t: (t.x**2).sum())(cls(X)).x.tolist() == [0.0, 2.0]
        assert pj.vmap(lambda t: t.x * 2)(cls(X)).tolist() == [0.0, 2.0]
