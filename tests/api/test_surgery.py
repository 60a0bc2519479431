# SPDX-License-Identifier: Apache-2.0
"""Tying, untying, replacing, putting together and updating in place."""

import copy
import dataclasses
import re
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from functools import partial
from typing import Any

import numpy as np
import pytest
import reference_surgery
import strategies
from hypothesis import given
from hypothesis import strategies as st
from isomorphism import difference
from operations import doubled
from registering import Box, Part

import pydag
from pydag import (
    dag_combine,
    dag_flatten,
    dag_leaves,
    dag_replace,
    dag_structure,
    dag_update,
    retie,
    tie,
    untie,
)
from pydag.arrays.memory import memory_of

attr: Any = pytest.importorskip("attr")
attrs: Any = pytest.importorskip("attrs")

Pair = namedtuple("Pair", "x y")


@pydag.register_fields(data_fields=("a", "b"), meta_fields=("m",))
class Slotted:
    __slots__ = ("a", "b", "m")

    def __init__(self, a: Any, b: Any, m: Any = 0) -> None:
        self.a, self.b, self.m = a, b, m


def array(*numbers: float) -> Any:
    """A leaf with identity."""
    return np.array(numbers)


plain_dags = strategies.dags(strategies.BUILTIN)

CONTAINERS: dict[str, Any] = {
    "list": lambda a, b: [a, b],
    "tuple": lambda a, b: (a, b),
    "dict": lambda a, b: {"y": a, "x": b},
    "OrderedDict": lambda a, b: OrderedDict(y=a, x=b),
    "defaultdict": lambda a, b: defaultdict(int, y=a, x=b),
    "deque": lambda a, b: deque([a, b], 5),
    "namedtuple": Pair,
    "fields": lambda a, b: Part(y=a, x=b),
    "slots": Slotted,
    "callback": Box,
    "struct sequence": lambda a, b: time.struct_time((a, b, *range(7))),
}


def ends(tree: Any) -> tuple[Any, Any, Any, Any]:
    """The paths of, and what stands at, the first two children."""
    paths, leaves, _ = pydag.dag_flatten_with_path(tree, lambda x: x is not tree, identity="nodes")
    return paths[0], paths[1], leaves[0], leaves[1]


@pytest.mark.parametrize("name", CONTAINERS)
def test_tie_in_every_kind(name: str) -> None:
    """In a container of any kind, what stands at one place can stand at another too."""
    v, w = array(1), array(2)
    tree = CONTAINERS[name](v, w)
    first, second, kept, gone = ends(tree)
    new = tie(tree, first, second)
    assert ends(new)[2] is kept
    assert ends(new)[3] is kept
    assert ends(tree)[2:] == (kept, gone)


@pytest.mark.parametrize("name", CONTAINERS)
def test_untie_in_every_kind(name: str) -> None:
    """In a container of any kind, one place of a shared leaf can have a copy of its own."""
    w = array(1)
    tree = CONTAINERS[name](w, w)
    first, second, _, _ = ends(tree)
    new = untie(tree, second)
    assert ends(new)[2] is w
    assert ends(new)[3] is not w
    assert ends(new)[3].tolist() == [1]
    assert ends(untie(tree, first))[3] is w


def test_an_edit_through_a_shared_node_shows_at_all_of_its_paths() -> None:
    """A path through a shared container names a place in that container."""
    layer = {"w": array(1), "v": array(2)}
    new = tie([layer, layer], (0, "w"), (1, "v"))
    assert new[0] is new[1]
    assert new[0]["v"] is new[0]["w"]


def test_untying_all_places_leaves_the_object_at_the_first() -> None:
    """Where all places of an object are named, the first one keeps it."""
    w = array(1)
    new = untie([w, w, w], (2,), (0,), (1,))
    assert new[2] is w
    assert len({id(x) for x in new}) == 3


def test_untie_copies_what_is_below() -> None:
    """A copied container has copies of all that it holds, tied among themselves as they were."""
    w = array(1)
    layer = [w, w, {"inner": w}]
    new = untie({"a": layer, "b": layer, "c": w}, ("b",))
    assert new["a"][0] is new["a"][1] is new["a"][2]["inner"] is new["c"] is w
    assert new["b"][0] is new["b"][1] is new["b"][2]["inner"]
    assert new["b"][0] is not w


