# SPDX-License-Identifier: Apache-2.0
"""`dag_intern`: equal parts become one object."""

import gc
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import reference_fold as ref
import specimens as sp
import strategies
from agreement import Options, known, outcome
from hypothesis import given
from isomorphism import difference
from strategies import Predicate, thorough

import pydag

Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "x y")


@thorough
@given(strategies.dags(), strategies.predicates, strategies.options)
def test_agrees(dag: Any, predicate: Predicate, options: Options) -> None:
    """The same parts merge, by the same calls, and nothing else is built."""
    expected, events, _ = outcome(lambda: ref.intern(dag, is_leaf=predicate, **known(options)))
    again = predicate.again()
    got, calls, error = outcome(lambda: pydag.dag_intern(dag, again, **options))
    assert error == ""
    assert difference(got, expected) == ""
    assert difference(calls, events) == ""
    assert (got is dag) is (expected is dag)


@thorough
@given(strategies.dags(strategies.BUILTIN + strategies.FIELDS))
def test_twice_is_once(dag: Any) -> None:
    """Two copies become one; what is interned already comes back as it is."""
    once = pydag.dag_intern([dag, pydag.dag_copy(dag)], namespace=sp.NAMESPACE)
    assert once[0] is once[1] or not isinstance(once[0], list | dict | deque | sp.Module)
    assert pydag.dag_intern(once, namespace=sp.NAMESPACE) is once


@dataclass(frozen=True)
class Term:
    left: Any
    right: Any = None
    op: Any = field(default="+", metadata={"static": True})


@dataclass(frozen=True)
class Same:
    left: Any
    right: Any = None
    op: Any = field(default="+", metadata={"static": True})


class Held:
    def __init__(self, aux_data: Any) -> None:
        self.aux_data = aux_data


pydag.register_fields(Term)
pydag.register_fields(Same)
pydag.register_pydag_node(Held, lambda x: ((), x.aux_data), lambda aux_data, _: Held(aux_data))


def merged(a: Any, b: Any) -> bool:
    """Whether two parts of a tree become one object."""
    one, two = pydag.dag_intern([[a], [b]])
    return one is two


