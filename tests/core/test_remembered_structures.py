# SPDX-License-Identifier: Apache-2.0
"""A tree that was changed is never taken for what it was, wherever the change is."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import dags, options, thorough

import pydag

Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "x y")


@pydag.register_fields(meta_fields=("name",))
class Layer:
    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b, self.name = w, b, "layer"


@pydag.register_fields(data_fields=("w", "b"), meta_fields=("name",))
class Named:
    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b, self.name = w, b, "named"


@pydag.register_fields
class Slotted:
    __slots__ = ("b", "w")

    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b = w, b


@pydag.register_fields
@dataclass
class Data:
    w: Any
    b: Any
    name: str = field(default="data", metadata={"static": True})


class Sub(Layer):
    pass


def flattened(tree: Any, **how: Any) -> tuple[list[Any], str, list[Any]]:
    """All that flattening says."""
    leaves, spec = pydag.dag_flatten(tree, **how)
    return leaves, repr(spec), pydag.dag_paths(tree, **how)


def anew(tree: Any, **how: Any) -> tuple[list[Any], str, list[Any]]:
    """The same, with nothing remembered."""
    pydag.clear_caches()
    return flattened(tree, **how)


def tree_of_all() -> dict[str, Any]:
    """A tree with each kind of node; some objects in it are shared."""
    tied, plain = [1.5], [2.5]
    return {
        "list": [tied, [1, 2]],
        "tuple": (tied, None, Point(3, 4)),
        "dict": {"b": tied, "a": 5},
        "ordered": OrderedDict(z=6, y=plain, x=7),
        "default": defaultdict(list, k=8, j=9),
        "deque": deque([10, tied], maxlen=4),
        "layer": Layer([11], tied),
        "named": Named([12], 13),
        "slotted": Slotted(14, [15]),
        "data": Data(16, 17),
    }


def _reorder(mapping: dict[str, Any]) -> None:
    items = list(mapping.items())[::-1]
    mapping.clear()
    mapping.update(items)


def _retype(layer: Layer) -> None:
    layer.name = 1  # type: ignore[assignment]  # the next one is equal, and another value
    flattened(layer)
    layer.name = True  # type: ignore[assignment]  # as above


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a leaf becomes a node": lambda t: t["list"][1].__setitem__(0, [1]),
    "a node becomes a leaf": lambda t: t["list"].__setitem__(1, 0),
    "a leaf becomes None": lambda t: t["list"][1].__setitem__(0, None),
    "None becomes a leaf": lambda t: t.__setitem__("tuple", (t["tuple"][0], 0, t["tuple"][2])),
    "a list grows": lambda t: t["list"][1].append(3),
    "a list shrinks": lambda t: t["list"][1].pop(),
    "a list is emptied": lambda t: t["list"][1].clear(),
    "a list becomes a tuple": lambda t: t["list"].__setitem__(1, (1, 2)),
    "a namedtuple of another class": lambda t: t.__setitem__(
        "tuple", (*t["tuple"][:2], Other(3, 4))
    ),
    "a namedtuple becomes a tuple": lambda t: t.__setitem__("tuple", (*t["tuple"][:2], (3, 4))),
    "a tie is cut": lambda t: t["dict"].__setitem__("b", [1.5]),
    "a tie is made": lambda t: t["list"].__setitem__(1, t["list"][0]),
    "another object is tied": lambda t: t["dict"].__setitem__("b", t["ordered"]["y"]),
    "a dict has a key more": lambda t: t["dict"].__setitem__("c", 0),
    "a dict has another key": lambda t: t["dict"].__setitem__("c", t["dict"].pop("a")),
    "a dict in another order": lambda t: _reorder(t["dict"]),
    "a dict with an equal key": lambda t: t["dict"].__setitem__("".join(["a"]), t["dict"].pop("a")),
    "a dict becomes ordered": lambda t: t.__setitem__("dict", OrderedDict(t["dict"])),
    "an OrderedDict in another order": lambda t: t["ordered"].move_to_end("z"),
    "its middle moved": lambda t: t["ordered"].move_to_end("y", last=False),
    "another default factory": lambda t: setattr(t["default"], "default_factory", dict),
    "no default factory": lambda t: setattr(t["default"], "default_factory", None),
    "another maxlen": lambda t: t.__setitem__("deque", deque(t["deque"], maxlen=5)),
    "a deque turned": lambda t: t["deque"].rotate(),
    "a meta field": lambda t: setattr(t["layer"], "name", "other"),
    "a meta field, named": lambda t: setattr(t["named"], "name", "other"),
    "a meta field of a dataclass": lambda t: setattr(t["data"], "name", "other"),
    "an equal meta field of another type": lambda t: _retype(t["layer"]),
    "an attribute more": lambda t: setattr(t["layer"], "extra", [1]),
    "an attribute less": lambda t: delattr(t["layer"], "b"),
    "attributes in another order": lambda t: _reorder(vars(t["layer"])),
    "attributes in another order, named": lambda t: _reorder(vars(t["named"])),
    "a slot becomes unset": lambda t: delattr(t["slotted"], "b"),
    "an instance of a subclass": lambda t: t.__setitem__("layer", Sub(1, t["list"][0])),
    "an instance of another class": lambda t: t.__setitem__("layer", Data(1, 2)),
    "two of a kind change places": lambda t: t.update(list=t["tuple"], tuple=t["list"]),
    "the root has a key less": lambda t: t.pop("data"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_kept", [False, True])
def test_change(change: str, is_kept: bool) -> None:
    """A tree that was flattened before is flattened as if it had not been, after any change."""
    tree = tree_of_all()
    for _ in range(3):
        kept = pydag.dag_structure(tree)
    if not is_kept:
        del kept
    CHANGES[change](tree)
    assert flattened(tree) == anew(tree)
    assert flattened(tree) == anew(tree)


def test_changes_are_changes() -> None:
    """Each of the changes above but some changes what flattening says."""
    same = {"a dict in another order", "a dict with an equal key"}
    same |= {"attributes in another order", "attributes in another order, named"}
    for name, change in CHANGES.items():
        tree = tree_of_all()
        before = flattened(tree)
        change(tree)
        assert (flattened(tree)[1:] == before[1:]) == (name in same), name


def test_rest_that_was_changed() -> None:
    """A further tree is compared with the structure anew each time, after any change."""
    for name, change in CHANGES.items():
        tree, rest = tree_of_all(), tree_of_all()
        for _ in range(2):
            pydag.dag_map(lambda x, y: (x, y), tree, rest)
        change(rest)

        def answer() -> Any:
            found: list[Any] = []
            try:
                pydag.dag_map(lambda x, y: found.append((x, y)), tree, rest)  # noqa: B023  # called before the loop goes on
            except ValueError as error:
                return type(error), str(error)
            return found

        warm = answer()
        pydag.clear_caches()
        assert warm == answer(), name


@pytest.mark.parametrize("order", [("", "all"), ("ordered", "all"), ("", "nodes")])
def test_options_are_no_part_of_the_structure(order: tuple[str, str]) -> None:
    """One tree with other options is another structure, whatever was flattened before."""
    import optree

    tree = tree_of_all()
    namespace, identity = order
    ways = [
        {"none_is_leaf": none, "identity": how, "namespace": space}
        for none in (False, True)
        for how in ("all", "nodes")
        for space in ("", "ordered")
    ]
    first: dict[str, Any] = {"namespace": namespace, "identity": identity}
    with optree.dict_insertion_ordered(True, namespace="ordered"):
        expected = [anew(tree, **way) for way in ways]
        flattened(tree, **first)
        assert [flattened(tree, **way) for way in ways] == expected
    plain = anew(tree, namespace="ordered")
    with optree.dict_insertion_ordered(True, namespace="ordered"):
        assert flattened(tree, namespace="ordered") == expected[1]
    assert flattened(tree, namespace="ordered") == plain


@thorough
@given(dags(), dags(), options, st.booleans())
def test_random_trees(one: Any, other: Any, how: dict[str, Any], is_kept: bool) -> None:
    """What was flattened before, and how often, is not to be noticed."""
    trees = [one, other, [one, other], {"a": one, "b": [one]}, (other, other)]
    expected = [anew(tree, **how) for tree in trees]
    kept = [pydag.dag_structure(tree, **how) for _ in range(3) for tree in trees]
    if not is_kept:
        del kept
    for tree, (leaves, text, paths) in zip(trees * 2, expected * 2, strict=True):
        found = flattened(tree, **how)
        assert found[1:] == (text, paths)
        assert all(a is b for a, b in zip(found[0], leaves, strict=True))


def test_a_class_with_identity_where_one_without_was() -> None:
    """What is shared is found where a tree like this one had instances of another class there."""

    class Plain:
        pass

    class Shared:
        pass

    for cls, has_identity in ((Plain, False), (Shared, True)):
        pydag.register_pydag_node(
            cls,
            lambda _: ((1.5,), None),
            lambda _, children: None,
            namespace="identities",
            preserve_relative_identities=has_identity,
        )
    one = Shared()
    for _ in range(3):
        plain = pydag.dag_structure([Plain(), Plain()], namespace="identities")
        assert plain.num_shared == 0
        shared = pydag.dag_structure([one, one], namespace="identities")
        assert shared.num_shared == 1
    assert pydag.dag_structure([Shared(), Shared()], namespace="identities").num_shared == 0
