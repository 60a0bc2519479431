# SPDX-License-Identifier: Apache-2.0
"""What is traced; what a static leaf may be, and which static values are equal."""

import dataclasses
import enum
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
import pydag.functools
import pydag.jaxinterop as pj

X = jnp.ones(2)
Partial: Any = jax.tree_util.Partial
Described: Any = jax.ShapeDtypeStruct


class Model(pj.Module):
    """A module that holds one thing beside an array."""

    def __init__(self, held: Any) -> None:
        self.w, self.held = X, held


@pydag.register_fields
class Record:
    """A record that holds one thing."""

    def __init__(self, held: Any) -> None:
        self.held = held


@pydag.register_fields(meta_fields=("meta",))
class WithMeta:
    """A record with a meta field."""

    def __init__(self, held: Any, meta: Any) -> None:
        self.held, self.meta = held, meta


def is_traced_in(make: Any, read: Any) -> bool:
    """Whether a function by `jit` gets a tracer at a place."""
    found = []
    pj.jit(lambda tree: found.append(isinstance(read(tree), jax.core.Tracer)))(make)
    return found[0]


@pytest.mark.parametrize(
    ("tree", "read", "expected"),
    [
        (3, lambda t: t, True),
        ({"n": 3}, lambda t: t["n"], True),
        (Record(2.0), lambda t: t.held, True),
        (Model(3), lambda t: t.held, False),
        (Model(True), lambda t: t.held, False),
        (Model(np.float32(3)), lambda t: t.held, False),
        (Model({"a": [3]}), lambda t: t.held["a"][0], False),
        (Model(Record(3)), lambda t: t.held.held, True),
        (Record(Model(3)), lambda t: t.held.held, False),
        (Model(np.array(3)), lambda t: t.held, True),
        (Model(np.ones(2, "float16")), lambda t: t.held, True),
    ],
)
def test_numbers_are_data_beside_modules_and_configuration_in_them(
    tree: Any, read: Any, expected: bool
) -> None:
    """The nearest registered owner decides about numbers; arrays are traced wherever they are."""
    assert is_traced_in(tree, read) is expected


def test_descriptions_count_as_arrays_where_arrays_are_described() -> None:
    """`eval_shape` and `lower` take `jax.ShapeDtypeStruct`; a call doesn't."""
    described = {"w": Described((2,), "float32")}
    assert pj.eval_shape(lambda t: t["w"] * 2, described).shape == (2,)
    assert pj.jit(lambda t: t["w"] * 2).lower(described).out_info.shape == (2,)
    with pytest.raises(TypeError, match=r"args\[0\]\['w'\]"):
        pj.jit(lambda t: t["w"] * 2)(described)


class Color(enum.Enum):
    """An enumeration."""

    RED = 1


