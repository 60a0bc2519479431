"""`SpecKey`: a spec as a key, which tells dicts of another order and values by type apart."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import optree
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
    """Their keys differ, and hash alike; `explain` says where, if it is asked to be exact."""
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
    """They are unequal, wherever structures are compared; the same object is equal to itself."""
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


def test_keys_of_trees_that_are_alike() -> None:
    """They are equal, whether the spec is the very same, another, or a restored one."""
    for make in (
        lambda: {"b": [1, 2], "a": {"y": 1, "x": 2}},
        lambda: collections.OrderedDict(b=1, a=2),
        lambda: {2: 1.0, (1, "a"): 2.0},
        lambda: Node(("text", 300, 0.5, {"a": [1, None]})),
        lambda: Custom({"b": (1, 2), "a": b"bytes"}),
    ):
        a = key(make())
        pydag._core.clear_caches()
        b = key(make())
        assert a == b == pickle.loads(pickle.dumps(a))
        assert hash(a) == hash(b)
        assert _core.explain(a.spec, b.spec, exactly=True) == ""


def test_other_specs_and_other_things() -> None:
    """Keys of unequal specs are unequal, and so is what is no key."""
    assert key([1]) != key([1, 2])
    assert key({"a": 1}) != key({"b": 1})
    w = [1]
    assert key([w, w]) != key([w, [1]])
    assert key([1]) != pydag.dag_structure([1])
    assert (key([1]) == 1) is False
    with pytest.raises(TypeError):
        _core.spec_key([1])  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(TypeError):
        _core.SpecKey()
    with pytest.raises(TypeError):
        assert key([1]) < key([2])  # type: ignore[operator]  # that is what is tested


def test_what_explain_says() -> None:
    """The path of the dict, and both orders; of configuration both values."""
    a, b = key([{"l": {"x": 1, "y": 2}}]).spec, key([{"l": {"y": 1, "x": 2}}]).spec
    assert _core.explain(a, b, exactly=True) == (
        "tree[0]['l']\n"
        "  first:  a dict filled in the order ['x', 'y']\n"
        "  second: a dict filled in the order ['y', 'x']"
    )
    text = _core.explain(key(Node(1)).spec, key(Node(True)).spec, exactly=True)
    assert "with (1,)" in text
    assert "with (True,)" in text
    longer = key({"x": {"b": 1, "a": 2}, "y": [1]}).spec
    text = _core.explain(longer, key({"x": {"a": 1, "b": 2}, "y": [1, 2]}).spec, exactly=True)
    assert text.splitlines()[::3] == ["tree['x']", "tree['y']"]


def test_repr() -> None:
    """It shows the order of a dict where that isn't the order of its keys."""
    assert repr(key({"a": 1, "b": 2})) == "SpecKey(PyDagSpec({'a': *, 'b': *}))"
    assert repr(key([{"b": 1, "a": 2}])) == (
        "SpecKey(PyDagSpec([{'a': *, 'b': *, in the order ['b', 'a']}]))"
    )
    assert repr(key({"b": 1, "a": 2}).spec) == "PyDagSpec({'a': *, 'b': *})"


def test_sharing_sixtyfold() -> None:
    """Comparing, hashing and writing down are linear in the objects."""

    def tower() -> Any:
        tree: Any = {"b": 1, "a": 2}
        for _ in range(60):
            tree = [tree, tree]
        return tree

    a, b = key(tower()), key(tower())
    assert a == b
    assert len(repr(a)) < 2000


def test_a_key_that_holds_itself() -> None:
    """It is written down, and it is garbage like anything else."""

    class Holder:
        key: Any

        def __repr__(self) -> str:
            return f"<{self.key!r}>"

    holder = Holder()
    holder.key = key(Custom(holder))
    assert repr(holder.key).count("SpecKey") == 2
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_an_error_of_a_keys_own_code() -> None:
    """What `==` of a configuration raises passes through."""

    class Bad:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("mine")

        __hash__ = None  # type: ignore[assignment]  # as Python does it

    with pytest.raises(RuntimeError, match="mine"):
        assert key(Node(Bad())) == key(Node(Bad()))


TREE: Any = (([1.0, "a", 2.0, 3.0],), {})
CLASSES = (float, str, float, float)
PLAIN = ("key", "tag", CLASSES, (), ())


