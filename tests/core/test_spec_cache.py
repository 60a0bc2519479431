# SPDX-License-Identifier: Apache-2.0
"""That specs are remembered makes them fast, and is otherwise not to be noticed."""

import gc
import sys
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import pytest

import pydag


@pydag.register_fields(meta_fields=("m",))
class Layer:
    def __init__(self, m: Any) -> None:
        self.m, self.w = m, 1


class Tagged:
    """Instances of one attribute that counts as structure."""

    def __init__(self, w: Any, tag: Any) -> None:
        self.w, self.tag = w, tag


pydag.register_fields(Tagged, meta_fields=("tag",))


def test_spec_that_is_asked_for_as_it_dies() -> None:
    """A weak reference's callback may flatten the tree whose spec is just dying."""
    tree = [{"a": 1, "b": [2, 3]}]
    found: list[str] = []
    for _ in range(100):
        spec = pydag.dag_structure(tree)
        reference = weakref.ref(spec, lambda _: found.append(repr(pydag.dag_structure(tree))))
        del spec
        assert reference() is None
    assert found == ["PyDagSpec([{'a': *, 'b': [*, *]}])"] * 100


def test_spec_that_is_asked_for_as_it_is_collected() -> None:
    """A finalizer within the collection of a cycle may flatten the tree whose spec is in it."""
    tree = [{"a": 1, "b": [2, 3]}]
    found: list[Any] = []

    class Finalized:
        __slots__ = ()

        def __del__(self) -> None:
            found.append(pydag.dag_structure(tree))

    class Loop:
        pass

    for i in range(21):
        loop: Any = Loop()
        names = ["itself", "spec", "finalized"]
        for name in names[i % 3 :] + names[: i % 3]:
            value = {"itself": loop, "spec": pydag.dag_structure(tree), "finalized": Finalized()}
            setattr(loop, name, value[name])
        del loop, value
        gc.collect()
    assert {spec.num_leaves for spec in found} == {3}


@pytest.mark.parametrize(
    ("first", "second"), [(1, True), (True, 1), (1, 1.0), (0.0, -0.0), ((1,), (True,)), ("1", 1)]
)
def test_equal_meta_fields_are_kept_apart(first: Any, second: Any) -> None:
    """A tree gets its own meta fields back, not equal ones of a tree before it."""
    for value in (first, second):
        spec = pydag.dag_structure([Layer(value)])
        assert repr(spec) == f"PyDagSpec([Layer(w=*, m={value!r})])"
        assert repr(pydag.dag_copy([Layer(value)])[0].m) == repr(value)


def _use(make: Any) -> None:
    """Does with a tree what makes the library remember its structure, in every way."""
    for _ in range(4):
        pydag.dag_leaves(make())
        pydag.dag_flatten(make())
        pydag.dag_map(lambda x, y: x, make(), make())
        pydag.dag_copy([make(), make()])
    spec = pydag.dag_structure(make())
    assert pydag.dag_structure(make()) == spec


new_namedtuple: Any = namedtuple  # for classes whose fields are named at run time


@pytest.mark.classes_die
@pytest.mark.parametrize("place", ["namedtuple", "factory", "meta", "leaf", "aux_data", "tuple"])
def test_users_classes_are_not_kept(place: str) -> None:
    """A class that the user has dropped is gone, wherever it stood in what was flattened."""

    def make() -> weakref.ref[type]:
        cls: Any
        if place in ("namedtuple", "tuple"):
            cls = new_namedtuple("cls", "x y")
        else:
            cls = type("Class", (), {})
        trees = {
            "namedtuple": lambda: [cls({"a": 1}, cls([2], 3))],
            "tuple": lambda: (cls(1, 2), [cls(3, 4)]),
            "factory": lambda: [defaultdict(cls, a=1)],
            "meta": lambda: [Tagged([1], cls)],
            "leaf": lambda: [cls, cls()],
            "aux_data": lambda: [Tagged([1], (cls, "x"))],
        }
        _use(trees[place])
        return weakref.ref(cls)

    reference = make()
    gc.collect()
    assert reference() is None
    _use(lambda: [(1, 2), [3]])


@pytest.mark.parametrize(
    "make",
    [
        lambda big: {big: 1},
        lambda big: [{big: 1, "a": 2}, {"a": 1}],
        lambda big: OrderedDict({big: 1}),
        lambda big: Tagged([1], big),
        lambda big: Tagged([1], ("a", big)),
    ],
)
@pytest.mark.parametrize("grow", ["x".__mul__, b"x".__mul__, (1).__lshift__])
def test_large_constants_are_not_kept(make: Any, grow: Any) -> None:
    """A large text or number that the user has dropped is gone, whatever was flattened with it."""
    big = grow(10_000_000)
    before = sys.getrefcount(big)
    _use(lambda: make(big))
    gc.collect()
    assert sys.getrefcount(big) == before


@pytest.mark.parametrize("known_before", [False, True])
def test_class_unregistered_by_the_predicate(known_before: bool) -> None:
    """What a walk finds is not remembered if a class was unregistered in its course."""

    class Late:
        def __init__(self, w: Any) -> None:
            self.w = w

    pydag.register_fields(Late)
    tree = [Late(2), {1}]
    if known_before:
        for _ in range(3):
            pydag.dag_structure(tree)

    def asked(obj: Any) -> bool:
        if type(obj) is set:
            pydag.unregister_pydag_node(Late)
            pydag.dag_structure([1, {1}])
        return False

    spec = pydag.dag_structure(tree, is_leaf=asked)
    assert spec.num_nodes == 4
    assert pydag.dag_leaves(tree) == tree
    del spec
    assert pydag.dag_leaves(tree) == tree


def test_two_roots_do_not_evict_each_other() -> None:
    """Of two trees that are met in turn, of whatever sizes, each is known again."""
    first = [0]
    spec = pydag.dag_structure(first)
    for size in range(2, 400):
        other = [0] * size
        other_spec = pydag.dag_structure(other)
        assert pydag.dag_structure(first) is spec
        assert pydag.dag_structure(other) is other_spec
