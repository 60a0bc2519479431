# SPDX-License-Identifier: Apache-2.0
"""A structure as records of its nodes, and back: `nodes_of`, `spec_from_nodes`, `check_rows`."""

import random
import struct
from typing import Any

import pytest
from hypothesis import given
from operations import DEPTHS
from strategies import dags, thorough
from test_pickle import REFUSAL, SPEC
from test_pickle_fuzz import BAD, GOOD

import pydag
from pydag import PyDagSpec, _core

Row = tuple[Any, ...]
# The kinds by their codes in pickles, with the number of references of each.
KINDS = (
    ("custom type", 3),
    *(("leaf", 0), ("None", 0), ("tuple", 0), ("list", 0), ("dict", 1), ("namedtuple", 1)),
    *(("OrderedDict", 1), ("defaultdict", 2), ("deque", 1), ("struct sequence", 1)),
    *(("fields", 3), ("alias", 0)),
)
# What is wrong with these states is how they are packed.
PACKED = (
    *("unknown kind", "unknown flag", "reference missing", "reference too many"),
    *("half a place", "format of the future"),
)
LEAF = ("leaf", False, 0)


def again(spec: PyDagSpec) -> PyDagSpec:
    return _core.spec_from_nodes(spec.none_is_leaf, spec.namespace, *_core.nodes_of(spec))


def unpacked(state: Any) -> tuple[bool, str, tuple[Row, ...], tuple[Any, ...]]:
    """A pickled state, whose places have one byte each, as records."""
    _, none_is_leaf, namespace, nodes, places, refs = state
    rest = iter(places)
    rows = []
    for code, is_anchor, count in struct.iter_unpack("<BBxxI", nodes):
        name, num_refs = KINDS[code]
        rows.append((name, bool(is_anchor), count, *(next(rest) for _ in range(num_refs))))
    return none_is_leaf, namespace, tuple(rows), refs


@pytest.mark.parametrize("none_is_leaf", [True, False])
def test_what_the_records_are(none_is_leaf: bool) -> None:
    """A row for each node; a reference that several nodes have stands once."""
    w = [1.0]
    spec = pydag.dag_structure({"b": w, "a": ({"b": w, "a": None},)}, none_is_leaf=none_is_leaf)
    rows, refs = _core.nodes_of(spec)
    assert rows == (
        ("dict", False, 2, 0),
        ("tuple", False, 1),
        ("dict", False, 2, 0),
        LEAF if none_is_leaf else ("None", False, 0),
        ("list", True, 1),
        LEAF,
        ("alias", False, 0),
    )
    assert refs == ((("b", "a"), (1, 0)),)


def test_every_kind_comes_back() -> None:
    """A spec with each kind of node comes back from its records, and has the same ones again."""
    assert again(SPEC) == SPEC
    assert again(SPEC).is_same_order(SPEC)
    assert _core.nodes_of(again(SPEC)) == _core.nodes_of(SPEC)
    rows, refs = _core.nodes_of(SPEC)
    assert {row[0] for row in rows} == {name for name, _ in KINDS}
    assert unpacked(SPEC.__getstate__()) == (False, "", rows, refs)


@thorough
@given(dags())
def test_any_dag_comes_back(tree: Any) -> None:
    """The records of any DAG give an equal spec."""
    spec = pydag.dag_structure(tree)
    assert again(spec) == spec
    rows, refs = _core.nodes_of(spec)
    _core.check_rows(False, rows, len(refs))


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_records(depth: int) -> None:
    """Records a million nodes deep are read, or found to be cut off, without recursion."""
    rows = (("list", False, 1),) * depth
    assert _core.spec_from_nodes(False, "", (*rows, LEAF), ()).num_leaves == 1
    with pytest.raises(ValueError, match="nodes: some are missing"):
        _core.spec_from_nodes(False, "", rows, ())


@pytest.mark.parametrize("name", GOOD)
def test_good_records(name: str) -> None:
    """What makes a good pickled state makes good records."""
    none_is_leaf, namespace, rows, refs = unpacked(GOOD[name])
    _core.check_rows(none_is_leaf, rows, len(refs))
    assert _core.spec_from_nodes(none_is_leaf, namespace, rows, refs).num_nodes > 0