def plan_of(*parts: Any) -> _core.CallPlan:
    """How calls go to a compiled function; in the order of `words`."""
    words = ("key", "tag", "classes", "static_positions", "statics", "donated", "kept")
    return _core.call_plan(**dict(zip(words, parts, strict=False)))


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (1, 2, CLASSES),
        (1, 2, 3, (), ()),
        (1, 2, None, (), ()),
        (1, 2, (), (), ()),
        (1, 2, (float,) * 5, (), ()),
        (1, 2, CLASSES, 3, ()),
        (1, 2, CLASSES, ("text",), (1.0,)),
        (1, 2, CLASSES, (0,), ()),
        (1, 2, CLASSES, (4,), ("a",)),
        (1, 2, CLASSES, (0,), 5),
        (1, 2, CLASSES, (), (), 5),
        (1, 2, CLASSES, (), (), (7,)),
        (1, 2, CLASSES, (), (), None, (-1,)),
    ],
)
def test_a_malformed_plan(parts: Any) -> None:
    """What tells how to call a compiled function is checked: an error, and no crash."""
    plans = _core.call_plans(lambda *args: args, "", "all", None)
    with pytest.raises((TypeError, IndexError, OverflowError)):
        _core.add_plan(plans, key(TREE), plan_of(*parts))
    assert _core.follow_plan(plans, *TREE) is NotImplemented


def test_what_is_no_plan_and_no_call() -> None:
    """Anything else in the place of what the core made is a TypeError."""
    plans, plan = _core.call_plans(print, "", "all", None), plan_of(*PLAIN)
    anything: Any
    for anything in (None, 5, object(), _core.call_key(5)):
        with pytest.raises(TypeError, match="expected CallPlans"):
            _core.add_plan(anything, key(TREE), plan)
        with pytest.raises(TypeError, match="expected CallPlans"):
            _core.forget_plans(anything, None)
        with pytest.raises(TypeError, match="expected CallPlans"):
            _core.follow_plan(anything, *TREE)
        with pytest.raises(TypeError, match="expected a SpecKey"):
            _core.add_plan(plans, anything, plan)
        with pytest.raises(TypeError, match="expected a CallPlan"):
            _core.add_plan(plans, key(TREE), anything)
    anything = "other"
    with pytest.raises(ValueError, match="identity must be"):
        _core.call_plans(print, "", anything, None)


