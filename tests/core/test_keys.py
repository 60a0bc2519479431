# SPDX-License-Identifier: Apache-2.0
"""Keys of mappings: their order, and keys that don't behave."""

import gc
import pickle
import random
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import optree
import pytest

import pydag


class Key:
    """Hashable and equal by name; what comparing does is the test's choice."""

    def __init__(self, name: str, less: Callable[[], bool] | None = None) -> None:
        self.name, self.less = name, less

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: Any) -> bool:
        return NotImplemented if self.less is None else self.less()


@pytest.mark.parametrize("cls", [dict, OrderedDict, lambda x: defaultdict(int, x)])
def test_order_survives_every_operation(cls: Any) -> None:
    """Copy, map, deref and reref keep the insertion order, long or short, strings or not."""
    for keys in (
        "ba",
        "ab",
        range(9, 0, -1),
        [f"k{i % 7}{i}" for i in range(300)],
        [2, "b", "a", 1],
    ):
        tree = cls({key: [key] for key in keys})
        for out in (
            pydag.dag_copy(tree),
            pydag.dag_map(lambda x: x, tree),
            pydag.reref(pydag.deref([tree, tree]))[1],
        ):
            assert list(out) == list(keys)
            assert type(out) is type(tree)
            assert out == tree


@pytest.mark.parametrize(
    ("keys", "sorted_keys"),
    [
        ([2, "b", 1, "a"], [1, 2, "a", "b"]),
        ([None, 3, (1, 2), "x"], None),
        ([1.5, 1, 0.5], [0.5, 1, 1.5]),
        ([True, 0], [0, True]),
        ([("x" * 9, 1), ("x" * 9, "a")], None),
    ],
)
def test_mixed_keys(keys: list[Any], sorted_keys: list[Any] | None) -> None:
    """Keys of types that don't compare are sorted as optree does it: by type's name first."""
    tree = {key: i for i, key in enumerate(keys)}
    theirs: Any = optree.tree_structure
    entries = pydag.dag_structure(tree).entries()
    assert entries == theirs(tree).entries()
    assert sorted_keys is None or entries == sorted_keys


def test_keys_that_fail_to_compare_midway() -> None:
    """Where comparing raises TypeError midway, the insertion order stands, not half a sort."""
    calls = []

    def less() -> bool:
        calls.append(1)
        if len(calls) >= 3:
            raise TypeError("not today")
        return True

    keys = [Key(name, less) for name in "dcba"]
    spec = pydag.dag_structure(dict.fromkeys(keys, 1))
    assert spec.entries() == keys
    assert len(calls) == 4


def test_keys_that_raise() -> None:
    """Another exception than TypeError is the user's: it passes through, with the place."""

    def less() -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as info:
        pydag.dag_flatten({"a": {Key("x", less): 1, Key("y", less): 2}})
    assert "tree['a']" in info.value.__notes__[0]


def test_keys_that_change_the_dict() -> None:
    """A comparison that empties the dict leaves the walk with what the dict was."""
    tree: dict[Any, Any] = {}

    def less() -> bool:
        tree.clear()
        return False

    for i in range(20):
        tree[Key(f"k{i}", less)] = [i]
    assert pydag.dag_leaves(tree) == list(range(20))
    assert tree == {}


def test_one_key_twice() -> None:
    """A key whose hash changed can be in a dict twice. Such a dict can be read, but not built."""
    for others in range(8):
        key = Mutable(1)
        tree = {key: [0.5]}
        key.hash = 2
        tree[key] = [1.5]
        tree.update({Mutable(-i): [2.5] for i in range(3, 3 + others)})
        assert len(tree) == 2 + others
        leaves, spec = pydag.dag_flatten(tree)
        assert len(leaves) == 2 + others
        with pytest.raises(ValueError, match=f"{2 + others} keys made a dict of {1 + others}"):
            pydag.dag_unflatten(spec, leaves)
        assert len(spec.paths()) == 2 + others


