"""`SpecKey`: a spec as a key, which tells dicts of another order and values by type apart."""

from __future__ import annotations

import collections
import gc
import pickle
import weakref
from typing import Any

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


@pytest.mark.parametrize(
    "recipe",
    [
        5,
        (),
        (1, 2, (), (), None),
        (1, 2, (), (), None, None),
        (1, 2, 3, (), None, None, (), ()),
        (1, 2, None, (), None, None, (), ()),
        (1, 2, (), (), 5, None, (), ()),
        (1, 2, (), (), (7,), None, (), ()),
        (1, 2, (), (), None, (-1,), (), ()),
        (1, 2, ("text",), (1.0,), None, None, (), ()),
        (1, 2, (), (), None, None, None, ()),
        (1, 2, (), (), None, None, (), 5),
        (1, 2, (), (), None, None, (9,), (float,)),
        (1, 2, (), (), None, None, ("text",), (float,)),
    ],
)
def test_a_malformed_recipe(recipe: Any) -> None:
    """What tells how to call a compiled function is checked: an error, and no crash."""
    tree: Any = (([1.0],), {})
    with pytest.raises((TypeError, IndexError, OverflowError)):
        _core.call_flat(lambda *args: args, {key(tree): recipe}, tree, "", "all")


def test_a_recipe() -> None:
    """The function gets the key, the tag, the donated leaves beside it, and the kept ones.

    Where a static leaf is another object, or a leaf is of another class, it isn't called.
    """
    tree: Any = (([1.0, "a", 2.0, 3.0],), {})
    spec = pydag.dag_structure((1, 2))
    calls: list[Any] = []

    def function(*args: Any) -> Any:
        calls.append(args)
        return _core.make_result(spec, (5, 6))

    def call(*recipe: Any) -> Any:
        return _core.call_flat(function, {key(tree): recipe}, tree, "", "all")

    assert call("key", "tag", (), (), None, None, (), ()) == (5, 6)
    assert call("key", "tag", (1,), ("a",), (0,), (2, 3), (0, 2), (float, float)) == (5, 6)
    assert call("key", "tag", (1,), ("b",), (0,), (2, 3), (), ()) is NotImplemented
    assert call("key", "tag", (1,), ("a",), (0,), (2, 3), (0, 2), (float, int)) is NotImplemented
    assert call("key", "tag", (1,), ("a",), (0,), (2, 3), (0, 2), (float,)) is NotImplemented
    assert _core.call_flat(function, {}, tree, "", "all") is NotImplemented
    assert calls == [("key", "tag", [1.0, "a", 2.0, 3.0]), ("key", ("tag", (1.0,)), (2.0, 3.0))]


def test_what_a_tree_is_called() -> None:
    """Errors of a walk name the root as they are told to: one, or one for each child."""
    cycle: list[Any] = [1.0]
    cycle.append({"x": cycle})
    with pytest.raises(pydag.CycleError, match=r": result\[1\]\['x'\] is the list at result\n"):
        _core.flatten_at(cycle, "", "all", "result")
    with pytest.raises(pydag.CycleError, match=r": kwargs\[1\]\['x'\] is the list at kwargs\n"):
        _core.flatten_at(((), cycle), "", "all", ("args", "kwargs"))
    with pytest.raises(pydag.CycleError, match=r": args\[0\]\[1\]\['x'\] is the list at args\[0\]"):
        _core.call_flat(print, {}, ((cycle,), {}), "", "all")
    assert _core.flatten_at([1, 2], "", "all", "result") == pydag.dag_flatten([1, 2])
    for root in (None, 5, ["args"]):
        with pytest.raises(TypeError, match="root must be"):
            _core.flatten_at([1], "", "all", root)  # type: ignore[arg-type]  # that is tested

    class Fails:
        pass

    def fail(_: Any) -> Any:
        raise KeyError("mine")

    pydag.register_pydag_node(Fails, fail, lambda *_: Fails())
    with pytest.raises(KeyError, match="mine") as caught:
        _core.flatten_at(({"a": Fails()}, {}), "", "all", ("args", "kwargs"))
    assert caught.value.__notes__ == ["raised while flattening args['a']"]