def test_a_tie_into_a_tuple_changes_the_tuple_at_that_path_alone() -> None:
    """A tuple that stands at two places is two tuples: the other one stays as it is."""
    v, w = array(1), array(2)
    pair = (v, w)
    new = tie([pair, pair], (0, 0), (0, 1))
    assert new[0][1] is v
    assert new[1][1] is w


@pytest.mark.parametrize("path", [("x",), ("a", 0), ("a", "b", "c"), (0,)])
def test_a_path_that_leads_nowhere(path: Any) -> None:
    """The error names the path, and what there is where it ends."""
    tree = {"a": {"b": [1]}}
    for change in (partial(tie, tree, path, ("a",)), partial(untie, tree, path)):
        with pytest.raises(ValueError, match="nothing at the path") as caught:
            change()
        assert repr(path) in str(caught.value)
        assert re.search(r"has (the child|no children)", str(caught.value))


def test_parts_of_other_structure_are_not_tied() -> None:
    """The error names both places and what stands there."""
    with pytest.raises(ValueError, match="must have the same structure") as caught:
        tie({"a": {"w": [1]}, "b": {"w": (1,)}}, ("a",), ("b",))
    assert "tree['a']['w']: list of 1" in str(caught.value)
    assert "tree['b']['w']: tuple of 1" in str(caught.value)


def test_a_tie_that_makes_a_cycle() -> None:
    """An object can't be tied to a part of itself, also through a tuple and a shared object."""
    for tree in ({"a": [1]}, [[1]], ([1],), [([1],)]):
        path = pydag.dag_paths(tree)[0][:-1]
        with pytest.raises(pydag.CycleError, match="contain itself"):
            tie(tree, (), path)


def test_paths_must_be_tuples() -> None:
    """A string or a list is no path: it could be meant in two ways."""
    for path in ("a", ["a"], 0):
        with pytest.raises(TypeError, match="a path is a tuple"):
            tie({"a": 1, "b": 2}, path, ("b",))  # type: ignore[arg-type]  # that is the point


@strategies.thorough
@given(plain_dags, st.data())
def test_untie_then_retie_gives_the_sharing_back(tree: Any, data: st.DataObject) -> None:
    """What was untied at any places can be retied by the spec, with all leaves equal."""
    leaves, spec = dag_flatten(tree)
    paths = [path for shared in spec.shared for path in shared.paths]
    chosen = data.draw(st.lists(st.sampled_from(paths), max_size=4)) if paths else []
    apart = untie(tree, *chosen)
    again = retie(spec, apart, lambda a, b: a)
    assert dag_structure(again) == spec
    assert len(dag_leaves(again)) == len(leaves)


def test_retie_refuses_copies_that_differ() -> None:
    """Without `combine`, two copies that differ are an error with both paths."""
    w = array(1)
    spec = dag_structure({"a": w, "b": [w]})
    assert dag_leaves(retie(spec, {"a": array(1), "b": [array(1)]}))[0].tolist() == [1]
    others = [array(2), array(1).astype("float32"), array(1, 1), 1.0, None]
    for other in others:
        with pytest.raises(pydag.SharingError) as caught:
            retie(spec, {"a": array(1), "b": [other]})
        assert "tree['a']" in str(caught.value)
        assert "tree['b'][0]" in str(caught.value)


def test_retie_of_a_spec_in_the_place_of_the_tree() -> None:
    """Where a structure and a tree are swapped, the error says how to swap them."""
    with pytest.raises(TypeError, match=r"Swap them: retie\(spec, tree\)"):
        retie([1.0], dag_structure([1.0]))  # type: ignore[arg-type]  # that is the point


def test_retie_takes_nan_for_equal_and_signed_zeros_apart() -> None:
    """Arrays are compared by their bytes."""
    w = array(1)
    spec = dag_structure([w, w])
    assert np.isnan(retie(spec, [array(np.nan), array(np.nan)])[0][0])
    with pytest.raises(pydag.SharingError):
        retie(spec, [array(0.0), array(-0.0)])


def test_retie_combines_distinct_copies_in_order() -> None:
    """`combine` folds distinct copies, equal ones too; one object met twice is one."""
    w = array(1)
    spec = dag_structure([w, [w], w, w])
    one, two, three = array(1), array(10), array(100)
    assert retie(spec, [one, [two], one, three], np.add)[0].tolist() == [111]
    texts = retie(spec, [one, [two], two, three], lambda p, q: [*p, *q])
    assert texts[3] == [1, 10, 100]
    assert texts[0] is texts[1][0] is texts[2] is texts[3]
    assert retie(spec, [one, [array(1)], one, one], np.add)[0].tolist() == [2]


