"""Static leaves and static arguments: part of what a function is compiled for."""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import pydag
from pydag import jaxinterop


class Config:
    """Compared and hashed by its content."""

    def __init__(self, name: Any) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


@dataclasses.dataclass(frozen=True)
class Frozen:
    """Compared and hashed by its fields."""

    size: Any
    name: str = "x"


class Pair(NamedTuple):
    first: Any
    second: Any


def test_a_frozen_dataclass_that_holds_what_changes() -> None:
    """It is compared at each call: what it holds may be another value the next time."""
    config = Config("a")
    held = Frozen(config)

    @jaxinterop.jit
    def f(tree: Any) -> Any:
        return {"w": tree["w"] + 1, "name": tree["config"].size.name}

    tree = {"w": jnp.ones(2), "config": held}
    names = []
    for name in ("a", "a", "b", "a"):
        config.name = name
        names.append(f(tree)["name"])
    assert names == ["a", "a", "b", "a"]


def test_static_leaves_are_compared_by_value() -> None:
    """An equal value doesn't retrace, another one does."""
    names: list[str] = []

    @jaxinterop.jit
    def f(model: Any) -> Any:
        names.append(model["config"].name)
        return model["w"]

    for name in ("a", "a", "b", "a", "b"):
        f({"config": Config(name), "w": 1.0})
    assert names == ["a", "b"]


class Half(NamedTuple):
    first: Any


class Float(float):
    """Compares by its number."""


class Net(jaxinterop.Module):
    def __init__(self, value: Any) -> None:
        self.w, self.value = jnp.ones(()), value


@pydag.register_fields(meta_fields=("value",))
class Record:
    def __init__(self, value: Any) -> None:
        self.w, self.value = jnp.ones(()), value


def apply(x: Any, value: Any) -> Any:
    return x


def partly(value: Any) -> Any:
    return functools.partial(apply, value=value)


