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
from registering import Layer

import pydag
from pydag import PyDagSpec

Point = namedtuple("Point", "x y")
REFUSAL = (ValueError, TypeError, RuntimeError)
State = tuple[Any, ...]


class Box:
    def __init__(self, aux: Any, *children: Any) -> None:
        self.aux, self.children = aux, children


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
        Layer(w=w),
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
    """The spec's own state is neither one that was given nor one that was taken."""
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
    "fields": (Layer(w=1), 0, 11),
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


def replaced(place: int, part: Any) -> State:
    """The state with another part."""
    return (*STATE[:place], part, *STATE[place + 1 :])


def test_states_that_are_no_states() -> None:
    """Parts of other types, too few or too many, nodes and references cut off are refused."""
    *_, nodes, places, refs = STATE
    states = [*ODD, STATE[:5], (*STATE, 1), list(STATE)]
    for place, part in enumerate(STATE):
        states += [replaced(place, odd) for odd in ODD if type(odd) is not type(part)]
    for place, part in ((3, nodes), (4, places), (5, refs)):
        states += [replaced(place, part[:size]) for size in range(len(part))]
    for state in (*states, replaced(5, (*refs, None)), replaced(4, places + b"\0")):
        with pytest.raises(REFUSAL):
            restored(state)


def test_states_with_another_part() -> None:
    """Each byte of the nodes, place and reference, varied: a refusal, or a spec that works."""
    *_, nodes, places, refs = STATE
    refused = 0
    for i, value in itertools.product(range(len(nodes)), (0, 1, 2, 9, 11, 12, 13, 127, 255)):
        refused += is_harmless(replaced(3, nodes[:i] + bytes([value]) + nodes[i + 1 :]))
    assert refused > 1000
    for i, value in itertools.product(range(len(places)), range(len(refs) + 1)):
        is_harmless(replaced(4, places[:i] + bytes([value]) + places[i + 1 :]))
    for i in range(len(refs)):
        for odd in (*ODD, tuple, int, Point, time.struct_time, Layer, *refs):
            is_harmless(replaced(5, (*refs[:i], odd, *refs[i + 1 :])))


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
