"""`SpecKey`: a spec as a key, which tells dicts of another order and values by type apart."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import pydag
from pydag import _core


def key(tree: Any) -> _core.SpecKey:
    return _core.spec_key(pydag.dag_structure(tree))


@pydag.register_fields(meta_fields=("meta",))
class Node:
    def __init__(self, meta: Any) -> None:
        self.w, self.meta = 1.0, meta


class Custom:
    def __init__(self, aux: Any) -> None:
        self.aux = aux


pydag.register_pydag_node(Custom, lambda node: ((1.0,), node.aux), lambda aux, _: Custom(aux))


def default_dict(items: Any) -> Any:
    return collections.defaultdict(list, items)


class Float(float):
    """Compares by its number."""


class Text(str):
    """Compares by what it says."""


@dataclasses.dataclass(frozen=True)
class Config:
    """Is compared by its fields, but for one."""

    rate: Any
    note: Any = dataclasses.field(default=1, compare=False)


class Number(enum.IntEnum):
    ONE = 1


class Point(NamedTuple):
    x: Any


class Other(NamedTuple):
    x: Any


def hashable(value: Any) -> bool:
    return type(value).__hash__ is not None


EQUAL_VALUES: list[tuple[Any, Any]] = [
    (1, True),
    (1, 1.0),
    (0.0, -0.0),
    (1, 1 + 0j),
    (complex(0, 0.0), complex(0, -0.0)),
    (complex(0.0, 1), complex(-0.0, 1)),
    (Float(0.0), Float(-0.0)),
    (1.0, Float(1.0)),
    (1, Number.ONE),
    ("a", Text("a")),
    (np.float64(0.0), np.float64(-0.0)),
    (np.float16(0.0), np.float16(-0.0)),
    (np.complex64(complex(1, 0.0)), np.complex64(complex(1, -0.0))),
    (np.float32(1), np.float64(1)),
    (np.datetime64("2020"), np.datetime64("2020-01")),
    (frozenset([1]), frozenset([True])),
    (frozenset([0.0, "a"]), frozenset([-0.0, "a"])),
    (frozenset([(1,), frozenset([2])]), frozenset([(1,), frozenset([2.0])])),
    (Point(1), Other(1)),
    (((1,),), ((True,),)),
    (range(0), range(1, 1)),
    (range(0, 3, 2), range(0, 4, 2)),
    ([1, {2}], [1, {2.0}]),
    ({"a": [0.0]}, {"a": [-0.0]}),
    (collections.deque([1]), collections.deque([True])),
    (slice(0, 1), slice(0, True)),
    (Config(1), Config(True)),
    (Config((0.0,)), Config((-0.0,))),
]

EQUAL_AND_TOLD_APART = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ([{"x": {"a": 1, "b": 2}}], [{"x": {"b": 2, "a": 1}}]),
    (default_dict({"a": 1, "b": 2}), default_dict({"b": 2, "a": 1})),
    ({1: 1.0}, {True: 1.0}),
    ({(1, "a"): 1.0}, {(1.0, "a"): 1.0}),
    (Node(1), Node(True)),
    (Node((1, [2])), Node((1, [2.0]))),
    (Node({"a": 1, "b": 2}), Node({"b": 2, "a": 1})),
    (Node(0.0), Node(-0.0)),
    *((Node(one), Node(other)) for one, other in EQUAL_VALUES),
    *((Custom([one]), Custom([other])) for one, other in EQUAL_VALUES),
    *(({one: 1.0}, {other: 1.0}) for one, other in EQUAL_VALUES if hashable(one)),
    (Custom(1), Custom(1.0)),
    (Custom({"a": [1]}), Custom({"a": [True]})),
]


@pytest.mark.parametrize(("one", "other"), EQUAL_AND_TOLD_APART)
def test_equal_specs_that_can_be_told_apart(one: Any, other: Any) -> None:
    """The specs' keys differ, and hash alike; `explain` says where, if it is asked to be exact."""
    a, b = key(one), key(other)
    assert a.spec == b.spec
    assert (a == b, a != b, b == a) == (False, True, False)
    assert hash(a) == hash(b) == hash(a.spec)
    assert _core.explain(a.spec, b.spec) == ""
    assert _core.explain(a.spec, b.spec, exactly=True).startswith("tree")
    assert {a: 1, b: 2}[key(one)] == 1
    restored = pickle.loads(pickle.dumps([a, b]))
    assert (restored[0] == a, restored[1] == b, restored[0] == b) == (True, True, False)


