# SPDX-License-Identifier: Apache-2.0
"""User code that runs inside the core and turns against it."""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest
from registering import Box

import pydag

CONTAINERS: dict[str, Callable[[], Any]] = {
    "list": lambda: [1, 2, 3],
    "dict": lambda: {"a": 1, "b": 2, "c": 3},
    "OrderedDict": lambda: OrderedDict(a=1, b=2, c=3),
    "defaultdict": lambda: defaultdict(list, a=1, b=2, c=3),
    "deque": lambda: deque([1, 2, 3]),
}
CHANGES: dict[str, Callable[[Any], Any]] = {
    "clear": lambda tree: tree.clear(),
    "pop": lambda tree: tree.popitem() if isinstance(tree, dict) else tree.pop(),
    "grow": lambda tree: (
        tree.update({f"k{i}": i for i in range(100)})
        if isinstance(tree, dict)
        else tree.extend(range(100))
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("container", CONTAINERS)
def test_container_changed_by_is_leaf_of_a_child(container: str, change: str) -> None:
    """The walk sees the children that a container had when it was opened."""
    tree = CONTAINERS[container]()

    def is_leaf(x: Any) -> bool:
        if x == 1:
            CHANGES[change](tree)
        return False

    leaves, spec = pydag.dag_flatten(tree, is_leaf=is_leaf)
    assert (leaves, spec.num_children) == ([1, 2, 3], 3)


@pytest.mark.parametrize("container", CONTAINERS)
def test_container_cleared_by_its_own_is_leaf(container: str) -> None:
    """What the predicate does to a container before it is opened counts."""

    def is_leaf(x: Any) -> bool:
        if not isinstance(x, int):
            x.clear()
        return False

    assert pydag.dag_leaves(CONTAINERS[container](), is_leaf=is_leaf) == []


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("container", CONTAINERS)
def test_container_changed_by_a_flatten_function(container: str, change: str) -> None:
    """A flatten function may change the container that holds its object."""
    tree = CONTAINERS[container]()

    class Vandal:
        pass

    def flatten(_: Any) -> Any:
        CHANGES[change](tree)
        return (), None

    pydag.register_pydag_node(Vandal, flatten, lambda *_: None)
    tree["a" if isinstance(tree, dict) else 0] = Vandal()
    assert pydag.dag_leaves(tree) == [2, 3]


def test_leaves_changed_by_an_unflatten_function() -> None:
    """Leaves that an unflatten function takes away are too few, not read from thin air."""
    leaves = [1, 2, 3]

    def unflatten(_: Any, children: Any) -> None:
        leaves.clear()

    class Thief(Box):
        pass

    pydag.register_pydag_node(Thief, lambda box: (box.children, None), unflatten)
    spec = pydag.dag_structure([Thief(1), 2, 3])
    with pytest.raises(ValueError, match="Too few leaves"):
        pydag.dag_unflatten(spec, leaves)


def test_predicate_sees_only_the_first_tree() -> None:
    """`is_leaf` is asked about the caller's first tree, and about nothing else."""
    tree, rest = [[1], (2,)], [[3], (4,)]
    seen: list[Any] = []

    def look(x: Any) -> bool:
        seen.append(x)
        return False

    pydag.dag_map(lambda x, y: x, tree, rest, is_leaf=look)
    assert [id(x) for x in seen] == [id(x) for x in (tree, tree[0], 1, tree[1], 2)]


def test_state_set_while_it_is_being_set() -> None:
    """A spec that a key's hash function restores meanwhile is not restored over."""
    hooks: list[Callable[[], None]] = []

    class Key:
        def __hash__(self) -> int:
            while hooks:
                hooks.pop()()
            return 1

    state = pydag.dag_structure({Key(): [1]}).__getstate__()
    other = pydag.dag_structure([1, 2, 3]).__getstate__()
    spec = pydag.PyDagSpec.__new__(pydag.PyDagSpec)
    hooks.append(lambda: spec.__setstate__(other))
    with pytest.raises(TypeError, match="changed"):
        spec.__setstate__(state)
    assert spec.num_leaves == 3