NAN, W = float("nan"), np.arange(3)
EQUAL: dict[str, Callable[[], Any]] = {
    "list": lambda: [W, 1, "a"],
    "empty list": list,
    "dict": lambda: {"b": W, "a": [2.5]},
    "dict with odd keys": lambda: {(1, "a"): W, None: 1, 2.5: 3, frozenset({1}): 4},
    "ordered dict": lambda: OrderedDict(b=1, a=W),
    "defaultdict": lambda: defaultdict(list, a=W),
    "deque": lambda: deque([W], 3),
    "tuple": lambda: (W, [1]),
    "namedtuple": lambda: Point(W, [1]),
    "fields": lambda: Term(Term(W, 1), [2]),
    "slots": lambda: sp.Frozen(W, (1,)),
    "custom": lambda: sp.Tagged(W, [1]),
    "nan": lambda: float("nan"),
    "new strings": lambda: {"".join(["a", "b"]): "".join(["c", "d"])},
    "big number": lambda: 10**30 + 1,
    "aux_data of tuples": lambda: Term(W, op=("k", (1, float("nan")))),
    "aux_data of a dict": lambda: Term(W, op={"axes": [1, 2], "name": "sum"}),
    "aux_data with __eq__": lambda: Term(W, op=frozenset({"a"})),
    "a class in aux_data": lambda: Term(W, op=sp.WithMeta),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_parts_merge(name: str) -> None:
    """Parts of one class with equal keys, aux_data and children become one object."""
    assert merged(EQUAL[name](), EQUAL[name]())


UNEQUAL: dict[str, tuple[Any, Any]] = {
    "1 and True": (1, True),
    "1 and 1.0": (1, 1.0),
    "0.0 and -0.0": (0.0, -0.0),
    "1 and '1'": (1, "1"),
    "two arrays": (np.arange(3), np.arange(3)),
    "two objects": (sp.Opaque(), sp.Opaque()),
    "two numbers that are objects": (np.float64(1.5), np.float64(1.5)),
    "two sets": (frozenset({1}), frozenset({1})),
    "dicts filled in another order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "keys of two types": ({1: W}, {True: W}),
    "keys of two signs": ({0.0: W}, {-0.0: W}),
    "dict and OrderedDict": ({"a": 1}, OrderedDict(a=1)),
    "two factories": (defaultdict(list, a=1), defaultdict(dict, a=1)),
    "two limits": (deque([1], 2), deque([1], 3)),
    "list and tuple": ([1], (1,)),
    "two namedtuples": (Point(1, 2), Other(1, 2)),
    "two classes": (Term(1), Same(1)),
    "aux_data of two types": (Term(W, op=1), Term(W, op=True)),
    "aux_data of two types, inside": (
        Term(W, op=(1, [{"k": 0.0}])),
        Term(W, op=(1, [{"k": -0.0}])),
    ),
    "a dict as aux_data, in another order": (Term(1, op={1: 1, 2: 2}), Term(1, op={2: 2, 1: 1})),
    "arrays as aux_data": (Held(np.arange(3)), Held(np.arange(3))),
    "slots, one unset": (sp.Slotted(), strategies.with_attributes(sp.Slotted(), {"a": None})),
    "other attributes": (sp.Module(a=1), sp.Module(b=1)),
    "attributes in another order": (sp.Module(a=1, b=2), sp.Module(b=2, a=1)),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_unequal_parts_stay(name: str) -> None:
    """What differs in class, order, type or sign stays apart, and the very tree comes back."""
    tree = [[UNEQUAL[name][0]], [UNEQUAL[name][1]]]
    assert pydag.dag_intern(tree) is tree


def test_many_parts_of_one_shape_take_linear_time() -> None:
    """Twenty thousand leaves, keys or aux_data that differ are no twenty thousand squared."""
    names = [f"x{i}" for i in range(20_000)]
    for tree in (
        [Term(None, op=name) for name in names],
        [Term(None, op={"name": [name]}) for name in names],
        [{name: W} for name in names],
        [Term(i) for i in range(20_000)],
    ):
        assert pydag.dag_intern(tree) is tree


def test_hostile_aux_data() -> None:
    """What a hash or a comparison of aux_data raises passes through, with the place."""

    class Key:
        def __init__(self, error: bool) -> None:
            self.error = error

        def __hash__(self) -> int:
            return 1 // (not self.error)

        def __eq__(self, other: object) -> bool:
            raise KeyError

    with pytest.raises(ZeroDivisionError) as info:
        pydag.dag_intern({"k": Term(1, op=Key(True))})
    assert info.value.__notes__ == ["raised while interning tree['k']"]
    with pytest.raises(KeyError) as unequal:
        pydag.dag_intern([Term(1, op=Key(False)), Term(1, op=Key(False))])
    assert unequal.value.__notes__ == ["raised while interning tree[1]"]


def test_comparison_that_comes_back() -> None:
    """Aux_data whose comparison interns, collects and changes the tree does no harm."""
    tree: list[Any] = []

    class Key:
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            gc.collect()
            tree.clear()
            assert pydag.dag_intern([[1], [1]])[0] == [1]
            return True

    tree += [Term(1, op=Key()), Term(1, op=Key())]
    first = tree[0]
    out = pydag.dag_intern(tree)
    assert out[0] is out[1] is first


def test_unflatten_function_that_raises() -> None:
    """A class that can't be built with the merged parts raises, with the place."""

    class Refuses(sp.Box):
        pass

    def refuse(*_: Any) -> Any:
        raise KeyError

    pydag.register_pydag_node(Refuses, lambda box: (box.children, None), refuse)
    with pytest.raises(KeyError) as info:
        pydag.dag_intern([[W], Refuses([W])])
    assert info.value.__notes__ == ["raised while interning tree[1]"]