def test_replace_puts_the_very_object() -> None:
    """`new` stands, as it is, at every place of `old`; a container is not opened."""
    layer, new = [array(1)], {"other": object()}
    tree = {"a": layer, "b": (layer, [layer]), "c": [array(1)]}
    out = dag_replace(tree, layer, new)
    assert out["a"] is out["b"][0] is out["b"][1][0] is new
    assert out["c"][0] is tree["c"][0]
    assert tree["a"] is layer


@pytest.mark.parametrize("old", [1.0, "text", None, (1, 2), int, time.gmtime(0)])
def test_a_value_cannot_be_replaced(old: Any) -> None:
    """A value has no identity, so it is refused even where an equal one stands in the tree."""
    with pytest.raises(ValueError, match="no identity"):
        dag_replace([old], old, 2)


@strategies.thorough
@given(plain_dags, st.data())
def test_halves_combine_to_the_whole(tree: Any, data: st.DataObject) -> None:
    """Two halves with None for what the other one has give the tree, sharing included."""
    leaves, spec = dag_flatten(tree, none_is_leaf=True)
    chosen = [data.draw(st.booleans()) for _ in leaves]
    left = spec.unflatten([x if take else None for x, take in zip(leaves, chosen, strict=True)])
    right = spec.unflatten([None if take else x for x, take in zip(leaves, chosen, strict=True)])
    assert difference(dag_combine(left, right), tree) == ""


@pytest.mark.parametrize("name", [n for n in CONTAINERS if n != "callback"])
def test_update_writes_into_the_containers(name: str) -> None:
    """Containers stay the objects that they are; tuples are put anew into what holds them."""
    v, w = array(1), array(2)
    inner = CONTAINERS[name](v, v)
    target = {"a": inner, "b": [inner]}
    source = pydag.dag_map(lambda _: w, target)
    holder = target["b"]
    assert dag_update(target, source) is target
    assert target["b"] is holder
    assert [x is w for x in dag_leaves(target) if isinstance(x, np.ndarray)] == [True]
    is_value = isinstance(inner, tuple)
    assert (target["a"] is inner) is not is_value
    assert ends(target["a"])[2:] == (w, w)


@pytest.mark.parametrize("target", [1.0, np.ones(2), (1, [2]), None, Pair(1, 2)])
def test_a_root_that_cannot_be_changed(target: Any) -> None:
    """A leaf or a tuple as the root is a TypeError: there is nothing to write into."""
    with pytest.raises(TypeError, match="in place"):
        dag_update(target, copy.copy(target))


def test_update_is_all_or_nothing() -> None:
    """A callback node that would have to change is a TypeError, and nothing was written."""
    target = {"a": [1], "b": Box(2)}
    with pytest.raises(TypeError, match=r"flatten function(.|\n)*tree\['b'\]"):
        dag_update(target, {"a": [10], "b": Box(20)})
    assert target["a"] == [1]
    kept = Box([2])
    target = {"a": [1], "b": kept}
    dag_update(target, {"a": [10], "b": Box([20])})
    assert target["b"] is kept
    assert kept.children == ([20],)
    with pytest.raises(ValueError, match="Expected"):
        dag_update({"a": [1], "b": [2]}, {"a": [10], "b": 3})


def test_update_undoes_what_it_wrote() -> None:
    """Where a write fails, those before it are undone."""

    class Key:
        writes = -1  # how often the hash may still be asked; negative: always

        def __hash__(self) -> int:
            if Key.writes == 0:
                raise ZeroDivisionError
            Key.writes -= 1
            return 1

    key = Key()
    for writes in range(6):
        target, source = [[1], {key: 2}, [3]], [[10], {key: 20}, [30]]
        Key.writes = writes
        try:
            dag_update(target, source)
            done = True
        except ZeroDivisionError:
            done = False
        Key.writes = -1
        assert target == (source if done else [[1], {key: 2}, [3]])


