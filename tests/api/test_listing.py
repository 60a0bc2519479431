# SPDX-License-Identifier: Apache-2.0
"""The list of a structure's nodes, which views, files and selectors read."""

import collections
import copy
import dataclasses
import pickle
import random
import time
from typing import Any

import optree
import pytest
from hypothesis import given
from strategies import dags, options, thorough

import pydag
from pydag import _core
from pydag.sharing.shared_object import SharedObject
from pydag.structure.listing import Listing, Record, step_text


class Tagged:
    def __init__(self, *children: Any) -> None:
        self.children = children


pydag.register_pydag_node(
    Tagged, lambda x: (x.children, ("tag",)), lambda tag, children: Tagged(*children)
)
Point = collections.namedtuple("Point", "x y")


@pydag.register_fields(meta_fields=("name",))
class Layer:
    def __init__(self, w: Any, name: str) -> None:
        self.w, self.name = w, name


def test_records() -> None:
    """A record has kind, number, children, entry, attribute, class and what else a node holds."""
    w = [1]
    tree = {"b": Layer(w, "n"), "a": Point(w, None), "c": collections.deque([2], 3)}
    assert pydag.dag_structure(tree)._listing() == [
        ("dict", -1, 3, None, None, dict, None),
        ("namedtuple", -1, 2, "a", None, Point, None),
        ("list", 0, 1, 0, "x", list, None),
        ("leaf", -1, 0, 0, None, None, None),
        ("None", -1, 0, 1, "y", type(None), None),
        ("fields", -1, 1, "b", None, Layer, (("name", "n"),)),
        ("alias", 0, 0, "w", "w", None, None),
        ("deque", -1, 1, "c", None, collections.deque, 3),
        ("leaf", -1, 0, 0, None, None, None),
    ]


def test_details() -> None:
    """A factory, aux_data and entries of a class with functions."""
    kinds = [Record._make(record) for record in pydag.dag_structure(
        [collections.defaultdict(int, a=1), Tagged(1), collections.OrderedDict(b=1)]
    )._listing()]  # fmt: skip
    assert [(r.kind, r.detail) for r in kinds if r.num_children] == [
        *(("list", None), ("defaultdict", int), ("custom type", ("tag",)), ("OrderedDict", None)),
    ]


@thorough
@given(dags(), options)
def test_listing_agrees_with_the_spec(tree: Any, options: Any) -> None:
    """Leaves, nodes, shared objects, paths and the number of paths are those of the spec."""
    spec = pydag.dag_structure(tree, **options)
    listing = Listing.of(spec)
    assert len(listing.leaves) == spec.num_leaves
    assert sum(not record.is_alias for record in listing.records) == spec.num_nodes
    assert [listing.path(leaf) for leaf in listing.leaves] == spec.paths()
    assert [tuple(listing.path(slot) for slot in slots) for slots in listing.slots] == [
        shared.paths for shared in spec.shared
    ]
    ways = listing.num_ways()
    assert sum(ways[leaf] for leaf in listing.leaves) == spec.num_paths
    if spec.num_paths < 300:
        for position in listing.leaves:
            found = list(listing.ways(position))
            assert len(found) == ways[position]
            assert len({tuple(way) for way in found}) == len(found)
            assert found[0] == listing.way(position)


def test_every_node_comes_behind_what_leads_to_it() -> None:
    """`downwards` visits parents before children, and aliases before their anchor."""
    rng = random.Random(0)
    pool: list[Any] = [[1]]
    for _ in range(50):
        pool.append([rng.choice(pool) for _ in range(rng.randint(1, 3))])
    listing = Listing.of(pydag.dag_structure(pool))
    place = {position: i for i, position in enumerate(listing.downwards())}
    assert len(place) == len(listing.records)
    for position, record in enumerate(listing.records):
        assert all(place[position] < place[child] for child in listing.children(position))
        if record.is_alias:
            assert place[position] < place[listing.target(position)]