def test_keys_that_hash_or_equal_badly_while_building() -> None:
    """What a key raises while a dict is rebuilt passes through; the spec stays usable."""
    broken = False

    class Moody(Key):
        def __hash__(self) -> int:
            if broken:
                raise ZeroDivisionError
            return 1

        def __eq__(self, other: object) -> bool:
            if broken:
                raise ZeroDivisionError
            return self is other

    for cls in (dict, OrderedDict, lambda items: defaultdict(None, items)):
        leaves, spec = pydag.dag_flatten([cls({Moody("a"): [0.5], Moody("b"): [1.5]})])
        broken = True
        with pytest.raises(ZeroDivisionError):
            pydag.dag_unflatten(spec, leaves)
        broken = False
        assert pydag.dag_leaves(pydag.dag_unflatten(spec, leaves)) == [0.5, 1.5]


def test_mismatch_of_mixed_keys() -> None:
    """The message about keys of mixed types names both sides; nothing is sorted that can't be."""
    one, other = {"z": 1, 2: 2, None: 3}, {"z": 1, (4,): 2, 1.5: 3}
    with pytest.raises(ValueError, match="key mismatch") as info:
        pydag.dag_map(lambda x, y: x, one, other)
    for text in ("None", "2", "(4,)", "1.5", "missing", "extra"):
        assert text in str(info.value)
    assert list(one) == ["z", 2, None]
    assert list(other) == ["z", (4,), 1.5]


def test_rest_in_another_order() -> None:
    """Rests are matched key by key, at every level, whatever the order and kind of mapping."""
    tree = {"a": {"x": 1, "y": 2}, "b": 3}
    for rest in (
        {"b": 30, "a": {"y": 20, "x": 10}},
        OrderedDict(b=30, a=OrderedDict(y=20, x=10)),
        defaultdict(list, b=30, a={"y": 20, "x": 10}),
    ):
        out = pydag.dag_map(lambda x, y: (x, y), tree, rest)
        assert out == {"a": {"x": (1, 10), "y": (2, 20)}, "b": (3, 30)}
        assert list(rest) == ["b", "a"]


def test_insertion_order_of_optree() -> None:
    """optree's `dict_insertion_ordered` is respected, in its namespace only."""
    tree = {"b": 1, "a": 2}
    with optree.dict_insertion_ordered(True, namespace="ordered"):
        leaves, spec = pydag.dag_flatten(tree, namespace="ordered")
        assert (leaves, spec.namespace) == ([1, 2], "ordered")
        assert pydag.dag_leaves(tree) == [2, 1]
        assert pydag.dag_map(lambda x, y: y, tree, {"a": 20, "b": 10}, namespace="ordered") == {
            "b": 10,
            "a": 20,
        }
    assert pydag.dag_leaves(tree, namespace="ordered") == [2, 1]
    assert spec.unflatten(leaves) == tree


def _filled(keys: Any, cls: Any = dict) -> Any:
    return cls((key, 0) for key in keys)


def _default(items: Any) -> Any:
    return defaultdict(int, items)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (_filled("ab"), _filled("ab"), True),
        (_filled("ab"), _filled("ba"), False),
        (_filled("ba"), _filled("ba"), True),
        (_filled("bca"), _filled("cab"), False),
        (_filled([2, 1]), _filled([1, 2]), False),
        (_filled([1.0, 2]), _filled([True, 2.0]), True),
        ([_filled("ab")], [_filled("ba")], False),
        ((0, [_filled("ba"), _filled("ab")]), (0, [_filled("ba"), _filled("ba")]), False),
        (_filled("ab", _default), _filled("ba", _default), False),
        (_filled("ba", _default), _filled("ba", _default), True),
        ({}, {}, True),
        ([1], [1], True),
    ],
)  # fmt: skip
def test_is_same_order_tells_how_equal_dicts_were_filled(
    first: Any, second: Any, expected: bool
) -> None:
    """Equal specs are of the same order exactly if all their dicts were filled alike."""
    a, b = pydag.dag_structure(first), pydag.dag_structure(second)
    pydag.clear_caches()
    for x, y in ((a, b), (pickle.loads(pickle.dumps(a)), b), (a, pickle.loads(pickle.dumps(b)))):
        assert x == y
        assert x.is_same_order(y) is expected
        assert y.is_same_order(x) is expected
        assert x.is_same_order(x)


