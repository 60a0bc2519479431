# SPDX-License-Identifier: Apache-2.0
"""Static leaves and arguments are part of the key; leaves that are no values are refused."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import attrs
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from operations import python_calls
from wrappers import WRAPPERS

import pydag
import pydag.jaxinterop as pj
from pydag.jaxinterop.treatments.arguments import StaticArgument


class Config:
    """Compared and hashed by its content."""

    def __init__(self, name: Any) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def test_a_value_that_changes_is_compared_again() -> None:
    """A leaf or argument that is the same object, with another hash, is another value."""
    config, names = Config("a"), []
    leaf = pj.jit(lambda tree: names.append(tree["config"].name))
    argument = pj.jit(lambda config: names.append(config.name), static_argnums=0)
    for name in ("a", "a", "b", "b"):
        config.name = name
        leaf({"config": config})
        argument(config)
    assert names == ["a", "a", "b", "b"]


def test_static_arguments_by_number_and_by_name() -> None:
    """The other is inferred from the signature; a negative number counts from the end.

    A number that no argument has is an error.
    """

    def power(x: Any, n: int) -> Any:
        assert type(n) is int
        return x**n

    for options in ({"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": (1,)}):
        f = pj.jit(power, **options)
        assert f(3.0, 2) == f(3.0, n=2) == f(x=3.0, n=2) == 9.0
    assert pj.jit(power, static_argnums=-1)(3.0, 2) == 9.0
    for wrapper in (pj.jit, pj.checkpoint):
        with pytest.raises(ValueError, match="only accepts 2 positional"):
            wrapper(power, static_argnums=2)


class Point(NamedTuple):
    """A tuple with names."""

    x: Any
    y: Any


class Color(enum.Enum):
    """Compared by identity."""

    RED = 1


# Makes equal values that are different objects, as far as Python has them.
NEW: dict[str, Callable[[], Any]] = {
    "int": lambda: int("12345"),
    "big int": lambda: int("9" * 50),
    "float": lambda: float("0.5"),
    "NaN": lambda: float("nan"),
    "complex": lambda: complex("1-0j"),
    "text": lambda: "".join(["té", "xt"]),
    "bytes": lambda: bytes(bytearray(b"by\0tes")),
    "None": lambda: None,
    "enum": lambda: Color.RED,
    "dtype": lambda: np.dtype(">f4"),
    "dtype of a unit": lambda: np.dtype("M8[D]"),
    "NumPy float": lambda: np.float32(0.1),
    "NumPy NaN": lambda: np.float16("nan"),
    "NumPy double": lambda: np.float64(-0.0),
    "NumPy int": lambda: np.int64(12345),
    "NumPy complex": lambda: np.complex64(1j),
    "NumPy flag": lambda: np.bool_(1),
    "NumPy date": lambda: np.datetime64("2020-01-01"),
    "NumPy text": lambda: np.str_("lab" + "el"),
    "long double": lambda: np.longdouble("0.1"),
    "range": lambda: range(300, 400),
    "tuple": lambda: (float("1.5"), ("a", (None, b"b", (float("nan"),)))),
    "long tuple": lambda: tuple(float(i) for i in range(2000)),
    "namedtuple": lambda: Point(float("1.5"), (np.float32(2),)),
    "frozenset": lambda: frozenset([float("1.5"), "a", (1.0, frozenset([float("nan")]))]),
    "functions": lambda: (jnp.tanh, float("0.5"), Color.RED, len, int),
}


@pytest.mark.parametrize("name", NEW)
def test_a_static_argument_that_is_made_anew(name: str) -> None:
    """The argument is found by value, without Python code: one leaf is kept, and the core calls."""
    make, seen = NEW[name], []

    @functools.partial(pj.jit, static_argnums=1)
    def f(x: Any, value: Any) -> Any:
        seen.append(value)
        return x

    x = jnp.ones(2)
    f(x, make())
    calls = python_calls(lambda: [f(x, make()) for _ in range(3)])
    assert len(seen) == 1
    assert "CompiledFunction.run" not in calls
    assert sorted(repr(seen[0])) == sorted(repr(make()))  # sets have no order


SAME_TYPE_OR_EQUAL: dict[str, list[Any]] = {
    "one": [1, True, 1.0, 1 + 0j, np.float32(1), np.float64(1), np.int32(1), np.int64(1),
        np.bool_(True), "1", b"1", np.str_("1"), (1,), frozenset([1])],
    "zero": [0.0, -0.0, np.float32(0), np.float32(-0.0), complex(0, 0), complex(0, -0.0),
        complex(-0.0, 0), False, 0, np.complex64(0), np.complex64(complex(0, -0.0))],
    "tuples": [(1, 2), (1.0, 2), (True, 2), Point(1, 2), ((1, 2),), (1, (2,)), ((1,), 2),
        (1, 2, ()), (0.0, 2), (-0.0, 2), ("1", "2"), ("12",), (b"12",), (float("nan"), 2)],
    "sets": [frozenset(x) for x in ([1], [True], [1.0], [0.0], [-0.0], [(0.0,)], [(-0.0,)], ["a"],
        [b"a"], [], [float("nan")], [frozenset([1])], [frozenset([1.0])], [1, 2], [1.0, 2])],
    "dates": [np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "s"), np.timedelta64(1, "D"),
        np.timedelta64(24, "h"), np.timedelta64("NaT", "D"), np.datetime64("NaT", "D")],
    "dtypes": [np.dtype(x) for x in ("f4", ">f4", "f8", "i4", "U1", "U2", "M8[D]", "M8[s]")],
    "numbers": [2**62, 2**63, 2**64, -(2**63), -(2**64), 2.0**63, range(2), range(0, 2, 3), slice,
        float("inf"), float("-inf"), 1e-320, 0.1, np.longdouble("0.1"), np.float16(0.1)],
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_TYPE_OR_EQUAL)
def test_static_arguments_that_are_different_values(name: str) -> None:
    """Values are told apart by type and value, however they are mixed, at any depth."""
    values: list[Any] = SAME_TYPE_OR_EQUAL[name]
    seen: Any = []
    f = pj.jit(lambda x, value: (seen.append(value), x)[1], static_argnames="value")
    for _ in range(3):
        for value in values:
            f(1.0, value=value)
        assert list(map(repr, seen)) == list(map(repr, values))


def test_what_the_lookup_of_a_static_argument_runs() -> None:
    """No code of the user's: subclasses and objects in a tuple are found by identity."""
    ran = []

    class Hostile(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            ran.append("eq")
            return True

        def __hash__(self) -> int:
            ran.append("hash")
            return 1

    first, second = (Hostile("a"), 1.0), (Hostile("b"), 1.0)
    seen: Any = []
    f = pj.jit(lambda x, value: (seen.append(value), x)[1], static_argnums=1)
    x = jnp.ones(2)
    f(x, first)
    ran.clear()
    f(x, first)
    assert (ran, seen) == ([], [first])
    assert f(x, second) is not None


def test_the_table_of_static_arguments_is_bounded() -> None:
    """The table forgets, and every call is right; what a function no longer knows is freed."""

    class Tag:
        """Compared by identity, and can be referred to weakly."""

    plans = pydag._core.call_plans("", "all", None)
    tags = [Tag() for _ in range(20_000)]
    for number, tag in enumerate(tags):
        pydag._core.add_static_leaf(plans, StaticArgument((float(number), tag)))
    assert pydag._core.static_leaf(plans, (19_999.0, tags[-1])).value == (19_999.0, tags[-1])
    assert pydag._core.static_leaf(plans, (0.0, tags[0])) is None
    refs = list(map(weakref.ref, tags))
    del tags, tag
    gc.collect()
    assert sum(ref() is not None for ref in refs) <= 4096
    f = pj.jit(lambda x, n: x, static_argnums=1)
    for rate in (1.5, 2.5, 1.5):
        for i in range(100):
            f.eval_shape(1.0, (rate, i))
    assert float(f(2.0, (1.5, 3))) == 2.0


def test_a_cycle_in_the_result() -> None:
    """A result that contains itself is an error as well."""

    @pj.jit
    def f(x: Any) -> Any:
        out: list[Any] = [x]
        out.append(out)
        return out

    with pytest.raises(pydag.CycleError, match=r"itself: result\[1\] is the list at result\n"):
        f(1.0)


@dataclasses.dataclass(frozen=True)
class Frozen:
    """Compared and hashed by its fields."""

    x: Any
    name: str = "a"


class Pair(NamedTuple):
    first: Any
    second: Any


def innermost(config: Any) -> Any:
    """The number in a nest of configurations."""
    while isinstance(config, Frozen | tuple):
        config = config.x if isinstance(config, Frozen) else config[0]
    return config


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(
    "wrap",
    [lambda c: c, lambda c: (c, 1), lambda c: Pair(c, 1), Frozen, lambda c: Frozen((Frozen(c),))],
)
def test_a_frozen_dataclass_that_was_changed(wrap: Any, by_name: bool) -> None:
    """The dataclass is another static argument then, also within tuples and other dataclasses."""
    options: Any = {"static_argnames": "c"} if by_name else {"static_argnums": 1}
    traces = []

    def f(x: Any, c: Any) -> Any:
        traces.append(innermost(c))
        return x * innermost(c)

    ours, config = pj.jit(f, **options), Frozen(2)
    given = wrap(config)

    def call() -> float:
        return float(ours(jnp.float32(3), c=given) if by_name else ours(jnp.float32(3), given))

    for _ in range(3):
        assert call() == 6
    for n, expected in [(5, 15), (2, 6), (5, 15)]:
        object.__setattr__(config, "x", n)
        for _ in range(3):
            assert call() == expected
    assert traces[:2] == [2, 5]


FLOATS = np.array([1.0, 2.0], np.float32)
TEXTS = np.array(["a", "b"])


def subclass() -> Any:
    """A class that pydag has never seen."""
    return type("Sub", (np.ndarray,), {})


def record(values: Any) -> Any:
    return values.view(np.recarray)


@pytest.mark.parametrize("text_first", [True, False])
def test_each_array_is_asked_whatever_came_first(text_first: bool) -> None:
    """An array of floats has a derivative, and one of text has none, whichever came first."""
    cls = subclass()
    floats, texts = FLOATS.view(cls), TEXTS.view(cls)

    def of_text() -> None:
        with pytest.raises(TypeError, match="is an array of"):
            pj.jit(lambda tree: tree["x"])({"x": texts})

    def of_floats() -> None:
        gradient = pj.grad(lambda tree: (tree["x"] ** 2).sum())({"x": floats})
        np.testing.assert_array_equal(gradient["x"], [2.0, 4.0])
        np.testing.assert_array_equal(pj.jit(lambda t: 2 * t["x"])({"x": floats}), [2, 4])

    steps = [of_text, of_floats, of_text, of_floats]
    for step in steps if text_first else steps[1:]:
        step()


def test_a_record_array_is_asked_by_its_dtype() -> None:
    """A record array with one plain dtype is an array, one with fields is not."""
    fields = np.array([(1, 2.0)], [("a", "i4"), ("b", "f4")])
    with pytest.raises(TypeError, match="is an array of"):
        pj.tree.leaves({"x": record(fields)})
    (leaf,) = pj.tree.leaves({"x": record(FLOATS)})
    np.testing.assert_array_equal(leaf, FLOATS)


W = jnp.ones((2, 2))
SAYS = r"\['sub'\]\[0\] is an object of .*\.Sub, a class that is not registered"


class Sub:
    """The registration was forgotten here."""

    def __init__(self, w: Any = W) -> None:
        self.w = w

    def __call__(self, x: Any) -> Any:
        return x @ self.w


@pytest.mark.parametrize("name", WRAPPERS)
def test_in_every_wrapper(name: str) -> None:
    """No wrapper takes one, and none returns one: there it would be a leak."""
    with pytest.raises(TypeError, match=SAYS):
        WRAPPERS[name](lambda t: t)({"w": W, "sub": [Sub()]})
    is_loop = name in ("scan", "fori_loop", "while_loop")  # in which the structure has to stay

    def leaks(t: Any) -> Any:
        return {**t, "sub": [Sub(t["w"])]}

    with pytest.raises(TypeError, match=r"\['sub'\]\[0\] is 'text'(.|\n)*Sub" if is_loop else SAYS):
        WRAPPERS[name](leaks)({"w": W, "sub": ["text"]} if is_loop else {"w": W})


@pytest.mark.parametrize("cure", [pydag.register_fields, pydag.register_module])
def test_registering_is_the_cure(cure: Any) -> None:
    """Once its class is registered, the object is a node: traced, trained and noticed."""

    class Late(Sub):
        pass

    f = pj.jit(lambda tree: tree["sub"].w)
    tree = {"sub": Late()}
    with pytest.raises(TypeError, match=cure.__name__):
        f(tree)
    cure(Late)
    assert f(tree)[0, 0] == 1.0
    tree["sub"].w = W * 100
    assert f(tree)[0, 0] == 100.0


def closing_over(x: Any) -> Any:
    """A function that leads to its argument."""
    return lambda: x * 2


RETURNED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "closure": (closing_over, "being traced: f32"),
    "closure over a holder": (lambda x: closing_over(Sub([x])), "being traced: f32"),
    "bound method": (lambda x: x.sum, "a method bound to f32"),
    "exception": (ValueError, "ValueError, a class that is not registered"),
    "values": (lambda x: {"a": x}.values(), "an iterator or a view"),
    "generator": (lambda x: (y for y in [x]), "an iterator or a view"),
    "empty iterator": (lambda x: iter([1]), "an iterator or a view"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_results(name: str) -> None:
    """What leads to a tracer would be dead for the caller; an iterator could be used but once."""
    make, says = RETURNED[name]
    for wrap in (pj.jit, pj.vmap):
        with pytest.raises(TypeError, match=rf"^result\['r'\] is .*{says}"):
            wrap(lambda x: {"r": make(x)})(W)


class World(pj.Module):
    """Its part knows it, the usual way round a cycle."""

    def __init__(self) -> None:
        self.w, self.part = W, {"world": weakref.ref(self)}


@pytest.mark.parametrize("base", [dict, list])
def test_a_subclass_of_a_container(base: type) -> None:
    """What can't be registered by its fields is to be registered by functions."""
    sub = type("Sub", (base,), {})
    with pytest.raises(TypeError, match=r"\n  Register the class: pydag\.register_pydag_node\(Sub"):
        pj.jit(lambda x: x)(sub())


@pytest.mark.parametrize("make", [World, lambda: {"part": {"world": weakref.proxy(World)}}])
def test_weak_references(make: Any) -> None:
    """Weak references would lead to the caller's objects, past the arguments."""
    world = make()
    with pytest.raises(TypeError, match=r"args\[0\]\S*part\S*\['world'\] is a weak reference"):
        pj.jit(lambda world: 1.0)(world)


class Record:
    def __init__(self, scale: Any) -> None:
        self.w = jnp.ones(2)
        self.scale = scale


pydag.register_fields(Record, data_fields=["w"], meta_fields=["scale"])


def loss(tree: Any) -> Any:
    return jnp.sum(tree["net"].w)


class Net(pj.Module):
    def __init__(self) -> None:
        self.layers = [{"w": jnp.ones(2)}]


ONES = jnp.ones(2)
Halves = collections.namedtuple("Halves", "a b")

HELD: dict[str, tuple[Any, str]] = {
    "the array itself": (ONES, "f32[2]"),
    "a list": ([np.ones(2)], "scale[0] is f"),
    "a dict in a tuple": ((1, {"a": ONES}), "scale[1]['a'] is f"),
    "a namedtuple": (Halves(1, ONES), "scale[1] is f"),
    "a deque in a list": ([collections.deque([ONES])], "scale[0][0] is f"),
    "a module": (Net(), "scale.layers[0]['w'] is f"),
    "modules in a tuple": ((2, Net()), "scale[1].layers[0]['w'] is f"),
    "a derived leaf": (pj.Derived(jnp.exp, ONES), "scale.sources[0] is f"),
    "a partial": (functools.partial(jnp.add, ONES), "scale.args[0] is f"),
}


@pytest.mark.parametrize("what", HELD)
def test_an_array_at_any_depth(what: str) -> None:
    """What containers, modules and derived leaves hold counts, and the path leads to it."""
    value, found = HELD[what]
    for work in (pj.jit(loss), pj.grad(loss), pj.Dag):
        for _ in range(2):
            with pytest.raises(TypeError, match=r"\['net'\]\.scale is a meta field of") as info:
                work({"net": Record(value)})
            assert f"holds an array: {found}" in str(info.value)


def deep(value: Any) -> Any:
    for _ in range(100_000):
        value = (value,)
    return value


def test_what_is_no_array() -> None:
    """Values, functions, modules without arrays and depth are nothing to refuse."""
    plain = Record(3)
    values = [
        jnp.float32,
        [1],
        {"a": {2}},
        np.dtype("int8"),
        np.float32(1),
        deep(1),
        frozenset([(1, "a")]),
        1j,
    ]
    for value in [*values, len, functools.partial(max, 1, key=abs), range(3), plain.scale]:
        assert pj.grad(loss)({"net": Record(value)})["net"].w.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="holds an array"):
        pj.grad(loss)({"net": Record(deep(ONES))})


X = jnp.arange(2.0)


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
    """The error has the path down to the field, and the cure."""
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
    """`pj.tree`, optimizers and Dags raise; `static=` doesn't help, as the array can be stale."""
    with pytest.raises(TypeError, match=r"\['held'\]\.x is f32\[2\], in an object of .*Uncompared"):
        CALLS[call]({"w": X, "held": Uncompared(X)})


@dataclasses.dataclass
class Plain:
    """A class that is no value and isn't registered."""

    x: Any


class Registered(pj.Module):
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
    "a module": (lambda x: Registered(), ".x.w"),
    "a method": (lambda x: Registered().method, ".x.__self__.w"),
    "an object": (Plain, ".x.x"),
}