class Compiled:
    """Stands for a compiled function; knows what it was called with."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.plans = _core.call_plans(self.take, "", "all", None)

    def take(self, *args: Any) -> Any:
        self.calls.append(args)
        return _core.make_result(pydag.dag_structure((1, 2)), (5, 6))

    def add(self, plan_key: Any, *parts: Any, tree: Any = TREE) -> None:
        classes = tuple(map(type, pydag.dag_leaves(tree)))
        parts = parts or ((), ())
        _core.add_plan(self.plans, key(tree), plan_of(plan_key, "tag", classes, *parts))

    def call(self, tree: Any = TREE) -> Any:
        return _core.follow_plan(self.plans, *tree)


def test_a_plan() -> None:
    """The function gets the key, the tag, the donated leaves beside it, and the kept ones.

    Where a static leaf is another object, or a leaf is of another class, it isn't called.
    """

    def call(*parts: Any, tree: Any = TREE) -> Any:
        compiled = Compiled()
        compiled.add("key", *parts, tree=tree)
        answers = [compiled.call() for _ in range(3)]  # the structure is known from the second on
        assert answers[1:] == answers[:2]
        calls.append(compiled.calls[-1:])
        return answers[0]

    calls: list[Any] = []
    assert call((), ()) == (5, 6)
    assert call((1,), ("a",), (0,), (2, 3)) == (5, 6)
    assert call((1,), ("b",), (0,), (2, 3)) is NotImplemented
    assert call((1,), ("a",), (0,), (2, 3), tree=(([1.0, "a", 2.0, 3],), {})) is NotImplemented
    assert Compiled().call() is NotImplemented
    assert calls == [
        [("key", "tag", [1.0, "a", 2.0, 3.0])],
        [("key", ("tag", (1.0,)), (2.0, 3.0))],
        [],
        [],
    ]


def test_several_plans_for_a_structure() -> None:
    """The last 64 are kept, of each key the last one: static values may be in rotation."""
    compiled = Compiled()
    keys, texts = [f"key {i}" for i in range(65)], [f"text {i}" for i in range(65)]
    for number in (*range(65), 64, 64):
        compiled.add(keys[number], (1,), (texts[number],), None, (0, 2, 3))
    found = [compiled.call((([1.0, text, 2.0, 3.0],), {})) for text in texts * 2]
    assert found == [NotImplemented, *[(5, 6)] * 64] * 2
    assert [call[0] for call in compiled.calls] == keys[1:] * 2


def test_what_a_plan_watches() -> None:
    """A plan holds as long as all that it watches returns true; no other plan stops it."""

    def says(answer: Any) -> Any:
        if answer == "raises":
            raise RuntimeError("mine")
        return answer

    compiled = Compiled()
    answers: dict[str, Any] = {"old": True, "new": True}

    def add(name: str) -> None:
        watched = (lambda: True, lambda: says(answers[name]))
        plan = _core.call_plan(
            key=name, tag="tag", classes=CLASSES, static_positions=(), statics=(), watched=watched
        )
        _core.add_plan(compiled.plans, key(TREE), plan)

    add("old")
    add("new")
    for answers["new"], answers["old"] in ((1, 0), (0, 1), ([], 1), (1, "raises")):
        assert compiled.call() == (5, 6)
    assert [call[0] for call in compiled.calls] == ["new", "old", "old", "new"]
    answers.update(new=False, old=False)
    assert compiled.call() is NotImplemented
    answers["new"] = "raises"
    with pytest.raises(RuntimeError, match="mine"):
        compiled.call()


def test_leaves_of_static_arguments() -> None:
    """Plain values are found by value and class, others by identity, and only while they hold."""
    plans = _core.call_plans(print, "", "all", None)

    class Leaf:
        def __init__(self, value: Any) -> None:
            self.value = value

    held: list[bool] = [True]
    things: list[Any] = [object(), (object(), 1)]
    values: list[Any] = [1, True, "text", b"text", None, (), (1, "a"), (True, "a"), *things]
    leaves = [Leaf(value) for value in values]
    assert [_core.static_leaf(plans, value) for value in values] == [None] * len(values)
    for leaf in leaves:
        _core.add_static_leaf(plans, leaf, None)
    assert [_core.static_leaf(plans, value) for value in values] == leaves
    again = [int("1"), "t" + "ext"[:3], (int("1"), "a")]
    assert [_core.static_leaf(plans, x) for x in again] == [leaves[0], leaves[2], leaves[6]]
    assert _core.static_leaf(plans, 1.0) is None
    assert _core.static_leaf(plans, (things[0], 1)) is None
    _core.add_static_leaf(plans, leaves[-1], lambda: held[0])
    assert _core.static_leaf(plans, things[1]) is leaves[-1]
    held[0] = False
    assert _core.static_leaf(plans, things[1]) is None
    _core.forget_static_leaves(plans)
    assert [_core.static_leaf(plans, value) for value in values] == [None] * len(values)
    with pytest.raises(AttributeError, match="value"):
        _core.add_static_leaf(plans, 5, None)


def test_a_plan_with_refs_is_for_refs() -> None:
    """It isn't followed where other leaves are there, or nothing can read refs."""
    plan = _core.call_plan(
        key="key",
        tag="tag",
        classes=CLASSES,
        static_positions=(),
        statics=(),
        refs=(0,),
        function=print,
        kept=(0, 1, 2, 3),
    )
    access = _core.ref_access(list, float, float, bool, print)
    for plans in (_core.call_plans(print, "", "all", x) for x in (None, access)):
        _core.add_plan(plans, key(TREE), plan)
        assert _core.follow_plan(plans, *TREE) is NotImplemented


def test_a_plan_is_for_one_structure() -> None:
    """Another structure, or other sharing, is another plan, whatever was called before."""
    compiled = Compiled()
    one: Any = (([[1.0]],), {})
    w = [2.0]
    trees: list[Any] = [TREE, one, ((w, w), {}), (([2.0], [2.0]), {}), (([1.0],), {"x": 1.0})]
    for i, tree in enumerate(trees[:4]):
        compiled.add(i, tree=tree)
    for tree in trees * 2 + [tree for tree in trees for _ in range(3)]:
        compiled.call(tree)
    order = [0, 1, 2, 3] * 2 + [i for i in range(4) for _ in range(3)]
    assert [call[0] for call in compiled.calls] == order
    assert compiled.call(trees[4]) is NotImplemented


