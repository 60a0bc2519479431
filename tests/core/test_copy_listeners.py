# SPDX-License-Identifier: Apache-2.0
"""Who keeps notes of objects learns what `dag_map` and `dag_copy` made of them."""

from collections.abc import Iterator
from typing import Any

import pytest

import pydag
from pydag.structure.copies import copy_listeners


@pydag.register_fields
class Pair:
    def __init__(self, a: Any, b: Any = None) -> None:
        self.a, self.b = a, b


@pytest.fixture
def told() -> Iterator[list[tuple[Any, Any]]]:
    """The pairs that a listener got."""
    found: list[tuple[Any, Any]] = []

    def listener(tree: Any, made: Any) -> None:
        found.append((tree, made))

    copy_listeners.append(listener)
    yield found
    copy_listeners.remove(listener)


@pytest.mark.parametrize(
    "make",
    [
        pydag.dag_copy,
        lambda tree: pydag.dag_copy(tree, is_leaf=lambda x: False),
        lambda tree: pydag.dag_map(str, tree),
        lambda tree: pydag.dag_map(lambda x, y: x, tree, tree),
        lambda tree: pydag.dag_map(str, tree, where="*a"),
        lambda tree: pydag.dag_map_with_path(lambda path, x: x, tree),
        lambda tree: pydag.dag_map_with_accessor(lambda path, x: x, tree),
    ],
)
def test_a_listener_gets_both(make: Any, told: list[tuple[Any, Any]]) -> None:
    """A listener gets the tree and the result, where None and a registered class are in them."""
    tree = [Pair(1), 2]
    for _ in range(2):  # the second time the structure is known
        made = make(tree)
        assert told[-1][0] is tree
        assert told[-1][1] is made
    assert len(told) == 2


def test_most_trees_tell_nobody(told: list[tuple[Any, Any]]) -> None:
    """Without None, or without a registered class, no listener is called."""
    for tree in ([1, None], Pair(1, 2), {"a": [None]}):
        pydag.dag_copy(tree)
        pydag.dag_map(lambda x: x, tree)
    assert told == []


def test_a_listener_that_raises_or_goes() -> None:
    """What a listener raises goes to the caller; one may remove itself."""

    def fails(tree: Any, made: Any) -> None:
        copy_listeners.remove(fails)
        raise KeyError("listener")

    makes: tuple[Any, ...] = (pydag.dag_copy, lambda tree: pydag.dag_map(lambda x: x, tree))
    for make in makes:
        copy_listeners.append(fails)
        with pytest.raises(KeyError, match="listener"):
            make(Pair(1))
        assert make(Pair(1)).a == 1