@pytest.mark.parametrize("place", PLACES)
def test_arrays_are_found_at_any_depth(place: str) -> None:
    """Containers, partials, modules and other objects are looked through."""
    make, path = PLACES[place]
    with pytest.raises(TypeError) as caught:
        pj.jit(lambda t: 1.0)(Frozen(make(X)))
    assert str(caught.value).startswith(f"args[0]{path} is f32[2], in an object of")


@pytest.mark.parametrize(
    "array", [np.ones(2), np.array(["a", "b"]), jax.random.key(0), jax.new_ref(X)], ids=str
)
def test_all_kinds_of_arrays_count(array: Any) -> None:
    """NumPy's arrays count, whatever their type, as do keys and refs."""
    with pytest.raises(TypeError, match=r"args\[0\]\.x is "):
        pj.grad(lambda t, w: w)(Frozen(array), 1.0)


def test_a_tracer_in_a_result() -> None:
    """The tracer would be dead for the caller."""
    with pytest.raises(TypeError, match=r"result\['r'\]\.x is f32\[2\], in an object of .*Slots"):
        pj.jit(lambda x: {"r": Slots(2 * x)})(X)


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
    """The very object comes in, as for classes that define both methods themselves."""
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
    """The argument is a `ValueError`, also in a tuple and in a partial."""
    for jit in (pj.jit, pj.checkpoint):
        with pytest.raises(ValueError, match=r"args\[1\]\S*\.x is f32\[2\](.|\n)*as an ordinary"):
            jit(lambda x, v: x, static_argnums=1)(X, wrap(make(X)))
    assert pj.jit(lambda x, v: x, static_argnums=1)(X, wrap(make(3)))[1] == 1.0


@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: functools.partial(max, v)])
def test_an_array_that_a_meta_field_leads_to(wrap: Any) -> None:
    """Such an array is a `TypeError` with the path."""

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
def test_registering_a_frozen_class_is_the_cure(cure: Any) -> None:
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