def test_is_same_order_asks_no_key() -> None:
    """The order of two specs is compared without running the keys' own code."""
    asked = []

    class Loud(Key):
        def __eq__(self, other: object) -> bool:
            asked.append(self)
            return isinstance(other, Loud) and self.name == other.name

        def __hash__(self) -> int:
            return hash(self.name)

        def __lt__(self, other: Any) -> bool:
            return bool(self.name < other.name)

    a = pydag.dag_structure({Loud("a"): 1, Loud("b"): 2})
    b = pydag.dag_structure({Loud("b"): 1, Loud("a"): 2})
    assert a == b
    asked.clear()
    assert not a.is_same_order(b)
    assert asked == []


class Mutable:
    """A key whose hash and equality are the test's choice."""

    def __init__(self, name: int) -> None:
        self.name = self.hash = name

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mutable) and self.name == other.name

    def __lt__(self, other: "Mutable") -> bool:
        return id(self) < id(other)


@pytest.mark.parametrize("count", [1, 5, 6, 30])
@pytest.mark.parametrize("cls", [dict, OrderedDict, _default])
def test_keys_whose_hashes_change(cls: Any, count: int) -> None:
    """After its keys' hashes changed a dict is built with the new ones, and just those keys."""
    keys = [Mutable(i) for i in range(count)]
    tree = cls((key, key.name) for key in keys)
    leaves, spec = pydag.dag_flatten(tree)
    assert pydag.dag_unflatten(spec, leaves) == tree
    for key in keys:
        key.hash += 100
    out = pydag.dag_unflatten(spec, leaves)
    assert type(out) is type(tree)
    assert list(out.items()) == [(key, key.name) for key in keys]
    assert all(out[key] == key.name for key in keys)


@pytest.mark.parametrize("count", [2, 5, 6, 30])
@pytest.mark.parametrize("cls", [dict, OrderedDict, _default])
def test_keys_that_become_equal(cls: Any, count: int) -> None:
    """Keys that became equal can't make a dict: ValueError with the numbers and the path."""
    keys = [Mutable(i) for i in range(count)]
    tree = {"k": [cls((key, key.name) for key in keys)]}
    leaves, spec = pydag.dag_flatten(tree)
    assert pydag.dag_unflatten(spec, leaves) == tree
    keys[0].name, keys[0].hash = keys[1].name, keys[1].hash
    for _ in range(2):
        with pytest.raises(ValueError, match=f"{count} keys made a dict of {count - 1}") as info:
            pydag.dag_unflatten(spec, leaves)
        assert "tree['k'][0]" in str(info.value)


def _found_by_collector(start: object) -> list[object]:
    """All that can be reached from an object through the collector."""
    found: dict[int, object] = {}
    pending = [start]
    while pending:
        for obj in gc.get_referents(pending.pop()):
            if id(obj) not in found and not isinstance(obj, type | types.ModuleType):
                found[id(obj)] = obj
                pending.append(obj)
    return list(found.values())


@pytest.mark.parametrize(
    "keys", [[f"name{i}" for i in range(8)], range(70, 78), [*"abcdef", 1, None]]
)
def test_template_is_out_of_reach(keys: Any) -> None:
    """The dict that large dicts are copied from can't be found, and so not changed, by anybody."""
    tree = dict.fromkeys(keys, 0)
    leaves, spec = pydag.dag_flatten(tree)
    assert pydag.dag_unflatten(spec, leaves) == tree
    candidates = [*_found_by_collector(spec), *gc.get_objects()]
    candidates += gc.get_referrers(*keys, *candidates[:20])
    for obj in candidates:
        if type(obj) is dict and list(obj) == list(keys) and obj is not tree:
            assert set(obj.values()) != {None}