@pytest.mark.parametrize("name", [name for name in BAD if name not in PACKED])
def test_bad_records(name: str) -> None:
    """What is refused in a pickled state is refused in records."""
    with pytest.raises(REFUSAL) as info:
        _core.spec_from_nodes(*unpacked(BAD[name]))
    assert len(str(info.value)) > 10


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ((), r"nodes: some are missing"),
        ((LEAF, LEAF), r"nodes\[1\]: it stands behind the end of the tree"),
        ((("list", False, 1),), r"nodes: some are missing"),
        ((7,), r"nodes\[0\]: expected a tuple"),
        ((["leaf", False, 0],), r"nodes\[0\]: expected a tuple"),
        ((("leaf", False),), r"nodes\[0\]: expected a tuple"),
        ((("*", False, 0),), r"nodes\[0\]: unknown kind '\*'"),
        ((("list\ud800", False, 0),), r"nodes\[0\]: unknown kind"),
        (((None, False, 0),), r"nodes\[0\]: the kind must be a string"),
        ((("leaf", 0, 0),), r"nodes\[0\]: is_anchor must be a bool"),
        ((("leaf", False, 0.0),), r"nodes\[0\]: the number of children"),
        ((("leaf", False, False),), r"nodes\[0\]: the number of children"),
        ((("list", False, -1),), r"nodes\[0\]: the number of children"),
        ((("list", False, 2**32 - 1),), r"nodes\[0\]: the number of children"),
        ((("list", False, 2**70),), r"nodes\[0\]: the number of children"),
        ((("leaf", False, 0, 0),), r"nodes\[0\]: expected 0 references, got 1"),
        ((("list", False, 1), ("dict", False, 0)), r"nodes\[1\]: expected 1 references, got 0"),
        ((("deque", False, 0, 1),), r"nodes\[0\]: a reference must be an index of refs"),
        ((("deque", False, 0, -1),), r"nodes\[0\]: a reference must be an index of refs"),
        ((("deque", False, 0, 2**70),), r"nodes\[0\]: a reference must be an index of refs"),
        ((("deque", False, 0, "0"),), r"nodes\[0\]: a reference must be an index of refs"),
        ((LEAF,), r"refs\[0\]: no node uses it"),
        ((("alias", False, 0),), r"nodes\[0\]: alias 0 must stand behind its anchor"),
        ((("list", True, 1), ("alias", False, 0)), r"nodes\[1\]: alias 0 must stand behind"),
        ((("list", True, 0),), r"nodes: anchor 0 has no alias"),
        ((("tuple", True, 0),), r"nodes\[0\]: a tuple can't be shared"),
    ],
)
def test_errors_name_the_row(rows: Any, error: str) -> None:
    """Both functions say which row or reference is wrong, and why."""
    with pytest.raises(ValueError, match="^" + error):
        _core.spec_from_nodes(False, "", rows, (None,))
    with pytest.raises(ValueError, match="^" + error):
        _core.check_rows(False, rows, 1)


def test_errors_name_the_reference() -> None:
    """A reference that can't be read is named with the row that uses it."""
    rows = (("list", False, 1), ("dict", False, 2, 0), LEAF, LEAF)
    with pytest.raises(ValueError, match=r"^nodes\[1\]: refs\[0\]: keys must be distinct"):
        _core.spec_from_nodes(False, "", rows, ((("a", "a"), None),))
    with pytest.raises(ValueError, match=r"^nodes\[1\]: .* one child for each key"):
        _core.spec_from_nodes(False, "", rows, ((("a",), None),))


@pytest.mark.parametrize(
    "arguments",
    [
        (0, "", (LEAF,), ()),
        (False, None, (LEAF,), ()),
        (False, 7, (LEAF,), ()),
        (False, "\ud800", (LEAF,), ()),
        (False, "", [LEAF], ()),
        (False, "", None, ()),
        (False, "", (LEAF,), []),
    ],
    ids=repr,
)
def test_other_arguments(arguments: Any) -> None:
    """Options, rows or references that are something else are refused."""
    with pytest.raises((TypeError, ValueError)):
        _core.spec_from_nodes(*arguments)


@pytest.mark.parametrize("seed", range(20))
def test_random_damage(seed: int) -> None:
    """Records damaged in several places at once are refused, or give a spec that works."""
    rng = random.Random(seed)
    for _ in range(100):
        rows, refs = map(list, _core.nodes_of(SPEC))
        for _ in range(rng.randrange(1, 4)):
            place, other = rng.randrange(len(rows)), rng.randrange(len(rows))
            action = rng.randrange(5)
            if action == 0:
                del rows[place]
            elif action == 1:
                rows[place] = rows[other]
            elif action == 2:
                rows[place] = (rows[other][0], *rows[place][1:])
            elif action == 3:
                rng.shuffle(refs)
            else:
                fields = list(rows[place])
                fields[rng.randrange(len(fields))] = rng.choice([0, 1, 2, True, None, "leaf", -1])
                rows[place] = tuple(fields)
        try:
            spec = _core.spec_from_nodes(False, "", tuple(rows), tuple(refs))
        except REFUSAL:
            continue
        assert again(spec) == spec
        assert len(spec.unflatten(range(spec.num_leaves))) >= 0


def test_code_of_a_key_runs_meanwhile() -> None:
    """A key whose hash makes the same spec once more does no harm."""
    found: list[Any] = []

    class Key:
        def __hash__(self) -> int:
            if len(found) < 3:
                found.append(None)
                found.append(_core.spec_from_nodes(False, "", rows, refs))
            return 1

    rows = (("dict", False, 1, 0), LEAF)
    refs = (((Key(),), None),)
    spec = _core.spec_from_nodes(False, "", rows, refs)
    assert spec.entries() == [refs[0][0][0]]