def test_forgotten_plans() -> None:
    """What was forgotten isn't called any more, whether it was called last or not."""
    compiled = Compiled()
    other: Any = (([1.0],), {})
    for _ in range(2):
        compiled.add("key")
        compiled.add("key", tree=other)
        assert [compiled.call(), compiled.call(), compiled.call(other)] == [(5, 6)] * 3
        _core.forget_plans(compiled.plans, key(other))
        _core.forget_plans(compiled.plans, key(other))
        assert [compiled.call(other), compiled.call(), compiled.call()][1:] == [(5, 6)] * 2
        assert compiled.call(other) is NotImplemented
        _core.forget_plans(compiled.plans, None)
        assert compiled.call() is NotImplemented


def test_a_class_that_is_registered_after_calls() -> None:
    """A structure that was called last is no longer taken for known."""

    class Later:
        def __init__(self) -> None:
            self.x = 1.0

    compiled, later = Compiled(), Later()
    tree: Any = (([later],), {})
    compiled.add("key", tree=tree)
    assert [compiled.call(tree) for _ in range(3)] == [(5, 6)] * 3
    pydag.register_fields(Later)
    assert compiled.call(tree) is NotImplemented
    compiled.add("other", tree=tree)
    assert [compiled.call(tree) for _ in range(3)] == [(5, 6)] * 3
    assert compiled.calls == [("key", "tag", [later])] * 3 + [("other", "tag", [1.0])] * 3


def test_an_order_that_is_set_after_calls() -> None:
    """The same where optree is told to keep the insertion order of dicts in the namespace."""
    called: list[Any] = []
    plans = _core.call_plans(lambda *args: called.append(args[2]), "kept order", "all", None)
    tree: Any = (({"b": 1.0, "a": 2.0},), {})
    _core.add_plan(
        plans,
        _core.spec_key(pydag.dag_structure(tree)),
        plan_of("key", "tag", (float, float), (), ()),
    )
    for _ in range(3):
        assert _core.follow_plan(plans, *tree) is None  # what the function returned
    with optree.dict_insertion_ordered(True, namespace="kept order"):
        assert _core.follow_plan(plans, *tree) is NotImplemented
    assert called == [[2.0, 1.0]] * 3


def test_a_plan_that_goes_while_it_is_followed() -> None:
    """A function may forget the plan by which it is being called."""

    def take(*args: Any) -> Any:
        _core.forget_plans(plans, None)
        gc.collect()
        return _core.make_result(pydag.dag_structure([1]), args[2][:1])

    plans = _core.call_plans(take, "", "all", None)
    for _ in range(4):
        plan = plan_of("key", ["tag"], CLASSES, (1,), ("a",), (0,), (2, 3))
        _core.add_plan(plans, key(TREE), plan)
        assert _core.follow_plan(plans, *TREE) == [2.0]
        assert _core.follow_plan(plans, *TREE) is NotImplemented


class Asked:
    """A node that its own functions open; `act` runs while it is opened."""

    def __init__(self, x: Any, note: Any, act: Any = None) -> None:
        self.x, self.note, self.act = x, note, act


def flatten_asked(node: Asked) -> Any:
    if node.act is not None:
        node.act()
    return (node.x,), tuple(node.note)


@pytest.fixture
def asked() -> Iterator[None]:
    pydag.register_pydag_node(Asked, flatten_asked, lambda note, x: Asked(x[0], note))
    yield
    pydag.unregister_pydag_node(Asked)


def call_of(node: Asked) -> Any:
    return ([node, 2.0],), {}


@pytest.mark.usefixtures("asked")
def test_a_call_follows_a_structure_with_nodes_that_are_asked() -> None:
    """Each node is asked once, and what it says decides which plan holds."""
    asked: list[int] = []
    compiled = Compiled()

    def call(note: Any) -> Any:
        asked.clear()
        answer = compiled.call(call_of(Asked(1.0, note, lambda: asked.append(1))))
        assert asked == [1]
        return answer

    compiled.add("one", tree=call_of(Asked(1.0, [1, "a"])))
    compiled.add("other", tree=call_of(Asked(1.0, [2, "a"])))
    for note, key_of_call in (([1, "a"], "one"), ([2, "a"], "other"), ([2, "a"], "other")):
        assert call(note) == (5, 6)
        assert compiled.calls.pop()[0] == key_of_call
    assert call([True, "a"]) is NotImplemented  # equal to 1, and another value
    assert call([3, "a"]) is NotImplemented
    assert call([2, "a"]) == (5, 6)
    node = Asked(1.0, [2, "a"])
    assert compiled.call((([node, node],), {})) is NotImplemented


