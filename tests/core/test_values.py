# SPDX-License-Identifier: Apache-2.0
"""The rule of identity: which leaves are values, which are objects."""

import copy
import enum
import time
import types
import weakref
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference_kinds as ref
import specimens as sp

import pydag


class Flag(enum.IntFlag):
    ON = 1


Point = namedtuple("Point", "x y")

VALUES = [
    *(*sp.VALUES, 10**100, "text" * 10, b"bytes" * 10, NotImplemented, int, [].append),
    *((lambda: None).__code__, weakref.ref(sp), Flag.ON),
]
OBJECTS = [
    *(make() for make in sp.OBJECTS),
    *(np.dtype("int8"), sp.Opaque().__init__, types, slice(1), Decimal(1), Fraction(1)),  # type: ignore[misc]  # an instance's
    *(types.MappingProxyType({}), iter([])),
]


@pytest.mark.parametrize("x", VALUES, ids=lambda x: type(x).__name__)
def test_values(x: Any) -> None:
    """What `copy.deepcopy` treats as atomic is a leaf of its own at every occurrence."""
    leaves, spec = pydag.dag_flatten([x, x, {"k": x}], none_is_leaf=True)
    assert len(leaves) == 3
    assert spec.num_shared == 0
    assert copy.deepcopy(x) is x or type(x) is np.bool_


@pytest.mark.parametrize("x", OBJECTS, ids=lambda x: type(x).__name__)
def test_objects(x: Any) -> None:
    """Everything else has identity, and none under `identity="nodes"`."""
    leaves, spec = pydag.dag_flatten([x, x, {"k": x}])
    assert len(leaves) == 1
    assert leaves[0] is x
    assert spec.num_shared == 1
    leaves, spec = pydag.dag_flatten([x, x, {"k": x}], identity="nodes")
    assert (len(leaves), spec.num_shared) == (3, 0)


@pytest.mark.parametrize("make", [list, dict, lambda: [[]], lambda: {"k": [1]}])
def test_mutable_containers(make: Any) -> None:
    """Mutable containers have identity, empty ones too, under either `identity`."""
    x = make()
    for identity in ("all", "nodes"):
        spec = pydag.dag_structure((x, x, make()), identity=identity)
        assert spec.num_shared == 1


@pytest.mark.parametrize("x", [(), (1,), ([],), Point(1, 2), time.gmtime(0)], ids=repr)
def test_tuples(x: Any) -> None:
    """Tuples are opened at every occurrence; what they hold keeps its identity."""
    w = [0.5]
    a, b = pydag.dag_copy([x, x])
    assert a == b == x
    assert a is not b or a == ()
    pair = (w, 1)
    leaves, spec = pydag.dag_flatten([pair, pair])
    assert (leaves, repr(spec)) == ([0.5, 1, 1], "PyDagSpec([(&0 [*], *), (*0, *)])")


def test_equal_specs_whatever_the_objects() -> None:
    """Two trees that are shared alike have equal specs; shared otherwise, unequal ones."""

    def make(first: int) -> Any:
        a, b = object(), [object()]
        parts = [a, b, b, a]
        return parts[first:] + parts[:first]

    assert pydag.dag_structure(make(0)) == pydag.dag_structure(make(0))
    assert hash(pydag.dag_structure(make(0))) == hash(pydag.dag_structure(make(0)))
    assert pydag.dag_structure([[1], [1]]) != pydag.dag_structure([[1]] * 2)
    x, y = object(), object()
    specs = [pydag.dag_structure(t) for t in ([x, x, y, y], [x, y, x, y], [x, y, y, x], [x] * 4)]
    assert len(set(specs)) == 4


@pytest.mark.parametrize("identity", ["ALL", "", None, 1, b"all"])
def test_other_identities(identity: Any) -> None:
    """`identity` is "all" or "nodes"."""
    for operation in (pydag.dag_flatten, pydag.dag_copy, pydag.deref, pydag.shared_objects):
        with pytest.raises(ValueError, match="identity"):
            operation([1], identity=identity)


