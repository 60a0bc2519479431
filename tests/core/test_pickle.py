# SPDX-License-Identifier: Apache-2.0
"""Specs as pickles: what comes back, and that no state, however malformed, does harm."""

import copy
import itertools
import os
import pickle
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, Self

import optree
import pytest

import pydag
from pydag import PyDagSpec

Point = namedtuple("Point", "x y")
REFUSAL = (ValueError, TypeError, RuntimeError)
State = tuple[Any, ...]


class Box:
    def __init__(self, aux: Any, *children: Any) -> None:
        self.aux, self.children = aux, children


@pydag.register_fields(meta_fields=("name",))
class Layer:
    def __init__(self, w: Any) -> None:
        self.w, self.name = w, "layer"


@pydag.register_fields(data_fields=("b", "a"))
class Fixed:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


pydag.register_pydag_node(
    Box, lambda x: (x.children, x.aux, range(len(x.children))), lambda aux, items: Box(aux, *items)
)


def every_kind() -> Any:
    """A DAG with each kind of node in it, shared and not."""
    w = [0.5, object()]
    shared = {"b": w, "a": w}
    return [
        shared,
        (shared, None, ()),
        OrderedDict(z=w, a=2.5),
        defaultdict(list, k=w, j=1),
        deque([w], maxlen=3),
        deque(),
        Point(w, 1),
        time.gmtime(0),
        Box("aux", w, 2),
        Layer(w),
        Fixed(w, shared),
        {3: 1, "x": 2, (1, 2): w},
        {},
    ]


SPEC = pydag.dag_structure(every_kind())
STATE: State = SPEC.__getstate__()


def restored(state: Any) -> PyDagSpec:
    """A spec with that state."""
    spec = PyDagSpec.__new__(PyDagSpec)
    spec.__setstate__(state)
    return spec


def is_harmless(state: Any) -> bool:
    """Whether a state is refused as it should be, or gives a spec that works; True if refused."""
    try:
        spec = restored(state)
    except REFUSAL:
        return True
    assert restored(spec.__getstate__()) == spec
    assert len(repr(spec)) > 0
    assert len(spec.paths()) == spec.num_leaves
    assert spec.num_shared == len(spec.shared)
    tree = spec.unflatten(range(spec.num_leaves))
    assert spec.flatten_up_to(tree) == list(range(spec.num_leaves))
    return False


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol(protocol: int) -> None:
    """A spec comes back equal, with equal hash and text, from every pickle protocol."""
    back = pickle.loads(pickle.dumps(SPEC, protocol))
    assert (back == SPEC, hash(back) == hash(SPEC), repr(back) == repr(SPEC)) == (True, True, True)
    tree = back.unflatten(range(back.num_leaves))
    assert tree[0] is tree[1][0]
    assert list(tree[0]) == ["b", "a"]


@pytest.mark.parametrize(
    "tree", [1, None, (), [], {}, [1], (None,), Point(1, [2]), deque(maxlen=0)], ids=repr
)
@pytest.mark.parametrize("none_is_leaf", [True, False])
def test_small_specs(tree: Any, none_is_leaf: bool) -> None:
    """The smallest specs survive, `none_is_leaf` included."""
    spec = pydag.dag_structure(tree, none_is_leaf=none_is_leaf)
    back = pickle.loads(pickle.dumps(spec))
    assert back == spec
    assert back.none_is_leaf is none_is_leaf


def test_copies() -> None:
    """A spec is immutable, so its copies are itself."""
    assert copy.copy(SPEC) is SPEC
    assert copy.deepcopy([SPEC, SPEC]) == [SPEC, SPEC]


def test_namespace_survives() -> None:
    """A class is looked up in the namespace that it was registered in."""
    pydag.register_fields(Local, ("x",), namespace="pickled")
    try:
        spec = pydag.dag_structure([Local()], namespace="pickled")
        back = pickle.loads(pickle.dumps(spec))
        assert (back.namespace, back == spec) == ("pickled", True)
        assert back.unflatten([7])[0].x == 7
    finally:
        pydag.unregister_pydag_node(Local, namespace="pickled")
    with pytest.raises(RuntimeError, match="Local"):
        restored(spec.__getstate__())


class Local:
    x = 1.5


def test_class_with_other_fields_now() -> None:
    """A state whose class has other fields now is refused."""
    pydag.register_fields(Local, ("x",))
    state = pydag.dag_structure(Local()).__getstate__()
    pydag.unregister_pydag_node(Local)
    pydag.register_fields(Local, ("y",))
    with pytest.raises(ValueError, match="fields"):
        restored(state)
    pydag.unregister_pydag_node(Local)


def test_state_is_not_aliased() -> None:
    """Neither a state that was given nor one that was taken is the spec's own."""
    state = SPEC.__getstate__()
    assert state == STATE
    assert all(type(part) in (int, bool, str, bytes, tuple) for part in state)


def test_spec_is_immutable() -> None:
    """A spec that has a structure can't be given another one."""
    with pytest.raises(TypeError, match="changed"):
        SPEC.__setstate__(STATE)
    with pytest.raises(TypeError):
        SPEC.__init__()  # type: ignore[misc]  # there is none
    with pytest.raises(AttributeError):
        SPEC.num_leaves = 3  # type: ignore[misc]  # that is the point
    with pytest.raises(TypeError):
        PyDagSpec()
    with pytest.raises(TypeError):
        type("Sub", (PyDagSpec,), {})


ODD: list[Any] = [None, True, -1, 0, 2**70, 1.5, "", "x", b"", b"x" * 7, (), (1,), [], {}, object]


