# SPDX-License-Identifier: Apache-2.0
"""`pydag.explain`: where two structures part, in words."""

from collections import OrderedDict, defaultdict, deque
from typing import Any

import agreement  # noqa: F401  (registers the specimens)
import pytest
import specimens as sp
import strategies
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from strategies import thorough

import pydag


def explain(first: Any, second: Any, **options: Any) -> str:
    return pydag.explain(
        pydag.dag_structure(first, **options), pydag.dag_structure(second, **options)
    )


@thorough
@given(strategies.dags(), strategies.dags(), strategies.options, strategies.options)
def test_empty_for_equal_specs_alone(first: Any, second: Any, some: Any, others: Any) -> None:
    """Nothing is said of equal specs, and something of unequal ones, whatever the trees."""
    spec = pydag.dag_structure(first, **some)
    copied = pydag.dag_copy(first, **some)
    for other, options in ((second, some), (first, others), (copied, some), (copied, others)):
        against = pydag.dag_structure(other, **options)
        assert (pydag.explain(spec, against) == "") is (spec == against)


@thorough
@given(strategies.dags(max_nodes=5), strategies.dags(max_nodes=5), strategies.options)
def test_both_directions_say_the_same(first: Any, second: Any, options: Any) -> None:
    """Exchanging the specs exchanges what is said of the first and of the second."""

    def said(*trees: Any) -> list[list[str]]:
        lines = [line.partition(" (")[0] for line in explain(*trees, **options).splitlines()]
        starts = range(0, len(lines), 3)
        return [[lines[i], *(line[10:] for line in lines[i + 1 : i + 3])] for i in starts]

    assert said(second, first) == [
        [place, *reversed(words)] for place, *words in said(first, second)
    ]


def a_dict(draw: DrawFn, take: strategies.Take) -> Any:
    return {key: take() for key in draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True))}


SIMPLE: list[strategies.Shape] = [strategies.several, a_dict]


@thorough
@given(strategies.dags(SIMPLE), strategies.dags(SIMPLE), st.booleans())
def test_what_is_said_of_sharing_is_true(first: Any, second: Any, wrap: bool) -> None:
    """Paths that it calls one object lead to one, and those that it calls two lead to two."""
    if wrap:  # something to agree upon
        first, second = [second, first, second], [second, pydag.dag_copy(second), first]
    lines = explain(first, second).splitlines()
    for place, *words in zip(lines[::3], lines[1::3], lines[2::3], strict=False):
        paths = [part.partition(" (in the second")[0] for part in place.split(" and ")]
        for tree, said in zip((first, second), words, strict=True):
            said = said[10:]
            if said.startswith("the same object as "):
                [path] = paths
                other = said.removeprefix("the same object as ")
                assert eval(path, {"tree": tree}) is eval(other, {"tree": tree})
            elif said in ("one object", "two objects"):
                one, other = (eval(path, {"tree": tree}) for path in paths)
                # Of leaves that are values a spec doesn't know that they are.
                is_value = any(one is value for value in sp.VALUES)
                assert (one is other) is (said == "one object") or is_value


def test_one_object_or_two() -> None:
    """Both paths are named, the anchor's first, whichever side has the tie."""
    w, v = [1.0], [1.0]
    tied, untied = {"in": [w], "out": {"w": w}}, {"in": [w], "out": {"w": v}}
    assert explain(tied, untied) == (
        "tree['in'][0] and tree['out']['w']\n  first:  one object\n  second: two objects"
    )
    assert explain(untied, tied) == (
        "tree['in'][0] and tree['out']['w']\n  first:  two objects\n  second: one object"
    )


def test_tied_to_another_object() -> None:
    """Where both sides are tied, but not to the same place, both places are named."""
    v, w = [1.0], [2.0]
    assert explain([v, w, v], [v, w, w]) == (
        "tree[2]\n  first:  the same object as tree[0]\n  second: the same object as tree[1]"
    )


def test_tied_to_a_value() -> None:
    """What has no identity isn't called an object: None and tuples are said as they are."""
    w: list[Any] = []
    assert explain([w, w], [None, (1,)]) == (
        "tree[0]\n  first:  list of 0\n  second: None\n"
        "tree[1]\n  first:  the same object as tree[0]\n  second: tuple of 1"
    )


def test_every_place_up_to_eight() -> None:
    """Several places are told apart; of many, the first eight are named and the others counted."""
    assert explain([[1], 2, {}], [(1,), 2, 3]) == (
        "tree[0]\n  first:  list of 1\n  second: tuple of 1\n"
        "tree[2]\n  first:  dict with the keys []\n  second: leaf"
    )
    many = explain([[1]] * 1, [2]), explain([[i] for i in range(20)], list(range(20)))
    assert many[0] == "tree[0]\n  first:  list of 1\n  second: leaf"
    assert many[1].count("first: ") == 8
    assert many[1].endswith("\nand 12 more")


NOT_ALIKE: dict[str, tuple[Any, Any, str, str]] = {
    "length": ([1], [1, 2], "list of 1", "list of 2"),
    "keys": (
        {"a": 1, "b": 2},
        {"a": 1, "c": 2, "d": 3},
        "dict of 2 keys, only here ['b']",
        "dict of 3 keys, only here ['c', 'd']",
    ),
    "fewer keys": ({"a": 1}, {}, "dict of 1 key, only here ['a']", "dict of 0 keys"),
    "order": (
        OrderedDict(a=1, b=2),
        OrderedDict(b=1, a=2),
        "OrderedDict whose key at position 0 is 'a'",
        "OrderedDict whose key at position 0 is 'b'",
    ),
    "factory": (
        defaultdict(int),
        defaultdict(list),
        "defaultdict with the factory <class 'int'>",
        "defaultdict with the factory <class 'list'>",
    ),
    "maxlen": (deque([1]), deque([1], 3), "deque with maxlen None", "deque with maxlen 3"),
    "None": (None, 1, "None", "leaf"),
    "class": (sp.Point(1, 2), sp.Box(1, 2), "specimens.Point of 2", "specimens.Box of 2"),
    "fields": (
        sp.Module(w=1, b=2),
        sp.Module(w=1),
        "specimens.Module of 2 fields, only here ['b']",
        "specimens.Module of 1 field",
    ),
    "meta field": (
        sp.Named(name="one"),
        sp.Named(name="two"),
        "specimens.Named with name='one'",
        "specimens.Named with name='two'",
    ),
    "aux_data": (
        strategies.with_attributes(sp.Tagged(1), {"tag": 1}),
        strategies.with_attributes(sp.Tagged(1), {"tag": 2}),
        "specimens.Tagged with the aux_data 1",
        "specimens.Tagged with the aux_data 2",
    ),
}


@pytest.mark.parametrize("name", NOT_ALIKE)
def test_what_differs_in_a_node(name: str) -> None:
    """Both sides are described by what tells them apart."""
    a, b, first, second = NOT_ALIKE[name]
    assert explain([a], [b]) == f"tree[0]\n  first:  {first}\n  second: {second}"


@pytest.mark.parametrize("arguments", [(1, 2), (pydag.dag_structure(1), [1])])
def test_refuses_what_is_no_spec(arguments: Any) -> None:
    """Trees, and anything else, are a TypeError."""
    with pytest.raises(TypeError):
        pydag.explain(*arguments)