def test_update_with_two_answers_for_one_object() -> None:
    """A source that holds two objects where the target has one is a SharingError."""
    w = array(1)
    target = [w, w]
    with pytest.raises(pydag.SharingError):
        dag_update(target, [array(2), array(3)])
    assert target[0] is w


@pytest.mark.parametrize("depth", [60])
def test_linear_on_sixtyfold_sharing(depth: int) -> None:
    """2**60 paths: each operation takes time linear in the sixty lists."""
    w = array(1)
    tree = doubled(depth, w)
    start = time.thread_time()
    assert dag_structure(tie(tree, (0,), (1,))) == dag_structure(tree)
    apart = untie(tree, (1,))
    assert dag_structure(apart).num_nodes > depth
    assert dag_structure(retie(dag_structure(tree), apart)) == dag_structure(tree)
    assert dag_leaves(dag_replace(tree, w, 2.0)) == [2.0, 2.0]
    dag_update(tree, dag_replace(tree, w, array(5)))
    assert dag_leaves(tree)[0].tolist() == [5]
    dag_combine(tree, tree)
    assert time.thread_time() - start < 1


def test_replacing_what_is_not_there() -> None:
    """An equal object is another object."""
    with pytest.raises(ValueError, match="doesn't hold"):
        dag_replace([array(1)], array(1), 2)


@pytest.mark.parametrize("name", CONTAINERS)
def test_untie_of_a_whole_tree(name: str) -> None:
    """Without paths, containers and leaves of every kind get an object at each place."""
    w = array(1)
    layer = CONTAINERS[name](w, w)
    new = untie({"a": layer, "b": [layer, w]})
    assert pydag.shared_objects(new) == []
    assert [x.tolist() for x in dag_leaves(new) if isinstance(x, np.ndarray)] == [[1]] * 5
    assert ends(new["a"])[2] is w
    assert ends(layer)[2] is ends(layer)[3] is w


def test_untie_of_a_state() -> None:
    """The state of an environment that starts with parts that are one object comes apart."""
    body = {"q": array(1), "v": array(2)}
    obs = array(3)
    state = {"body": body, "obs": obs, "info": {"first_body": body, "first_obs": obs}}
    new = untie(state)
    assert new["body"]["q"] is not new["info"]["first_body"]["q"]
    assert new["obs"] is not new["info"]["first_obs"]
    assert state["body"] is state["info"]["first_body"]
    part = untie(state, ("info",))
    assert pydag.shared_objects(part) == []
    assert part["obs"] is obs


@pytest.mark.parametrize("tree", [1, None, [], [1, [2]], {"a": array(1), "b": [array(1)]}, ([],)])
def test_untie_of_a_tree_without_sharing(tree: Any) -> None:
    """Whether a state is tied may not be known: a tree without ties comes back equal."""
    assert difference(untie(tree), tree) == ""


@strategies.thorough
@given(plain_dags, strategies.options)
def test_untie_agrees(tree: Any, options: Any) -> None:
    """The tree without paths' sharing is the unfolded one, with copies of the leaves."""
    options = {**options, "namespace": "", "identity": "all"}
    expected = reference_surgery.untie(tree, **options)
    got = untie(tree, **options)
    kept = {**options, "identity": "nodes"}
    assert dag_structure(got, **kept) == dag_structure(expected, **kept)
    copied = dag_leaves(got, **options)
    assert len({id(x) for x in copied if type(x) is np.ndarray}) == sum(
        type(x) is np.ndarray for x in dag_leaves(expected, **kept)
    )


def test_untie_of_what_would_be_too_large() -> None:
    """2**60 places: a ValueError in no time, which names the cure."""
    start = time.thread_time()
    with pytest.raises(ValueError, match=r"more than 16777216 (.|\n)*untie\(tree, path\)"):
        untie(doubled(60, array(1)))
    assert time.thread_time() - start < 1


def test_untie_of_paths_through_each_other() -> None:
    """What is untied in an object is untied in its copies, and too many copies are an error."""
    tree = doubled(2, array(1))
    at_once = untie(tree, (1,), (0, 1))
    assert at_once[1][0] is not at_once[1][1]
    in_turn = untie(untie(tree, (1,)), (0, 1))
    assert in_turn[1][0] is in_turn[1][1]
    paths = [(0,) * i + (1,) for i in range(30)]
    assert len(dag_leaves(untie(doubled(30, array(1)), *paths[:8]))) == 256
    with pytest.raises(ValueError, match=r"lead through each other, .* than 1048576 copies\n"):
        untie(doubled(30, array(1)), *paths)


