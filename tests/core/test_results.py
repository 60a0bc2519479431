# SPDX-License-Identifier: Apache-2.0
"""What operations return in the corner cases, and what sharing makes of them."""

import os
from collections import deque, namedtuple
from typing import Any, Self

import optree
import pytest
from operations import run_apart

import pydag
from pydag import Alias, Anchor

Point = namedtuple("Point", "x y")


def test_leaf_at_the_root() -> None:
    """A leaf, or what `is_leaf` makes one, has the empty path."""
    for tree, options in (
        (7, {}),
        ([7], {"is_leaf": lambda _: True}),
        (None, {"none_is_leaf": True}),
    ):
        paths, leaves, spec = pydag.dag_flatten_with_path(tree, **options)
        assert (paths, leaves) == ([()], [tree])
        assert spec.is_leaf()
        assert pydag.dag_unflatten(spec, "x") == "x"
        assert spec.accessors() == [optree.PyTreeAccessor()]


def test_node_changed_between_two_visits() -> None:
    """A shared node that a predicate changes between two visits is what it was at the first."""
    inner = [1]

    def is_leaf(x: Any) -> bool:
        if x == "change":
            inner.append(2)
        return False

    leaves, spec = pydag.dag_flatten([inner, "change", inner], is_leaf=is_leaf)
    assert (leaves, repr(spec)) == ([1, "change"], "PyDagSpec([&0 [*], *, *0])")


def test_identity_is_per_tree() -> None:
    """The first tree and a rest have tables of their own: one tree may be both."""
    w = [0.5]
    tree = [w, w]
    assert pydag.dag_map(lambda x, y: x + y, tree, tree) == [[1.0], [1.0]]
    assert pydag.dag_map(lambda x, y, z: y, tree, [[1], [1]], tree) == [[1], [1]]


def test_mapped_results_are_shared_as_the_tree_is() -> None:
    """What a function returns for one leaf stands at all its paths, whatever it is."""
    w = object()
    out = pydag.dag_map(lambda _: [1], {"a": w, "b": [w]})
    assert out["a"] is out["b"][0]
    same = object()
    assert pydag.dag_structure(pydag.dag_map(lambda _: same, [[1], [2]])).num_shared == 1


def test_leaves_from_any_iterable() -> None:
    """Leaves may come from any iterable; what isn't one is a TypeError."""
    spec = pydag.dag_structure([1, [2]])
    for leaves in ([3, 4], (3, 4), iter([3, 4]), {3: 0, 4: 0}, (x for x in (3, 4)), range(3, 5)):
        assert pydag.dag_unflatten(spec, leaves) == [3, [4]]
    bad: Any
    for bad in (7, None, object()):
        with pytest.raises(TypeError, match="iterable"):
            pydag.dag_unflatten(spec, bad)
        with pytest.raises(TypeError, match="iterable"):
            spec.unflatten(bad)


def test_comparison_with_other_things() -> None:
    """`==` and `!=` are negations of each other; only specs have an order, by prefixes."""
    spec = pydag.dag_structure([1])
    theirs: Any = optree.tree_structure
    other: Any
    for other in (spec, pydag.dag_structure([1]), pydag.dag_structure(1), 1, None, (), "x"):
        assert (spec == other) is not (spec != other)
        if isinstance(other, pydag.PyDagSpec):
            assert not spec < other
        else:
            with pytest.raises(TypeError):
                assert spec < other
    assert theirs([1]) != spec


def test_namedtuple_whose_fields_change() -> None:
    """A namedtuple class whose `_fields` changed is printed if they fit; all else works anyway."""
    fields: Any
    make: Any = namedtuple
    for fields, text in (
        ((), "Number of fields (0)"),
        (("x",), "Number of fields (1)"),
        (("x", "y", "z"), "Number of fields (3)"),
        ((1, 2), "PyDagSpec([Changed(*, *)])"),
        ("xy", "PyDagSpec([Changed(x=*, y=*)])"),
        (["y", "z"], "PyDagSpec([Changed(y=*, z=*)])"),
        (None, "'NoneType' object is not iterable"),
    ):
        cls = make("Changed", "x y")
        spec = pydag.dag_structure([cls(1, 2)])
        cls._fields = fields
        try:
            assert repr(spec) == text
        except (ValueError, TypeError) as error:
            assert str(error).startswith(text)  # noqa: PT017  # it need not raise
        assert spec.paths() == [(0, 0), (0, 1)]
        assert spec.unflatten([3, 4]) == [(3, 4)]