X = jnp.ones(())
PLACES: dict[str, tuple[Any, Any]] = {
    "a static argument": (lambda value: value, {"static_argnums": 0}),
    "a static leaf of a module": (Net, {}),
    "a meta field": (Record, {}),
    "a key of a dict": (lambda value: {value: X}, {}),
    "a part of a partial": (lambda value: [partly(value), X], {}),
    "a part of a partial in a module": (lambda value: Net(partly(value)), {}),
    "a partial as a static argument": (partly, {"static_argnums": 0}),
    "a keyword of a derived leaf": (lambda value: jaxinterop.Derived(apply, X, value=value), {}),
    "a part of a derived leaf's partial": (lambda v: [jaxinterop.Derived(partly(v), X)], {}),
}
TWO_VALUES: dict[str, tuple[Any, Any]] = {
    "True and 1": (True, 1),
    "1 and 1.0": (1, 1.0),
    "zeros": (0.0, -0.0),
    "zeros of a subclass": (Float(0.0), Float(-0.0)),
    "zeros of NumPy": (np.float64(0), np.float64(-0.0)),
    "complex zeros": (complex(0, 0.0), complex(0, -0.0)),
    "frozensets": (frozenset([(1, True)]), frozenset([(1, 1.0)])),
    "tuples": ((0, (1,)), (0, (True,))),
    "a namedtuple": (Half(1), (1,)),
    "ranges": (range(0, 3, 2), range(0, 4, 2)),
    "partials": (functools.partial(max, 1), functools.partial(max, True)),
    "a frozen dataclass": (Frozen((0.0,)), Frozen((-0.0,))),
    "NumPy and a tuple": (np.int64(2), (2, 2)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("values", TWO_VALUES)
def test_equal_values_of_two_kinds(place: str, values: str) -> None:
    """Wherever a compiled function is found by them, they are two; each is traced for once."""
    wrap, options = PLACES[place]
    traces: list[Any] = []
    f = jaxinterop.jit(lambda _: traces.append(1), **options)
    for value in TWO_VALUES[values] * 3:
        f(wrap(copy.deepcopy(value)))
    assert len(traces) == 2


def test_a_value_that_changes_is_compared_again() -> None:
    """A leaf or argument that is the same object, with another hash, is another value."""
    config, names = Config("a"), []
    leaf = jaxinterop.jit(lambda tree: names.append(tree["config"].name))
    argument = jaxinterop.jit(lambda config: names.append(config.name), static_argnums=0)
    for name in ("a", "a", "b", "b"):
        config.name = name
        leaf({"config": config})
        argument(config)
    assert names == ["a", "a", "b", "b"]


def test_the_same_static_arguments_by_other_objects() -> None:
    """Equal text, numbers and tuples are recognized, by position and by name."""
    traces: list[Any] = []

    @jaxinterop.jit(static_argnums=(0, 1))
    def f(name: Any, shape: Any, x: Any) -> Any:
        traces.append((name, shape))
        return x

    for n in (10**6, 10**6 + 1):
        for _ in range(3):
            assert f("".join(["a", "b"]), (int(str(n)), "c"), 1.0) == 1.0
            assert f(shape=(int(str(n)), "c"), x=1.0, name="".join(["a", "b"])) == 1.0
    assert len(traces) == 4


def test_a_function_without_arrays_is_traced_once() -> None:
    """Whether there are static leaves, static arguments, or nothing at all."""
    traces: list[str] = []
    f = jaxinterop.jit(lambda *args: traces.append("trace"), static_argnums=3)
    calls: tuple[tuple[Any, ...], ...] = ((), ("text",), ([], {}), ("text", None, (), 5))
    for args in calls:
        before = len(traces)
        for _ in range(3):
            f(*args)
        assert len(traces) == before + 1
    donating = jaxinterop.jit(lambda x, y: traces.append("trace"), donate_argnums=0)
    before = len(traces)
    for _ in range(3):
        donating("text", 1.0)
        donating(jnp.ones(2), "text")
    assert len(traces) == before + 2


def test_a_shared_static_leaf_is_one_inside() -> None:
    """Objects that JAX can't trace have identity like arrays."""

    @jaxinterop.jit
    def f(tree: Any) -> Any:
        assert tree["a"] is tree["b"]
        assert tree["a"] is not tree["c"]
        return tree

    config = Config("a")
    out = f({"a": config, "b": config, "c": Config("a"), "x": 1.0})
    assert out["a"] is out["b"]


def test_a_static_leaf_of_the_result_comes_back_as_it_is() -> None:
    """Also at the second call, which isn't traced."""
    marks = frozenset({1, 2})
    f = jaxinterop.jit(lambda x: {"name": "out", "marks": marks, "x": x, "print": print})
    for _ in range(2):
        out = f(1.0)
        assert (out["name"], out["print"]) == ("out", print)
        assert out["marks"] is marks
        assert out["x"] == 1.0


def test_a_leaf_may_be_an_array_now_and_static_then() -> None:
    """One structure, leaves of other sorts: a trace for each."""
    seen: list[type] = []

    @jaxinterop.jit
    def f(tree: Any) -> Any:
        seen.append(type(tree["x"]) if isinstance(tree["x"], str) else object)
        return tree["w"]

    for x in (1.0, "a", 2.0, "a", jnp.float32(3.0), None, 1.0):
        assert f({"x": x, "w": 1.0}) == 1.0
    assert seen == [object, str, object, object]  # 1.0 is weakly typed, the array is not


def test_a_static_leaf_turns_into_an_array() -> None:
    """The other way round, with `lower` too."""
    f = jaxinterop.jit(lambda tree: tree["w"])
    for x in ("a", 1.0):
        assert f({"x": x, "w": 1.0}) == 1.0
        f.lower({"x": "b" if x == 1.0 else 2.0, "w": 1.0})


def test_arrays_of_text_in_the_place_of_numbers() -> None:
    """Their class doesn't tell them apart: the core gives JAX text; the error names the path."""
    f = jaxinterop.jit(lambda tree: tree["w"])
    for _ in range(2):
        for x in (np.array([1.0]), np.array([2.0])):
            assert f({"x": x, "w": 1.0}) == 1.0
        with pytest.raises(TypeError, match=r"args\[0\]\['x'\]"):
            f({"x": np.array(["a"]), "w": 1.0})


def test_the_functions_own_type_error_passes_through() -> None:
    """An error of the traced function is raised once, and the function runs once for it."""
    calls: list[str] = []

    @jaxinterop.jit
    def f(x: Any) -> Any:
        calls.append("f")
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine"):
        f([1.0])
    assert calls == ["f"]


def test_static_arguments_by_number_and_by_name() -> None:
    """The other is inferred from the signature; a negative number counts from the end."""

    def power(x: Any, n: int) -> Any:
        assert type(n) is int
        return x**n

    for options in ({"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": (1,)}):
        f = jaxinterop.jit(power, **options)
        assert f(3.0, 2) == f(3.0, n=2) == f(x=3.0, n=2) == 9.0
    assert jaxinterop.jit(power, static_argnums=-1)(3.0, 2) == 9.0


def test_a_static_argument_is_not_opened() -> None:
    """A tuple or an instance of a node's class reaches the function whole."""

    @jaxinterop.jit(static_argnums=0)
    def f(shape: Any, x: Any) -> Any:
        assert shape == (2, 3)
        return jnp.broadcast_to(x, shape)

    assert f((2, 3), 1.0).shape == (2, 3)


def test_an_unhashable_leaf_is_an_error_with_its_path() -> None:
    """It says where the leaf stands and what to do."""

    def f(model: Any, **more: Any) -> Any:
        return 0

    with pytest.raises(TypeError, match=r"args\[0\]\['layers'\]\[1\]\['cfg'\].*\n.*\n.*frozenset"):
        jaxinterop.jit(f)({"layers": [1.0, {"cfg": {1, 2}}]})
    with pytest.raises(TypeError, match=r"^kwargs\['b'\]\[0\] is an array of <U4"):
        jaxinterop.jit(f)(1.0, b=[np.array(["text"])])


def test_an_unhashable_static_argument() -> None:
    """`ValueError`, as in JAX, with the argument's place."""
    f = jaxinterop.jit(lambda x, shape: x, static_argnums=1)
    with pytest.raises(ValueError, match=r"^args\[1\] is a static argument and can't be hashed"):
        f(1.0, [2, 3])


def test_a_cycle_in_the_result() -> None:
    """A result that contains itself is an error as well."""

    @jaxinterop.jit
    def f(x: Any) -> Any:
        out: list[Any] = [x]
        out.append(out)
        return out

    with pytest.raises(pydag.CycleError, match=r"itself: result\[1\] is the list at result\n"):
        f(1.0)