class Value:
    """It says that it is a value, by both methods."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self.n == other.n

    def __hash__(self) -> int:
        return self.n


@pytest.mark.parametrize(
    "value",
    [
        "text", b"bytes", Color.RED, np.dtype("int8"), ..., jnp.tanh, len, dict, types, np.add,
        jax.jit(jnp.sin), jax.devices()[0], functools.partial(jnp.clip, min=0), (1, "a"),
        frozenset({1}), Value(1), range(3), str.upper,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_are_static_leaves(value: Any) -> None:
    """What can be compared by what it is comes in as it is, in dicts and in modules."""
    tree = {"x": X, "held": value} if not isinstance(value, tuple) else {"x": X, "held": "tuple"}
    seen: list[Any] = []
    pj.jit(lambda t, m: seen.extend((t["held"], m.held)))(tree, Model(value))
    assert seen == [tree["held"], value]


class Plain:
    """A class that nobody registered."""

    def __init__(self) -> None:
        self.w = X

    def method(self) -> None:
        """Is bound to an object that holds an array."""

    def __call__(self) -> None:
        """Makes instances callable."""


@pytest.mark.parametrize(
    ("leaf", "cure"),
    [
        (Plain(), r"Plain(.|\n)*pj.Module(.|\n)*register_m(.|\n)*register_f(.|\n)*static=Plain"),
        (threading.Lock(), "lock"),
        (Plain().method, "jax.tree_util.Partial"),
        (functools.partial(jnp.add, X), "jax.tree_util.Partial"),
        (iter([1]), "list"),
        ({"a": 1}.values(), "list"),
        (memoryview(b"ab"), "list"),
        (np.array([X, None], object), "list or a tuple"),
        (Partial(functools.partial(jnp.add, X)), "jax.tree_util.Partial"),
        (pydag.functools.partial(functools.partial(jnp.add, X)), "jax.tree_util.Partial"),
        (Partial(Plain()), "Plain"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda t: pj.jit(lambda t: 1.0)(t),
        lambda t: pj.grad(lambda t: t["x"].sum())(t),
        lambda t: pj.vmap(lambda t: t["x"])(t),
        lambda t: pj.checkpoint(lambda t: t["x"])(t),
        lambda t: pj.scan(lambda c, _: (c, None), t, None, length=1),
        lambda t: pj.cond(True, lambda t: t["x"], lambda t: t["x"], t),
        lambda t: pj.eval_shape(lambda t: t["x"], t),
    ],
    ids=["jit", "grad", "vmap", "checkpoint", "scan", "cond", "eval_shape"],
)
def test_what_might_hide_an_array_is_an_error(wrapped: Any, leaf: Any, cure: str) -> None:
    """A `TypeError` with the path and the cure, in every wrapper."""
    with pytest.raises(TypeError, match=r"\['held'\]") as caught:
        wrapped({"x": X, "held": leaf})
    assert re.search(cure, str(caught.value))


@pytest.mark.parametrize("meta", [X, [X], {"a": (X,)}, np.ones(2)], ids=str)
def test_an_array_in_a_meta_field_is_an_error(meta: Any) -> None:
    """At any depth of builtin containers, with the path."""
    with pytest.raises(TypeError, match=r"args\[0\]\.meta .*holds an array"):
        pj.jit(lambda r: r.held)(WithMeta(X, meta))


class One(NamedTuple):
    """A named tuple."""

    x: int


class Other(NamedTuple):
    """Another one."""

    x: int


class Float(float):
    """Compares by its number."""


@dataclasses.dataclass(frozen=True)
class Frozen:
    """Compared and hashed by its fields."""

    size: Any


def apply(x: Any, value: Any) -> Any:
    """A function for partials and derived leaves."""
    return x


PAIRS = [
    (True, 1), (1, 1.0), (0.0, -0.0), ((True,), (1,)), ((0.0,), (-0.0,)), (np.float64(0), -0.0),
    (complex(0, 0.0), complex(0, -0.0)), (frozenset({True}), frozenset({1})),
    (functools.partial(max, True), functools.partial(max, 1)),
    (functools.partial(max, key=0.0), functools.partial(max, key=-0.0)),
    (np.float32(1), np.float64(1)), (np.int64(1), 1),
    (One(1), Other(1)), (Float(0.0), Float(-0.0)), (range(0, 3, 2), range(0, 4, 2)),
    (Frozen((0.0,)), Frozen((-0.0,))),
]  # fmt: skip
PLACES: dict[str, Any] = {
    "a module": (lambda v: (Model(v),), lambda m: m.held, {}),
    "a meta field": (lambda v: (WithMeta(X, v),), lambda r: r.meta, {}),
    "a static argument": (lambda v: (v,), lambda v: v, {"static_argnums": 0}),
    "a key of a dict": (lambda v: ({v: X},), lambda t: next(iter(t)), {}),
    "a part of a partial": (
        lambda v: ([functools.partial(apply, value=v), X],),
        lambda t: t[0].keywords["value"],
        {},
    ),
    "a keyword of a derived leaf": (
        lambda v: (pj.Derived(apply, X, value=v),),
        lambda d: d.kwargs["value"],
        {},
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_values_are_equal_if_their_types_are(place: str, one: Any, other: Any) -> None:
    """What `==` takes for equal and isn't gets a trace of its own; equal values share one."""
    if place == "a module" and isinstance(one, tuple):
        one, other = {"t": one}, {"t": other}  # a tuple is opened; its items are compared
    make, read, options = PLACES[place]
    seen: list[str] = []
    function = pj.jit(lambda tree: seen.append(repr(read(tree))), **options)
    for value in (one, other, one, other):
        function(*make(value))
    assert seen == [repr(one), repr(other)]


def test_nan_is_nan() -> None:
    """Two NaNs are one value: nothing is traced again."""
    seen: list[Any] = []
    function = pj.jit(lambda m: seen.append(m.held))
    function(Model(float("nan")))
    function(Model(float("nan")))
    assert len(seen) == 1


@pydag.register_module
class Registered:
    """A module of another base."""

    def __init__(self) -> None:
        self.w = X


@pytest.mark.parametrize("model", [Model(1), Registered(), Record(X), {"w": X}, [np.ones(2)]])
def test_a_model_is_no_static_argument(model: Any) -> None:
    """It would be a constant: a `ValueError` that says to pass it as an ordinary argument."""
    with pytest.raises(ValueError, match=r"args\[0\](.|\n)*as an ordinary argument"):
        pj.jit(lambda m, x: x, static_argnums=0)(model, 1.0)


@pytest.mark.parametrize("wrap", [pj.jit, pj.checkpoint], ids=["jit", "checkpoint"])
@pytest.mark.parametrize("chosen", [{"static_argnums": 0}, {"static_argnames": "held"}], ids=str)
def test_a_static_argument_may_be_an_object_of_any_class(wrap: Any, chosen: Any) -> None:
    """Who names it has said that it is a constant, as in JAX."""
    plain = Plain()
    function = wrap(lambda held, x: x * held.w, **chosen)
    assert function(plain, X).tolist() == [1.0, 1.0]
    assert wrap(lambda n, x: x * (n + 1 if type(n) is int else 0), static_argnums=0)(1, X)[0] == 2.0


def test_the_order_of_dicts_and_attributes_is_seen() -> None:
    """Inside and in results it is what it is without `jit`; the leaves don't depend on it."""
    ordered = pj.jit(lambda t: (t, {"order": "".join(t)}))
    for keys in ("ab", "ba", "ab"):
        out, seen = ordered({key: X * i for i, key in enumerate(keys)})
        assert (list(out), seen["order"]) == (list(keys), keys)
    one, other = Model(X * 2), Model(X * 2)
    vars(other).update({name: vars(other).pop(name) for name in ("w", "held")[::-1]})
    names = pj.jit(lambda m: {"names": ".".join(vars(m))})
    assert names(one)["names"] == ".".join(vars(one))
    assert names(other)["names"] == ".".join(vars(other))
    assert pydag.dag_structure(one) == pydag.dag_structure(other)