@pytest.mark.usefixtures("asked")
def test_what_a_node_does_while_a_call_follows_it() -> None:
    """A node that forgets the plans, calls again, empties caches, registers or raises."""
    compiled = Compiled()

    class Later:
        pass

    def again() -> None:
        compiled.call(call_of(Asked(1.0, [2])))
        gc.collect()

    def register() -> None:
        pydag.register_fields(Later, namespace="asked later")
        pydag.clear_caches()

    def fail() -> None:
        raise ZeroDivisionError("while it is opened")

    def prepare() -> None:
        _core.forget_plans(compiled.plans, None)
        for note in (1, 2):
            compiled.add(f"key {note}", tree=call_of(Asked(1.0, [note])))
        for _ in range(3):
            assert compiled.call(call_of(Asked(1.0, [1]))) == (5, 6)

    prepare()
    assert compiled.call(call_of(Asked(1.0, [1], again))) == (5, 6)
    assert compiled.calls[-1][0] == "key 1"
    prepare()
    assert compiled.call(call_of(Asked(1.0, [1], register))) == (5, 6)
    prepare()
    with pytest.raises(ZeroDivisionError, match="while it is opened"):
        compiled.call(call_of(Asked(1.0, [1], fail)))
    prepare()
    forget = lambda: _core.forget_plans(compiled.plans, None)  # noqa: E731 (an action)
    compiled.call(call_of(Asked(1.0, [1], forget)))
    assert compiled.call(call_of(Asked(1.0, [1]))) is NotImplemented


def test_a_cycle_through_plans() -> None:
    """Is collected: what is static may hold the compiled function."""

    class Holder:
        plans: Any

        def take(self, *args: Any) -> Any:
            return self

    holder = Holder()
    holder.plans = _core.call_plans(holder.take, "", "all", None)
    _core.add_plan(holder.plans, key(TREE), plan_of(_core.call_key(holder), *PLAIN[1:]))
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_a_call_key() -> None:
    """It is equal to itself alone, has a hash of its own, and asks its value for nothing."""

    class Value:
        def __hash__(self) -> int:
            raise AssertionError("a value is hashed")

        def __eq__(self, other: object) -> bool:
            raise AssertionError("values are compared")

    one, same = Value(), Value()
    a, b = map(_core.call_key, (one, same))
    assert hash(a) != hash(b)
    assert [a == x for x in (a, b, 5)] == [True, False, False]
    assert [a != x for x in (a, b, 5)] == [False, True, True]
    assert a.value is one
    assert {a: 5, b: 6}[a] == 5
    assert repr(_core.call_key("text")) == "'text'"
    with pytest.raises(TypeError):
        a < b  # type: ignore[operator]  # noqa: B015 (that is tested)


def test_what_a_tree_is_called() -> None:
    """Errors of a walk name the root as they are told to: one, or one for each child."""
    cycle: list[Any] = [1.0]
    cycle.append({"x": cycle})
    with pytest.raises(pydag.CycleError, match=r": result\[1\]\['x'\] is the list at result\n"):
        _core.flatten_at(cycle, "result")
    with pytest.raises(pydag.CycleError, match=r": kwargs\[1\]\['x'\] is the list at kwargs\n"):
        _core.flatten_at(((), cycle), ("args", "kwargs"))
    with pytest.raises(pydag.CycleError, match=r": args\[0\]\[1\]\['x'\] is the list at args\[0\]"):
        _core.follow_plan(_core.call_plans(print, "", "all", None), (cycle,), {})
    assert _core.flatten_at([1, 2], "result") == pydag.dag_flatten([1, 2])
    for root in (None, 5, ["args"]):
        with pytest.raises(TypeError, match="root must be"):
            _core.flatten_at([1], root)  # type: ignore[arg-type]  # that is tested

    class Fails:
        pass

    def fail(_: Any) -> Any:
        raise KeyError("mine")

    pydag.register_pydag_node(Fails, fail, lambda *_: Fails())
    with pytest.raises(KeyError, match="mine") as caught:
        _core.flatten_at(({"a": Fails()}, {}), ("args", "kwargs"))
    assert caught.value.__notes__ == ["raised while flattening args['a']"]