@pytest.mark.parametrize("place", range(6))
def test_parts_of_another_type(place: int) -> None:
    """Each part of the state is checked for its type."""
    for odd in ODD:
        if type(odd) is not type(STATE[place]):
            with pytest.raises(REFUSAL):
                restored((*STATE[:place], odd, *STATE[place + 1 :]))


@pytest.mark.parametrize("state", [*ODD, STATE[:5], (*STATE, 1), list(STATE)], ids=repr)
def test_state_of_another_shape(state: Any) -> None:
    """A state that isn't a tuple of six is refused."""
    with pytest.raises(REFUSAL):
        restored(state)


CODES = {  # of optree.PyTreeKind, and in pickles
    "custom type": (Box("aux"), 0, 0),
    "leaf": (1, 1, 1),
    "None": (None, 2, 2),
    "tuple": ((), 3, 3),
    "list": ([], 4, 4),
    "dict": ({}, 5, 5),
    "namedtuple": (Point(1, 2), 6, 6),
    "OrderedDict": (OrderedDict(), 7, 7),
    "defaultdict": (defaultdict(int), 8, 8),
    "deque": (deque(), 9, 9),
    "struct sequence": (time.gmtime(0), 10, 10),
    "fields": (Layer(1), 0, 11),
}


@pytest.mark.parametrize("name", CODES)
def test_codes_of_kinds_never_change(name: str) -> None:
    """A kind has its number in pickles for ever, and one of its own in optree's numbering."""
    tree, optree_kind, code = CODES[name]
    spec = pydag.dag_structure(tree)
    assert spec.kind == optree.PyTreeKind(optree_kind)
    assert spec.__getstate__()[3][0] == code
    assert spec._listing()[0][0] == name


def test_code_of_an_alias_never_changes() -> None:
    """A later occurrence has the code 12 in pickles, and its anchor's number as count."""
    shared: list[Any] = []
    nodes = pydag.dag_structure([(), shared, shared]).__getstate__()[3]
    assert nodes[24:] == b"\x0c\0\0\0\0\0\0\0"


def test_truncated_nodes() -> None:
    """Nodes cut off anywhere are refused."""
    for size in range(len(STATE[3])):
        with pytest.raises(ValueError, match="malformed"):
            restored((*STATE[:3], STATE[3][:size], *STATE[4:]))


def test_missing_and_extra_references() -> None:
    """References cut off anywhere, or too many, are refused."""
    places, refs = STATE[4:]
    for kept in (*(refs[:i] for i in range(len(refs))), (*refs, None)):
        with pytest.raises(REFUSAL):
            restored((*STATE[:5], kept))
    for cut in (*(places[:i] for i in range(len(places))), places + b"\0"):
        with pytest.raises(REFUSAL):
            restored((*STATE[:4], cut, refs))


def test_every_byte_of_the_nodes() -> None:
    """Each byte of the nodes, varied, gives a refusal or a spec that works."""
    refused = 0
    for i, value in itertools.product(range(len(STATE[3])), (0, 1, 2, 9, 11, 12, 13, 127, 255)):
        nodes = bytearray(STATE[3])
        nodes[i] = value
        refused += is_harmless((*STATE[:3], bytes(nodes), *STATE[4:]))
    assert refused > 1000


def test_every_reference() -> None:
    """Each reference, replaced by odd things or by another reference, does no harm."""
    refs = STATE[5]
    for i in range(len(refs)):
        for odd in (*ODD, tuple, int, Point, time.struct_time, Layer, *refs):
            is_harmless((*STATE[:5], (*refs[:i], odd, *refs[i + 1 :])))


def test_every_place() -> None:
    """Each place of a reference, varied, gives a refusal or a spec that works."""
    places = STATE[4]
    for i, value in itertools.product(range(len(places)), range(len(STATE[5]) + 1)):
        is_harmless((*STATE[:4], places[:i] + bytes([value]) + places[i + 1 :], STATE[5]))


def test_many_references() -> None:
    """The indices of references take as many bytes as their number requires."""
    for count, width in ((200, 1), (300, 2), (70_000, 4)):
        tree = [deque([1], maxlen=i + 1) for i in range(count)]
        spec = pydag.dag_structure(tree)
        assert len(spec.__getstate__()[4]) == width * count
        assert pickle.loads(pickle.dumps(spec)) == spec


class Counting(tuple[int, ...]):
    """Says that it is both, and counts how often its own code runs."""

    n_fields = n_sequence_fields = 2
    n_unnamed_fields = 0
    _fields = ("x", "y")
    _asdict = None
    runs = 0

    def __new__(cls, items: Any) -> Self:
        cls.runs += 1
        return tuple.__new__(cls, items)


@pytest.mark.parametrize("name", ["namedtuple", "struct sequence"])
def test_class_of_a_tuple_that_is_no_such_class(name: str) -> None:
    """A state can't name any class for a tuple that has one: none of its code runs."""
    tree = Point(0, 0) if name == "namedtuple" else os.terminal_size((0, 0))
    state = pydag.dag_structure(tree).__getstate__()
    assert state[5] == (type(tree),)
    for cls in (Counting, tuple, Point, os.terminal_size, type("Sub", (tuple,), {"_fields": "xy"})):
        if cls is type(tree):
            assert restored((*state[:5], (cls,))).unflatten([0, 0]) == tree
            continue
        with pytest.raises(ValueError, match=f"must be a {name} class"):
            restored((*state[:5], (cls,)))
    assert Counting.runs == 0