def test_rests_give_one_answer() -> None:
    """At all paths of one leaf a rest holds one object, or equal values of one type."""
    w = object()
    tree = [w, [w]]
    nan = float("nan")
    rest: Any
    for rest in ([1, [1]], ["a" * 9, ["a" * 9]], [nan, [float("nan")]], [(1, nan), [(1, -nan)]]):
        assert len(pydag.dag_leaves(pydag.dag_map(lambda x, y: 7, tree, rest))) == 1 + 1
    one, other = np.zeros(1), np.zeros(1)
    for rest in ([1, [1.0]], [True, [1]], [0, [False]], [one, [other]], [(1,), [(1.0,)]], [1, [2]]):
        with pytest.raises(pydag.SharingError):
            pydag.dag_map(lambda x, y: 7, tree, rest)
    pydag.dag_map(lambda x, y: 7, tree, [one, [one]])


class Money:
    """Registered without identity, by its fields."""

    def __init__(self, amount: Any, unit: Any = "EUR") -> None:
        self.amount, self.unit = amount, unit


class Span:
    """Registered without identity, by functions."""

    def __init__(self, *ends: Any) -> None:
        self.ends = ends


class Endless:
    """A part of each instance is a new instance, without end."""


pydag.register_fields(Money, meta_fields=("unit",), preserve_relative_identities=False)
pydag.register_pydag_node(
    Span, lambda x: (x.ends, "aux"), lambda _, c: Span(*c), preserve_relative_identities=False
)
pydag.register_pydag_node(
    Endless, lambda _: ((Endless(),), None), lambda *_: None, preserve_relative_identities=False
)
MONEY: ref.Registry = {
    Money: ref.Fields(data=("amount",), meta=("unit",), keeps_identity=False),
    Span: ref.Callbacks(lambda x: (x.ends, "aux"), lambda _, c: Span(*c), keeps_identity=False),
}
ONE, OTHER = object(), object()


@pytest.mark.parametrize(
    ("a", "b", "is_one"),
    [
        (Money(ONE), Money(ONE), True),
        (Money(ONE), Money(OTHER), False),
        (Money(1.5), Money(1.5), True),
        (Money(1), Money(1.0), False),
        (Money(1, "EUR"), Money(1, "USD"), False),
        (Money(1, ("EUR", 2)), Money(1, ("EUR", 2)), True),
        (Money(1, [2]), Money(1, [2]), False),
        (Money([1]), Money([1]), False),
        (Span(ONE, (1, Money(2))), Span(ONE, (1, Money(2))), True),
        (Span(1), Span(1, 2), False),
        (Span(), Span(), True),
        (Span(1), Money(1), False),
        ((Span(1),), (Span(1),), True),
    ],
)
def test_answers_without_identity(a: Any, b: Any, is_one: bool) -> None:
    """Two instances of a class without identity are one answer where their parts are."""
    node = [0.5]
    spec, tied = pydag.dag_structure([node, node]), object()
    assert ref.one_answer(a, b, MONEY) is is_one
    for work in (
        lambda: spec.flatten_up_to([[a], [b]]),
        lambda: pydag.dag_map(lambda x, y: x, [node, node], [[a], [b]]),
        lambda: pydag.dag_map(lambda x, y: x, [tied, tied], [a, b]),
        lambda: pydag.dag_broadcast_prefix([a, b], [node, node], is_leaf=lambda x: x in (a, b)),
        lambda: pydag.dag_update([node, node], [[a], [b]]),
    ):
        if is_one:
            work()
            continue
        with pytest.raises(pydag.SharingError):
            work()


def test_answers_without_identity_that_never_end() -> None:
    """Parts that contain themselves are compared once; those that are made anew end by an error."""
    node = [0.5]
    spec = pydag.dag_structure([node, node])
    a, b = Money(1), Money(1)
    a.amount, b.amount = a, b
    assert spec.flatten_up_to([[a], [b]]) == [a]
    with pytest.raises(RecursionError, match="while two answers were compared"):
        spec.flatten_up_to([[Endless()], [Endless()]])
    one: Any = ()
    other: Any = ()
    for _ in range(60):  # 2 ** 60 pairs, if none were remembered
        one, other = (one, one), (other, other)
    assert spec.flatten_up_to([[one], [other]]) == [one]


def test_no_equality_of_the_users_runs() -> None:
    """Two answers are compared without any object's own `__eq__`."""

    class Rude:
        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # type: ignore[assignment]  # it has none

    w = object()
    with pytest.raises(pydag.SharingError):
        pydag.dag_map(lambda x, y: 7, [w, w], [Rude(), Rude()])