def test_struct_sequence_with_unnamed_items() -> None:
    """An item of a struct sequence without a name is shown, and found, by its place."""
    stat = os.stat_result(range(10))
    named = "st_mode=*, st_ino=*, st_dev=*, st_nlink=*, st_uid=*, st_gid=*, st_size=*"
    unnamed = "<unnamed@7>=*, <unnamed@8>=*, <unnamed@9>=*"
    assert repr(pydag.dag_structure(stat)) == f"PyDagSpec(os.stat_result({named}, {unnamed}))"
    with pytest.raises(ZeroDivisionError) as info:
        pydag.dag_map(lambda x: 1 // (x - 8), [stat])
    assert info.value.__notes__ == ["raised while mapping tree[0][8]"]


def test_shared_objects_tell_their_class() -> None:
    """Each shared object is listed with its class, a leaf too; a spec alone knows nodes only."""
    leaf, node = bytearray(), [1]
    tree = [leaf, leaf, node, node]
    assert [found.type for found in pydag.shared_objects(tree)] == [bytearray, list]
    assert [found.type for found in pydag.dag_structure(tree).shared] == [None, list]
    kept = pydag.shared_objects(tree, is_leaf=lambda x: x is node)
    assert [found.type for found in kept] == [bytearray, list]
    kinds = [found.kind for found in pydag.shared_objects(tree)]
    assert kinds == [optree.PyTreeKind.LEAF, optree.PyTreeKind.LIST]


def test_namedtuple_with_its_own_new() -> None:
    """A namedtuple subclass is built without its own `__new__`, as `_make` does."""

    class Sorted(Point):
        __slots__ = ()

        def __new__(cls, *items: Any) -> Self:
            return super().__new__(cls, *sorted(items))

    out = pydag.dag_map(lambda x: -x, Sorted(2, 1))
    assert (type(out), tuple(out)) == (Sorted, (-1, -2))


@pytest.mark.parametrize(
    ("tree", "error"),
    [
        (Alias(0), pydag.SharingError),
        ([Anchor(0, [1]), Alias(1)], pydag.SharingError),
        ([Anchor(0, [1]), Anchor(0, [1])], pydag.SharingError),
        (Anchor(0, Alias(0)), pydag.SharingError),
        (Anchor(0, [Alias(0)]), ValueError),
        ([Anchor(0, [Alias(1)]), Anchor(1, [Alias(0)])], ValueError),
        ([Anchor(0, Alias(1)), Anchor(1, Alias(0))], pydag.SharingError),
        (Anchor("0", [1]), TypeError),  # type: ignore[arg-type]  # meant
        (Alias(None), TypeError),  # type: ignore[arg-type]  # meant
        (Anchor(-1, [1]), ValueError),
        (Alias(-1), ValueError),
        (pydag.Node(int, None, (1,)), (TypeError, ValueError)),
        (pydag.Node(7, None, (1,)), TypeError),  # type: ignore[arg-type]  # meant
        (pydag.Node(deque, None, 7), (TypeError, ValueError)),  # type: ignore[arg-type]  # meant
        (pydag.Node(deque, "x", (7,)), (TypeError, ValueError)),
        (pydag.Node(Anchor, None, ()), (TypeError, ValueError)),
    ],
)
def test_derefed_trees_that_make_no_sense(tree: Any, error: Any) -> None:
    """A derefed tree that no `deref` could have made is refused, with the place."""
    with pytest.raises(error) as info:
        pydag.reref({"here": tree})
    notes = "".join(getattr(info.value, "__notes__", ()))
    assert "tree['here']" in str(info.value) + notes
    assert len(str(info.value)) < 2000


def test_marks_stay_registered() -> None:
    """`Anchor`, `Alias` and `Node` are part of the library: they can't be unregistered."""
    source = """
import pydag
for cls in (pydag.Anchor, pydag.Alias, pydag.Node):
    try:
        pydag.unregister_pydag_node(cls)
    except ValueError:
        print("refused")
w = [0.5]
out = pydag.reref(pydag.deref([w, w]))
print(out, out[0] is out[1])
"""
    assert run_apart(source) == "refused\n" * 3 + "[[0.5], [0.5]] True\n"


def test_huge_indices() -> None:
    """Indices may take 63 bits; new ones go above, or are refused."""
    w = [0.5]
    top = 2**63 - 1
    out = pydag.reref([Anchor(top, w), Alias(top)])
    assert out[0] is out[1]
    try:
        out = pydag.deref([Anchor(top, w), Alias(top), (v := [1]), v])
    except (ValueError, OverflowError):
        return
    assert {x.index for x in out} == {top, top + 1}
