# SPDX-License-Identifier: Apache-2.0
"""New leaves are written into the objects of a tree by their positions: all, or none."""

from collections import OrderedDict, deque
from typing import Any

import pytest

import pydag
from pydag import _core


@pydag.register_fields
class Part:
    """A class whose attributes are data."""

    def __init__(self, x: Any) -> None:
        self.x = x


@pydag.register_pydag_node_class
class Opened:
    """A class that a flatten function opens."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def tree_flatten(self) -> Any:
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> Any:
        return cls(*children)


def plan_for(tree: Any, positions: Any, **more: Any) -> Any:
    """What writes at these positions of a tree."""
    spec = pydag.dag_structure(tree)
    return _core.update_plan(spec=spec, positions=positions, **({"writers": None} | more))


def test_every_kind_of_container() -> None:
    """Containers stay the objects that they are; a tuple is replaced where something changes."""
    part, shared = Part("a"), ["b"]
    tree: Any = {
        "deque": deque([part], maxlen=3),
        "ordered": OrderedDict(z="c", y=shared),
        "pair": ("d", shared),
        "other": ("e", None),
    }
    other, ordered = tree["other"], tree["ordered"]
    leaves = pydag.dag_leaves(tree)
    assert sorted(leaves) == list("abcde")
    positions = [i for i, leaf in enumerate(leaves) if leaf != "e"]
    _core.carry_out(plan_for(tree, positions), tree, [leaves[i].upper() for i in positions])
    assert part.x == "A"
    assert tree["deque"][0] is part
    assert tree["ordered"] is ordered
    assert list(ordered.items()) == [("z", "C"), ("y", ["B"])]
    assert shared == ["B"]
    assert tree["pair"] == ("D", shared)
    assert tree["pair"][1] is shared
    assert tree["other"] is other


def test_what_cannot_be_written_leaves_all_as_it_was() -> None:
    """Everything that may fail is tried before the first write."""
    opened = Opened(1)
    tree = [0, opened]
    with pytest.raises(TypeError, match="can't be changed in place") as caught:
        _core.carry_out(plan_for(tree, [0, 1]), tree, ("a", "b"))
    assert "tree[1]" in str(caught.value)
    assert tree == [0, opened]
    _core.carry_out(plan_for(tree, [0]), tree, ("a",))
    assert tree == ["a", opened]


def test_a_failing_writer_undoes_all() -> None:
    """What was written before is written back."""
    first, second = Opened(1), Opened(2)
    tree = [0, first, [second]]

    def write(opened: Any, children: Any) -> None:
        if children[0] == "c":
            raise KeyError("no")
        opened.x = children[0]

    plan = plan_for(tree, [0, 1, 2], writers=lambda cls: write)
    with pytest.raises(KeyError):
        _core.carry_out(plan, tree, ("a", "b", "c"))
    assert tree[0] == 0
    assert first.x == 1
    assert second.x == 2


def test_bad_plans() -> None:
    """Positions, leaves and plans are checked."""
    core: Any = _core
    with pytest.raises(IndexError, match="no leaf 2"):
        plan_for([1, 2], [2])
    with pytest.raises(TypeError, match="1 positions"):
        _core.carry_out(plan_for([1, 2], [0]), [1, 2], ())
    with pytest.raises(TypeError, match="expected an UpdatePlan"):
        core.carry_out(None, [1, 2], ())
    with pytest.raises(TypeError, match="expected an Updated"):
        core.open_updated([1])
    with pytest.raises(TypeError, match="expected a result"):
        core.make_updated(None, [1, 2])
