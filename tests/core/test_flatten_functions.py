# SPDX-License-Identifier: Apache-2.0
"""What flatten and unflatten functions may return, and nonsense that they may not."""

from typing import Any

import pytest

import pydag


def node(answer: Any, **options: Any) -> Any:
    """An instance of a class whose flatten function answers that."""
    cls: Any = type("Node", (), {})
    pydag.register_pydag_node(cls, lambda _: answer, lambda aux, items: (aux, items), **options)
    return cls()


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (None, TypeError, "iterable"),
        (7, TypeError, "iterable"),
        ((), RuntimeError, "2- or 3-tuple, got 0"),
        (([],), RuntimeError, "2- or 3-tuple, got 1"),
        (([], None, None, None), RuntimeError, "2- or 3-tuple, got 4"),
        ((7, None), TypeError, "iterable"),
        ((None, None), TypeError, "iterable"),
        (([1, 2], None, ["a"]), RuntimeError, r"children \(2\) and number of entries \(1\)"),
        (([], None, ["a"]), RuntimeError, r"children \(0\) and number of entries \(1\)"),
        (([1], None, 7), TypeError, "iterable"),
    ],
)
def test_nonsense(answer: Any, error: type[Exception], message: str) -> None:
    """A flatten function that returns nonsense is an error that names the place."""
    with pytest.raises(error, match=message) as info:
        pydag.dag_flatten({"a": [node(answer)]})
    assert "tree['a'][0]" in str(info.value) + "".join(getattr(info.value, "__notes__", ()))


@pytest.mark.parametrize("children", [[1, 2], (1, 2), {1: 0, 2: 0}, range(1, 3), iter([1, 2])])
def test_any_iterable_of_children(children: Any) -> None:
    """Children may come as any iterable; the unflatten function gets a tuple."""
    leaves, spec = pydag.dag_flatten(node((children, "aux")))
    assert leaves == [1, 2]
    assert pydag.dag_unflatten(spec, leaves) == ("aux", (1, 2))


def test_children_made_on_the_fly() -> None:
    """Children that exist only while they are returned are not taken for one another."""

    class Fleeting:
        pass

    pydag.register_pydag_node(Fleeting, lambda _: ([[0.5], object()], None), lambda _, c: list(c))
    leaves, spec = pydag.dag_flatten([Fleeting() for _ in range(100)])
    assert (len(leaves), spec.num_shared) == (200, 0)
    objects = [x for x in leaves if x != 0.5]
    assert len({id(x) for x in objects}) == 100


def test_unflatten_function_that_returns_a_child() -> None:
    """The output may share more than the input did."""

    class Thin:
        def __init__(self, child: Any) -> None:
            self.child = child

    pydag.register_pydag_node(Thin, lambda t: ((t.child,), None), lambda _, c: c[0])
    inner = [0.5]
    out = pydag.dag_copy([Thin(inner), inner])
    assert out == [[0.5], [0.5]]
    assert out[0] is out[1]


def test_unflatten_function_that_returns_one_object() -> None:
    """An unflatten function may return a cached object, or None."""
    cached = object()

    class Same:
        pass

    pydag.register_pydag_node(Same, lambda _: ((), None), lambda *_: cached)
    assert pydag.dag_copy([Same(), Same()]) == [cached, cached]


def test_unflatten_function_runs_once_for_each_object() -> None:
    """A shared node is built once in each call, however often the spec is used."""
    built: list[Any] = []

    class Counted:
        pass

    def unflatten(*_: Any) -> Counted:
        built.append(1)
        return Counted()

    pydag.register_pydag_node(Counted, lambda _: (([],), None), unflatten)
    counted = Counted()
    leaves, spec = pydag.dag_flatten([counted, (counted, counted), {"k": counted}])
    for n in (1, 2):
        out = pydag.dag_unflatten(spec, leaves)
        assert len(built) == n
        assert out[0] is out[1][0] is out[1][1] is out[2]["k"]


def test_aux_data_is_compared_by_identity_first() -> None:
    """aux_data that is unequal to itself, or unhashable, is no obstacle."""
    nan, unhashable = float("nan"), {"a": [1]}
    for aux in (nan, unhashable):
        one = node(([1], aux))
        spec = pydag.dag_structure(one)
        assert spec == pydag.dag_structure(one)
        assert hash(spec) == hash(pydag.dag_structure(one))


def test_aux_data_that_cannot_be_compared() -> None:
    """What `==` of aux_data raises passes through; so does what its truth raises."""

    class Array:
        def __eq__(self, other: object) -> Any:
            raise ZeroDivisionError

        __hash__ = None  # type: ignore[assignment]  # it has none

    class Node:
        pass

    pydag.register_pydag_node(Node, lambda _: ((), Array()), lambda *_: None)
    with pytest.raises(ZeroDivisionError):
        assert pydag.dag_structure(Node()) == pydag.dag_structure(Node())
    with pytest.raises(ZeroDivisionError):
        pydag.dag_map(lambda x, y: x, [Node()], [Node()])