SAME_VALUES: list[Callable[[], Any]] = [
    lambda: float("nan"),
    lambda: complex(float("nan"), 1),
    lambda: np.float32("nan"),
    lambda: np.datetime64("NaT", "s"),
    lambda: (1, float("nan")),
    lambda: frozenset([float("nan"), float("nan"), (0.5, "a"), frozenset([2])]),
    lambda: {"a": [1, {2, 3.5}], "b": range(3)},
    lambda: functools.partial(max, -0.0, key=functools.partial(abs)),
    lambda: np.float32(0.1),
    lambda: Config(float("nan"), object()),
]


@pytest.mark.parametrize("make", SAME_VALUES)
def test_values_made_anew(make: Callable[[], Any]) -> None:
    """A key holds for equal values of one type, NaN and partials among them."""
    for wrap in (Node, Custom):
        assert key(wrap(make())) == key(wrap(make()))
        assert hash(key(wrap(make()))) == hash(key(wrap(make())))
    assert _core.is_same_value(make(), make())
    assert _core.value_hash(make()) == _core.value_hash(make())


def test_frozensets_that_hold_one_another() -> None:
    """Comparing is linear in the sets, however often they are held, and never ends in a crash."""

    def nested(depth: int, inner: Any, *, twice: bool) -> Any:
        for _ in range(depth):
            inner = frozenset([(inner, 0), (inner, 1)] if twice else [inner])
        return inner

    a, b = (nested(40, frozenset([x]), twice=True) for x in (1, 2))
    assert not _core.is_same_value(a, b)
    assert _core.is_same_value(a, nested(40, frozenset([1]), twice=True))
    deep, other = (nested(100_000, frozenset(), twice=False) for _ in range(2))
    with contextlib.suppress(RecursionError):
        _core.is_same_value(deep, other)


class Array:
    """Stands for an array: `==` says of each element whether it is equal."""

    def __init__(self, error: type[Exception] = ValueError) -> None:
        self.error = error

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise self.error("the truth value is ambiguous")

    def __hash__(self) -> int:
        return 0


NOT_COMPARABLE: list[tuple[Any, Any]] = [
    (np.int64(2), (2, 2)),
    (np.float64(0), range(0)),
    ((np.int64(1),), ([1, 2],)),
    ({"a": [np.int64(1)]}, {"a": [(1, 2)]}),
    (Array(), Array()),
    (Array(RuntimeError), 1),
    ((1, Array(TypeError)), (1, Array(TypeError))),
]


@pytest.mark.parametrize(("one", "other"), NOT_COMPARABLE)
@pytest.mark.parametrize("wrap", [Node, Custom])
def test_values_whose_equality_has_no_truth(wrap: Any, one: Any, other: Any) -> None:
    """The values are unequal wherever structures are compared; one object is equal to itself."""
    for x, y in ((one, other), (other, one)):
        a, b = pydag.dag_structure(wrap(x)), pydag.dag_structure(wrap(y))
        assert a != b
        assert not a.is_prefix(b)
        assert key(wrap(x)) != key(wrap(y))
        assert pydag.explain(a, b) != ""
        with pytest.raises(ValueError, match="ismatch"):
            a.flatten_up_to(wrap(y))
        assert a == pydag.dag_structure(wrap(x))
        assert a.flatten_up_to(wrap(x)) == [1.0]