def test_a_result() -> None:
    """It is taken apart into what it was made of, and built; a Dag is built by its `tree`."""
    spec = pydag.dag_structure([1, {"a": 2}])
    result = _core.make_result(spec, (5, 6))
    assert _core.open_result(result) == ((5, 6), spec)
    assert _core.build_result(result) == [5, {"a": 6}]

    class Standing:
        tree = "the tree"

    assert _core.build_result(Standing()) == "the tree"
    with pytest.raises(ValueError, match=r"Too few leaves for PyDagSpec; expected: 2, got: 1\."):
        _core.build_result(_core.make_result(spec, [5]))
    wrong: list[Any] = [
        lambda: _core.make_result(result, ()),  # type: ignore[arg-type]  # that is tested
        lambda: _core.make_result(spec, 3),  # type: ignore[arg-type]  # that is tested
        lambda: _core.open_result(spec),  # type: ignore[arg-type]  # that is tested
    ]
    for call in wrong:
        with pytest.raises(TypeError, match="got "):
            call()


def test_a_result_in_a_cycle_is_collected() -> None:
    """A result is held by what it holds, and goes when nobody else holds either."""
    leaves: list[Any] = []
    leaves.append(_core.make_result(pydag.dag_structure([1]), leaves))

    class WatchedConstants:
        pass

    watched = WatchedConstants()
    leaves.append(watched)
    gone = weakref.ref(watched)
    del leaves, watched
    gc.collect()
    assert gone() is None


def test_plans_that_somebody_changed() -> None:
    """What is put among the plans through the collector isn't followed, nor another tree's."""
    small: Any = (([1.0],), {})
    compiled = Compiled()
    compiled.add("key", (1,), ("a",), (0,), (2, 3))
    by_key = next(each for each in gc.get_referents(compiled.plans) if type(each) is dict)
    good = by_key[key(TREE)]
    for bad in (5, None, (5,), [*good], (*good, None)):
        by_key[key(TREE)] = bad
        assert compiled.call() is NotImplemented
    by_key[key(small)] = good
    assert compiled.call(small) is NotImplemented
    by_key[key(TREE)] = good
    assert compiled.call() == (5, 6)


class Statics:
    """Leaves of a result that JAX doesn't trace."""

    def __init__(self, positions: Any, values: Any) -> None:
        self.positions, self.values = positions, values


def test_a_result_with_static_leaves() -> None:
    """They are put in their places among the leaves, also beside objects of the caller's."""
    spec = pydag.dag_structure([0, 1, {"a": 2, "b": 3}])
    statics = Statics((0, 3), ("first", "last"))
    result = _core.make_result((spec, None, statics), (5, 6))
    assert _core.open_result(result) == ((5, 6), (spec, None, statics))
    assert _core.build_result(result) == ["first", 5, {"a": 6, "b": "last"}]
    given = _core.make_result((spec, (1, -1), statics), [6])
    assert _core.fill_result(given, ("zero", "one"), None) == [
        "first",
        "one",
        {"a": 6, "b": "last"},
    ]


@pytest.mark.parametrize(
    ("positions", "values", "error", "text"),
    [
        ((0,), ("a", "b"), ValueError, "a value for each position"),
        ([0], ("a",), TypeError, "expected a tuple"),
        ((0, 9), ("a", "b"), IndexError, "too few leaves"),
        ((3, 0), ("a", "b"), IndexError, "too few leaves"),
        (("x", 1), ("a", "b"), TypeError, "integer"),
    ],
    ids=["numbers differ", "list", "out of range", "descending", "no number"],
)
def test_static_leaves_that_fit_nowhere(
    positions: Any, values: Any, error: type[Exception], text: str
) -> None:
    """They are refused."""
    spec = pydag.dag_structure([0, 1, 2, 3])
    with pytest.raises(error, match=text):
        _core.build_result(_core.make_result((spec, None, Statics(positions, values)), (5, 6)))
