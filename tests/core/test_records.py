# SPDX-License-Identifier: Apache-2.0
"""A structure as records of its nodes, and back: `nodes_of`, `spec_from_nodes`, `check_rows`."""

import struct
from typing import Any

import pytest
from hypothesis import given
from strategies import dags, thorough
from test_pickle import REFUSAL, SPEC
from test_pickle_fuzz import BAD

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