def test_a_mapping_that_is_asked_is_not_taken_for_an_instance() -> None:
    """The sanitizers see that nothing is read where an instance has its registration."""

    class Asked(Key):
        def __hash__(self) -> int:
            return hash(self.name)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Asked) and self.name == other.name

        def __lt__(self, other: Any) -> bool:
            return bool(self.name < other.name)

    for size in range(1, 60):
        tree = [{Asked(f"{i:02}"): object() for i in range(size)}]
        freed = [bytes(n) for n in range(1, 2000, 3)]
        first = pydag.dag_flatten(tree)
        freed.clear()
        for _ in range(2):
            leaves, spec = pydag.dag_flatten(tree)
            assert spec == first[1]
            assert list(map(id, leaves)) == list(map(id, first[0]))


RUNS: dict[str, list[Any]] = {
    "texts with a common beginning": [f"layer {i}" for i in range(12)],
    "texts longer than a word": [f"{'x' * 9}{i}{'y' * i}" for i in range(14)],
    "texts that begin others": ["", "a", "ab", "abc", "a" * 8, "a" * 9, "a" * 16],
    "texts with zeros": ["a", "a\0", "a\0\0", "\0", "", "a\0b"],
    "texts of the upper half of a byte": ["\xff", "\x7f", "\x80", "z", "\xe4", "\xe4a"],
    "texts of more than a byte": ["\u0100", "\xff", "z", "\U0001f600", "\uffff", "\u0100a", ""],
    "many texts": [str(i) for i in range(300)],
    "ints": [5, -1, 0, 3, -7, 255, 256, 2**31, -(2**31)],
    "ints of 64 bits": [2**63 - 1, -(2**63), 0, 2**62, -1],
    "ints of more": [2**63, -(2**63) - 1, 0, 2**200, -(2**200), 1],
    "many ints": list(range(-200, 200)),
    "tuples": [(i % 3, f"k{i}") for i in range(9)],
    "tuples that begin others": [(), (1,), (1, 2), (1, 2, 3), (0, 5)],
    "tuples of equal first items": [("w", i) for i in range(20)],
    "tuples that begin others, in pairs": [(f"{i // 2}" * 9, *"y" * (i % 2)) for i in range(8)],
    "tuples whose first items are equal objects": [(str(10**9), i) for i in range(5)],
    "tuples of large ints": [(2**70, i) for i in range(4)] + [(2**71, 0), (-(2**70), 3)],
    "floats": [1.5, -2.0, 0.0, 3],
    "bytes": [b"b", b"a", b""],
}


@pytest.mark.parametrize("name", RUNS)
def test_order_is_that_of_sorted(name: str) -> None:
    """Whatever the order of insertion: the leaves come in the order of `sorted`."""
    shuffled = list(RUNS[name])
    for seed in range(5):
        random.Random(seed).shuffle(shuffled)
        leaves, spec = pydag.dag_flatten({key: i for i, key in enumerate(shuffled)})
        assert [shuffled[i] for i in leaves] == sorted(shuffled)
        assert list(spec.unflatten(leaves)) == shuffled


def test_keys_with_code_of_their_own() -> None:
    """A subclass of int or str in a key decides itself how it compares."""

    class Reversed(int):
        def __lt__(self, other: Any) -> bool:
            return int(self) > int(other)

        __hash__ = int.__hash__

    for make in (lambda key: key, lambda key: (0, key)):
        tree = {make(Reversed(i)): i for i in (2, 0, 1)}
        assert pydag.dag_leaves(tree) == [2, 1, 0]
