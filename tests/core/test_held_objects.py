# SPDX-License-Identifier: Apache-2.0
"""Objects that only one slot holds count as unshared; all others are told apart by address.

Each tree is flattened three times: unknown, then remembered, then by a spec that is alive.
"""

from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import pydag

Point = namedtuple("Point", "x y")


@pydag.register_fields
class Plain:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


@pydag.register_fields
class Other(Plain):
    pass


class Elsewhere:
    pass


@pydag.register_fields(data_fields=("a", "b"))
class Named:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


@pydag.register_fields
class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


@pydag.register_fields(data_fields=("a", "b"))
class TwoNames:
    __slots__ = ("a",)
    a: Any


_aliased: Any = TwoNames
_aliased.b = _aliased.a


def _with_dict_of(first: Any, cls: Callable[[], Any]) -> Any:
    second = cls()
    second.__dict__ = first.__dict__
    return second


def _two_names() -> Any:
    node = TwoNames()
    node.a = object()
    return node


def _dict_of_an_instance(*others: Callable[[], Any]) -> Any:
    node = Plain(a=object(), b=object())
    return [node, *(_with_dict_of(node, other) for other in others)]


SHARED: dict[str, tuple[Callable[[], Any], int]] = {
    "a slot of two names": (_two_names, 1),
    "an instance and its dict": (lambda: [node := Plain(a=object()), node.__dict__], 1),
    "its dict first": (lambda: [(node := Plain(a=object())).__dict__, node], 1),
    "two instances of one dict": (lambda: _dict_of_an_instance(Plain), 2),
    "three classes": (lambda: _dict_of_an_instance(Other, lambda: Named(0, 0)), 2),
    "attributes of two libraries": (
        lambda: [node := Plain(a=object()), _with_dict_of(node, Elsewhere).__dict__],
        1,
    ),
}


@pytest.mark.parametrize(("make", "num_leaves"), SHARED.values(), ids=list(SHARED))
def test_leaf_of_one_reference_that_two_ways_lead_to(
    make: Callable[[], Any], num_leaves: int
) -> None:
    """Attributes are met twice where their dict, or a slot, is: though they have one reference."""
    tree = make()
    for _ in range(3):
        leaves, spec = pydag.dag_flatten(tree)
        assert len(leaves) == num_leaves
    assert spec.num_leaves == num_leaves
    assert pydag.dag_structure(tree) == spec


UNSHARED: dict[str, Callable[[], Any]] = {
    "all attributes": lambda: [Plain(a=object(), b=[object()]) for _ in range(3)],
    "named fields": lambda: [Named(object(), {"x": object()}) for _ in range(3)],
    "slots": lambda: (Slotted(object(), Slotted(object(), (object(),))),),
    "nested": lambda: Plain(a=Named(Slotted(object(), object()), object()), b=Point(1.5, object())),
}


@pytest.mark.parametrize("make", UNSHARED.values(), ids=list(UNSHARED))
def test_attributes_that_one_instance_alone_holds(make: Callable[[], Any]) -> None:
    """Such attributes are leaves of their own; held elsewhere, too, they are the same leaves."""
    tree = make()
    first, spec = pydag.dag_flatten(tree)
    assert len(set(map(id, first))) == len(first)
    assert spec.num_leaves == len(first)
    for _ in range(2):
        again, other = pydag.dag_flatten(tree)  # `first` holds every leaf now
        assert list(map(id, again)) == list(map(id, first))
        assert other == spec


@pytest.mark.parametrize("count", [1, 5, 40, 3000])
@pytest.mark.parametrize("num_slots", [0, 5, 100, 600])
def test_one_leaf_is_met_twice_among_many(count: int, num_slots: int) -> None:
    """However far apart objects lie, the one that stands in two places is found, and no other."""
    wide = type("Wide", (), {"__slots__": [f"s{i}" for i in range(num_slots)]})
    leaves = [wide() for _ in range(count)]
    spec = pydag.dag_structure(leaves)
    for _ in range(2):
        assert pydag.dag_structure(leaves) == spec  # remembered
    for place in {0, count // 2, count - 1}:
        twice = [*leaves, leaves[place]]
        found, shared = pydag.dag_flatten(twice)
        assert list(map(id, found)) == list(map(id, leaves))
        assert shared.num_leaves == count
        assert spec != shared
        # A tree of the right size, with one object in the place of another one.
        wrong = list(leaves)
        wrong[place] = leaves[place - 1]
        assert len(pydag.dag_leaves(wrong)) == (count - 1 if count > 1 else 1)
        assert pydag.dag_structure(leaves) == spec


def _specimen() -> Any:
    w, shared = object(), {"w": object(), "empty": {}}
    named = Named(w, shared)
    tree: dict[str, Any] = {
        "z": w,
        "shared": shared,
        "again": shared,
        "b": [w, (1, w), Point(shared, None)],
        "ordered": OrderedDict(b=w, a=named),
        "deque": deque([shared, w], maxlen=5),
        "named": named,
        "slotted": Slotted(shared, w),
        "none": None,
        "plain": Plain(x=[named], y={"p": {"q": {"r": w}}}),
    }
    del tree["z"]
    tree["z"] = w
    return tree


def test_copies_of_a_known_tree() -> None:
    """The first copy and the later ones, which take dicts as a whole, are the same."""
    pydag.clear_caches()
    tree = _specimen()
    copies = [pydag.dag_copy(tree) for _ in range(4)]
    for copy in copies:
        leaves, spec = pydag.dag_flatten(copy)
        assert spec == pydag.dag_structure(tree)
        assert list(map(id, leaves)) == list(map(id, pydag.dag_leaves(tree)))
        assert list(copy) == list(tree)
        assert copy["z"] is tree["z"]
        assert copy["shared"] is copy["again"] is copy["named"].b
        assert copy["shared"] is not tree["shared"]
        copy["shared"]["w"] = None
        copy["plain"].y["p"]["q"]["r"] = None
    assert tree["shared"]["w"] is not None
    assert tree["plain"].y["p"]["q"]["r"] is tree["z"]
