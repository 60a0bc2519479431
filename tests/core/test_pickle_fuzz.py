# SPDX-License-Identifier: Apache-2.0
"""States that no flattening could have made, built by hand and at random."""

import random
import struct
import time
from collections import OrderedDict, deque, namedtuple
from typing import Any

import pytest
from operations import DEPTHS
from test_pickle import STATE, is_harmless, restored

import pydag

CUSTOM, LEAF, NONE, TUPLE, LIST, DICT, NAMEDTUPLE, ORDERED = range(8)
DEFAULT, DEQUE, STRUCTSEQ, FIELDS, ALIAS = range(8, 13)
Point = namedtuple("Point", "x y")


def state(
    *nodes: tuple[int, int, int], refs: tuple[Any, ...] = (), none_is_leaf: bool = False
) -> Any:
    """A state with the nodes (kind, is_anchor, count)."""
    packed = b"".join(struct.pack("<BBxxI", *node) for node in nodes)
    return (STATE[0], none_is_leaf, "", packed, bytes(range(len(refs))), refs)


def keys(*names: Any, places: Any = None) -> Any:
    """Keys as they stand in a state."""
    return (names, places)


TWO = [(LEAF, 0, 0)] * 2

GOOD = {
    "leaf": state((LEAF, 0, 0)),
    "shared leaf": state((LIST, 0, 2), (LEAF, 1, 0), (ALIAS, 0, 0)),
    "shared list": state((TUPLE, 0, 2), (LIST, 1, 1), (LEAF, 0, 0), (ALIAS, 0, 0)),
    "dict": state((DICT, 0, 1), (LEAF, 0, 0), refs=(keys("a"),)),
    "sorted dict": state((DICT, 0, 2), *TWO, refs=(keys("b", "a", places=(1, 0)),)),
    "deque": state((DEQUE, 0, 0), refs=(5,)),
}
BAD = {
    "nothing": state(),
    "two roots": state((LEAF, 0, 0), (LEAF, 0, 0)),
    "child missing": state((LIST, 0, 2), (LEAF, 0, 0)),
    "four billion children": state((LIST, 0, 2**32 - 1), (LEAF, 0, 0)),
    "leaf with children": state((LEAF, 0, 1), (LEAF, 0, 0)),
    "None with children": state((NONE, 0, 1), (LEAF, 0, 0)),
    "None where it is a leaf": state((NONE, 0, 0), none_is_leaf=True),
    "unknown kind": state((13, 0, 0)),
    "unknown flag": state((LEAF, 2, 0)),
    "anchor without alias": state((LIST, 1, 0)),
    "alias at the root": state((ALIAS, 0, 0)),
    "alias of nothing": state((LIST, 0, 1), (ALIAS, 0, 0)),
    "alias out of range": state((LIST, 0, 3), (LEAF, 1, 0), (ALIAS, 0, 0), (ALIAS, 0, 1)),
    "alias before its anchor": state((LIST, 0, 2), (ALIAS, 0, 0), (LEAF, 1, 0)),
    "alias within its anchor": state((LIST, 1, 1), (ALIAS, 0, 0)),
    "alias deep in its anchor": state((LIST, 1, 1), (TUPLE, 0, 1), (LIST, 0, 1), (ALIAS, 0, 0)),
    "alias that is an anchor": state((LIST, 0, 2), (LEAF, 1, 0), (ALIAS, 1, 0)),
    "tuple that is an anchor": state((LIST, 0, 2), (TUPLE, 1, 0), (ALIAS, 0, 0)),
    "None that is an anchor": state((LIST, 0, 2), (NONE, 1, 0), (ALIAS, 0, 0)),
    "keys too few": state((DICT, 0, 2), (LEAF, 0, 0), (LEAF, 0, 0), refs=(keys("a"),)),
    "keys twice": state((DICT, 0, 2), (LEAF, 0, 0), (LEAF, 0, 0), refs=(keys("a", "a"),)),
    "keys equal": state((DICT, 0, 2), (LEAF, 0, 0), (LEAF, 0, 0), refs=(keys(1, 1.0),)),
    "keys unhashable": state((DICT, 0, 1), (LEAF, 0, 0), refs=(keys([]),)),
    "keys in a list": state((DICT, 0, 0), refs=(([], None),)),
    "keys that are one": state((DICT, 0, 0), refs=(((),),)),
    "places too few": state((DICT, 0, 1), (LEAF, 0, 0), refs=(keys("a", places=()),)),
    "places that are one": state((DICT, 0, 2), *TWO, refs=(keys(1, 2, places=(1, 1)),)),
    "places too high": state((DICT, 0, 2), *TWO, refs=(keys(1, 2, places=(1, 2)),)),
    "places below zero": state((DICT, 0, 2), *TWO, refs=(keys(1, 2, places=(1, -1)),)),
    "places huge": state((DICT, 0, 2), *TWO, refs=(keys(1, 2, places=(1, 2**64)),)),
    "places no numbers": state((DICT, 0, 2), *TWO, refs=(keys(1, 2, places="ba"),)),
    "factory no function": state((DEFAULT, 0, 0), refs=(keys(), 7)),
    "maxlen too small": state((DEQUE, 0, 1), (LEAF, 0, 0), refs=(0,)),
    "maxlen below zero": state((DEQUE, 0, 0), refs=(-1,)),
    "maxlen beyond a size": state((DEQUE, 0, 0), refs=(2**63,)),
    "maxlen huge": state((DEQUE, 0, 0), refs=(2**70,)),
    "maxlen no number": state((DEQUE, 0, 0), refs=("5",)),
    "namedtuple of no class": state((NAMEDTUPLE, 0, 0), refs=("Point",)),
    "namedtuple of no tuple": state((NAMEDTUPLE, 0, 0), refs=(int,)),
    "namedtuple of tuple": state((NAMEDTUPLE, 0, 0), refs=(tuple,)),
    "namedtuple too short": state((NAMEDTUPLE, 0, 1), (LEAF, 0, 0), refs=(Point,)),
    "namedtuple of a struct sequence": state(
        (NAMEDTUPLE, 0, 9), *[(LEAF, 0, 0)] * 9, refs=(time.struct_time,)
    ),
    "struct sequence of tuple": state((STRUCTSEQ, 0, 0), refs=(tuple,)),
    "struct sequence of a namedtuple": state((STRUCTSEQ, 0, 2), *TWO, refs=(Point,)),
    "custom of no pair": state((CUSTOM, 0, 0), refs=(int, None, None)),
    "custom not registered": state((CUSTOM, 0, 0), refs=((int, ""), None, None)),
    "custom of a builtin": state((CUSTOM, 0, 0), refs=((list, ""), None, None)),
    "custom that is fields": state((CUSTOM, 0, 0), refs=((pydag.Alias, ""), None, None)),
    "fields of no pair": state((FIELDS, 0, 0), refs=(pydag.Alias, keys(), (1,))),
    "fields without meta": state((FIELDS, 0, 0), refs=((pydag.Alias, ""), keys(), ())),
    "fields with others": state(
        (FIELDS, 0, 1), (LEAF, 0, 0), refs=((pydag.Alias, ""), keys("x"), (1,))
    ),
    "reference missing": state((DICT, 0, 0)),
    "reference too many": state((LIST, 0, 0), refs=(1,)),
    "reference not used": (*state((LIST, 0, 0))[:5], (1,)),
    "reference not there": (*state((DEQUE, 0, 0))[:4], b"\1", (5,)),
    "half a place": (*state((DEQUE, 0, 0))[:4], b"\0", (5,) * 300),
    "format of the future": (STATE[0] + 1, *STATE[1:]),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_good_states(name: str) -> None:
    """The states below are refused for what their name says, not for how they are written."""
    assert not is_harmless(GOOD[name])


@pytest.mark.parametrize("name", BAD)
def test_bad_states(name: str) -> None:
    """A state that flattening could not have made is refused, with words."""
    with pytest.raises((ValueError, TypeError, RuntimeError)) as info:
        restored(BAD[name])
    assert len(str(info.value)) > 10


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_state(depth: int) -> None:
    """A state a million nodes deep is read, or found to be cut off, without recursion."""
    deep = [(LIST, 0, 1)] * depth
    assert restored(state(*deep, (LEAF, 0, 0))).num_leaves == 1
    with pytest.raises(ValueError, match="missing"):
        restored(state(*deep))


def test_hostile_references() -> None:
    """References whose own methods raise are refused with what they raise, or with words."""

    class Hostile:
        def __hash__(self) -> int:
            raise ValueError("no hash")

        def __getattribute__(self, name: str) -> Any:
            raise TypeError("no attributes")

    for kind in range(13):
        for refs in ((Hostile(),), (keys(Hostile()),), (keys("a", places=(Hostile(),)),)):
            is_harmless(state((kind, 0, 1), (LEAF, 0, 0), refs=refs))


def test_tuple_class_with_hostile_fields() -> None:
    """A tuple class whose fields can't be counted is refused."""

    class Endless(tuple[Any, ...]):
        __slots__ = ()
        _fields = n_sequence_fields = property(lambda self: 1)

    for kind in (NAMEDTUPLE, STRUCTSEQ):
        assert is_harmless(state((kind, 0, 0), refs=(Endless,)))


@pytest.mark.parametrize("seed", range(20))
def test_random_states(seed: int) -> None:
    """Random nodes over random references do no harm."""
    rng = random.Random(seed)
    refs = [keys("a"), keys("b", "a", places=(1, 0)), keys(), None, 3, Point, list, ("x",)]
    refs += [(pydag.Anchor, ""), (pydag.Alias, ""), OrderedDict, deque, (0,)]
    for _ in range(300):
        nodes = [
            (rng.randrange(13), int(rng.random() < 0.2), rng.choice((0, 0, 0, 1, 2)))
            for _ in range(rng.randrange(8))
        ]
        is_harmless(state(*nodes, refs=tuple(rng.choices(refs, k=rng.randrange(5)))))