def test_a_class_that_changes_its_fields() -> None:
    """A namedtuple whose `_fields` became fewer is listed by index."""
    spec = pydag.dag_structure(Changing(1, 2))
    setattr(Changing, "_fields", ("x",))  # noqa: B010 (its type says that it has two)
    try:
        assert [r[4] for r in spec._listing()] == [None, "x", None]
    finally:
        setattr(Changing, "_fields", ("x", "y"))  # noqa: B010 (as above)


Changing: Any = collections.namedtuple("Changing", "x y")


@pytest.mark.parametrize(
    ("entry", "attribute", "text"),
    [("a", "a", ".a"), ("a b", "a b", "['a b']"), ("a", None, "['a']"), (3, None, "[3]")],
)
def test_steps(entry: Any, attribute: str | None, text: str) -> None:
    """A step is written as Python would have it."""
    assert step_text(Record("leaf", -1, 0, entry, attribute, None, None)) == text


def test_a_key_whose_repr_raises() -> None:
    """A key whose `repr` raises is written as its class."""

    class Key:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    listing = Listing.of(pydag.dag_structure({Key(): 1}))
    assert "Key" in listing.path_text(1)
    assert "Key" in str(pydag.view({Key(): 1}))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("list", -1, 1)], "too few children"),
        ([("leaf", -1, 0), ("leaf", -1, 0)], "one root"),
        ([("list", -1, 2), ("leaf", -1, 0), ("alias", 0, 0)], "no anchor"),
        ([("list", -1, 1), ("alias", -1, 0)], "no anchor"),
        ([("list", -1, 4294967295)], "too few children"),
    ],
)
def test_records_that_are_no_listing(rows: list[Any], words: str) -> None:
    """Records whose counts or numbers don't go together are a ValueError."""
    with pytest.raises(ValueError, match=words):
        _core.connections(rows)


@pytest.mark.parametrize("row", [(), ("leaf", -1), 3, ("leaf", "x", 0), ("leaf", -1, -1)])
def test_records_of_another_form(row: Any) -> None:
    """What is no record is a TypeError; a negative count an OverflowError."""
    with pytest.raises((TypeError, OverflowError)):
        _core.connections([row])


def test_records_are_of_a_class_of_tuples() -> None:
    """A record's class must be a subclass of tuple."""
    spec = pydag.dag_structure([1])
    assert type(spec._listing(Record)[0]) is Record
    for wrong in (list, 3, object):
        with pytest.raises(TypeError, match="subclass of tuple"):
            spec._listing(wrong)  # type: ignore[arg-type]  # what is tested


def ladder(levels: int) -> Any:
    """Each level holds the one below twice."""
    tree: Any = [0.5]
    for _ in range(levels):
        tree = [tree, tree]
    return tree


@pytest.mark.measures
def test_shared_objects_of_a_ladder() -> None:
    """What a ladder shares is found in time that grows with its height, not with its square."""
    tree = ladder(20_000)
    began = time.thread_time()
    found = pydag.shared_objects(tree)
    assert len(found) == len(pydag.dag_structure(tree).shared) == 20_000
    assert found[-1].paths == ((0,) * 20_000, (0,) * 19_999 + (1,))
    assert time.thread_time() - began < 3


def test_a_shared_object_as_a_value() -> None:
    """A shared object is equal to one with the same paths, and can be copied and pickled."""
    [found] = pydag.dag_structure({"a": (w := [1]), "b": w}).shared
    made = SharedObject(0, optree.PyTreeKind.LIST, list, (("a",), ("b",)))
    assert found == made
    assert pickle.loads(pickle.dumps(found)) == copy.copy(found) == made
    assert repr(found) == repr(made)
    assert dataclasses.replace(found, index=3).paths == made.paths
    with pytest.raises(AttributeError, match="no attribute 'path'"):
        found.path  # type: ignore[attr-defined]  # noqa: B018  # what is tested
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.paths = ()  # type: ignore[misc]  # what is tested