def test_untie_with_identity_of_nodes() -> None:
    """Leaves have no identity then: those at several places stay, outside of what is copied."""
    w = array(1)
    layer = [w]
    new = untie([w, w, layer, layer], identity="nodes")
    assert new[0] is new[1] is new[2][0] is w
    assert new[2] is not new[3]
    assert new[3][0] is not w


@pytest.mark.parametrize(
    ("tree", "paths", "complaint"),
    [
        ({"a": [1.0], "b": 2}, [("a",)], r"what is at tree\['a'\] .*\n.*untie\(tree\), without"),
        ({"a": array(1)}, [("a",), ("a",)], r"tree\['a'\]"),
        ([1.0, 1.0], [(0,), (1,)], r"tree\[0\]"),
        ([(w := array(2)), [w]], [()], "what is at tree is"),
        ([[(v := array(3)), v], 1], [(0,)], r"tree\[0\]"),
        ([(x := [array(4)]), x], [(0, 0)], r"tree\[0\]\[0\] .*\n  It lies within tree\[0\], which"),
        ([(y := [[array(4)]]), {"k": y}], [(1, "k", 0)], r"It lies within tree\[0\], which"),
    ],
)
def test_an_untie_that_would_do_nothing(tree: Any, paths: Any, complaint: str) -> None:
    """Paths to what isn't shared are a mistake: the error names the path, and what to write."""
    with pytest.raises(ValueError, match=f"nothing is untied: (.|\n)*{complaint}"):
        untie(tree, *paths)


def test_untie_of_a_part_whose_leaves_are_shared() -> None:
    """A container that isn't shared itself: what is below it gets copies, also beside others."""
    w, v = array(1), array(2)
    tree = {"enc": [w, [v, v]], "dec": {"w": w}, "z": v}
    new = untie(tree, ("enc",), ("dec",))
    assert new["z"] is v
    assert len({id(x) for x in (new["enc"][0], new["dec"]["w"], w)}) == 3
    assert new["enc"][1][0] is new["enc"][1][1] is not v


@dataclasses.dataclass(frozen=True)
class Record:
    """Frozen by dataclasses."""

    x: Any


@dataclasses.dataclass(frozen=True, slots=True)
class SlottedRecord:
    """Frozen, without a `__dict__`."""

    x: Any


class Inherited(Record):
    """Frozen by its base."""


@attrs.frozen
class Attrs:
    """Frozen by attrs."""

    x: Any


@attr.s(frozen=True, slots=False)
class OldAttrs:
    """Frozen by attrs' older function."""

    x: Any = attr.ib()


FROZEN: list[Any] = [Record, SlottedRecord, Inherited, Attrs, OldAttrs]
for _cls in FROZEN:
    pydag.register_fields(_cls)


@pytest.mark.parametrize("cls", FROZEN)
def test_update_refuses_frozen_instances(cls: Any) -> None:
    """Frozen instances may be keys of a dict by their content; the error names path and class."""
    root = cls(1.0)
    with pytest.raises(TypeError, match=rf"{cls.__name__}'> is frozen(.|\n)*at tree$"):
        dag_update(root, cls(2.0))
    target = {"a": [1], "b": [cls((1.0, 2.0))]}
    with pytest.raises(TypeError, match=r"frozen(.|\n)*dag_map(.|\n)*at tree\['b'\]\[0\]"):
        dag_update(target, {"a": [2], "b": [cls((1.0, 3.0))]})
    assert target["a"] == [1]
    assert root.x == 1.0


@pytest.mark.parametrize("cls", FROZEN)
def test_update_of_what_a_frozen_instance_holds(cls: Any) -> None:
    """A list in it can be changed: the instance then holds the same object as before."""
    inner = [1.0]
    target = [cls(inner)]
    kept = target[0]
    dag_update(target, [cls([2.0])])
    assert target[0] is kept
    assert inner == [2.0]


def test_update_of_instances_that_are_not_frozen() -> None:
    """Dataclasses, attrs classes and namedtuples in a list are updated."""

    @pydag.register_fields
    @dataclasses.dataclass
    class Plain:
        x: Any

    @pydag.register_fields
    @attrs.define
    class Defined:
        x: Any

    made: Any = Defined
    target = [Plain(1), made(2), Pair(3, 4)]
    dag_update(target, [Plain(10), made(20), Pair(30, 40)])
    assert target == [Plain(10), made(20), Pair(30, 40)]


@pydag.register_fields
class Named:
    """Holds what it is given."""

    def __init__(self, blocks: Any, head: Any) -> None:
        self.blocks, self.head = blocks, head


BLOCK = {"weight": [1.0]}
NAMED = Named([BLOCK, {"weight": [2.0]}], {"w": BLOCK})


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("blocks.0", ("blocks", 0)),
        ("blocks[1]", ("blocks", 1)),
        ("blocks/0/weight", ("blocks", 0, "weight")),
        ("model.blocks.0.weight", ("blocks", 0, "weight")),
        ("blocks[-1]", ("blocks", 1)),
        ("head.w.weight", ("head", "w", "weight")),
        (["blocks", 0], ("blocks", 0)),
        (("blocks.0",), ("blocks", 0)),
        (("blocks", "0"), ("blocks", 0)),
        (("head", "ww"), ("head", "w")),
    ],
)
def test_the_path_that_is_meant(written: Any, path: Any) -> None:
    """An error about a path names the one that exists, in every function that takes paths."""
    with pytest.raises((TypeError, ValueError)) as caught:
        untie(NAMED, written)
    assert str(path) in str(caught.value)
    with pytest.raises((TypeError, ValueError)) as caught:
        tie(NAMED, ("blocks", 0), written)
    assert str(path) in str(caught.value)
    at: Any = NAMED
    for entry in path:
        at = getattr(at, entry) if isinstance(at, Named) else at[entry]


def test_paths_in_a_list() -> None:
    """The error gives them as arguments; and where no path is near it names some that exist."""
    with pytest.raises(TypeError, match=r"argument of its own: \('blocks', 0\), \('head',\)\."):
        untie(NAMED, ["blocks.0", "head"])  # type: ignore[arg-type]  # that is the point
    with pytest.raises(TypeError, match=r"a tuple, such as \('blocks', 0, 'weight', 0\) or"):
        untie(NAMED, "zzz")  # type: ignore[arg-type]  # that is the point


def test_what_cannot_be_combined() -> None:
    """No tree, and an unknown identity, are errors; so is a list of paths in place of paths."""
    with pytest.raises(TypeError, match="takes one tree at least"):
        pydag.dag_combine()
    with pytest.raises(ValueError, match="identity must be"):
        pydag.dag_combine([1], identity="some")  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match="Give each path as an argument of its own"):
        pydag.untie([[1], [2]], [(0,), (1,)])  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ValueError, match="tie needs two paths or more"):
        pydag.tie([[1], [2]], (0,))
    with pytest.raises(TypeError, match="combine must be a function"):
        pydag.retie(pydag.dag_structure([1]), [1], 3)  # type: ignore[arg-type]  # the mistake


class Raising:
    """Looks like an array whose numbers can't be read."""

    dtype, shape = "float32", (2,)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError


class Unread:
    """Has the shape and the type of an array alone."""

    dtype, shape = "float32", (2,)


@pytest.mark.parametrize(
    ("one", "other"),
    [(Raising(), Raising()), (Unread(), Unread()), (np.zeros(2), np.zeros(3)), (1, 1.0)],
    ids=["raising", "unread", "shapes", "types"],
)
def test_copies_that_are_not_known_to_be_equal(one: Any, other: Any) -> None:
    """Copies that can't be compared, or differ in shape or type, aren't one object again."""
    w = object()
    with pytest.raises(pydag.SharingError):
        pydag.retie(pydag.dag_structure([w, w]), [one, other])


def test_steps_into_a_derefed_tree() -> None:
    """The accessors of a derefed tree lead through its nodes, and say the way as Python text."""
    derefed = pydag.deref({"a": deque([5], 2)})
    accessors, leaves, _ = pydag.dag_flatten_with_accessor(derefed)
    for accessor, leaf in zip(accessors, leaves, strict=True):
        assert accessor(derefed) is leaf
        assert eval(accessor.codify("derefed")) is leaf


def test_memory_of_what_has_none() -> None:
    """An array without elements, and what is no array, have no memory to be compared."""
    assert memory_of(np.zeros(0)) is None
    assert memory_of(object()) is None
