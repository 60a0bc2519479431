# SPDX-License-Identifier: Apache-2.0
"""Broadcasting and transposing, with callbacks, keys and aux_data that turn against them."""

import gc
from collections.abc import Callable
from typing import Any

import pytest
import specimens as sp

import pydag

W, X = sp.Opaque(), sp.Opaque()
N = [W, X]


class Box:
    """A node with aux_data, which counts how often it is opened."""

    opened = 0

    def __init__(self, *children: Any, aux: Any = None) -> None:
        self.children, self.aux = children, aux


def open_box(box: Box) -> Any:
    """Children and aux_data."""
    Box.opened += 1
    return box.children, box.aux


pydag.register_pydag_node(Box, open_box, lambda aux, items: Box(*items, aux=aux))

MAPS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "broadcast": lambda f: pydag.dag_broadcast_map(f, [N, 1], [N, N]),
    "path": lambda f: pydag.dag_broadcast_map_with_path(f, [N, N], [N, N]),
    "accessor": lambda f: pydag.dag_broadcast_map_with_accessor(f, [N, N], [N, N]),
    "transpose": lambda f: pydag.dag_transpose_map(f, [N, N]),
    "transpose path": lambda f: pydag.dag_transpose_map_with_path(f, [N, N]),
    "transpose accessor": lambda f: pydag.dag_transpose_map_with_accessor(f, [N, N]),
}
ASKS: dict[str, Callable[[Callable[[Any], bool]], Any]] = {
    "prefix": lambda is_leaf: pydag.dag_broadcast_prefix([1, N], [[3, 4], N], is_leaf),
    "list": lambda is_leaf: pydag.broadcast_prefix([1, N], [[3, 4], N], is_leaf),
    "common": lambda is_leaf: pydag.dag_broadcast_common([1, N], [N, N], is_leaf),
    "errors": lambda is_leaf: pydag.prefix_errors([1, N], [N, N], is_leaf),
    "transpose": lambda is_leaf: pydag.dag_transpose(
        pydag.dag_structure([1]), pydag.dag_structure([1, 1]), [N], is_leaf
    ),
}


@pytest.mark.parametrize("name", MAPS)
def test_raising_function(name: str) -> None:
    """An exception passes through unchanged, and nothing is left behind."""
    count = 0

    def boom(*_: Any) -> Any:
        nonlocal count
        count += 1
        if count == 2:
            raise LookupError("mine")
        return [1]

    for _ in range(2):
        count = 0
        with pytest.raises(LookupError) as info:
            MAPS[name](boom)
        assert info.value.args == ("mine",)
        assert count == 2


@pytest.mark.parametrize("name", [*MAPS, *ASKS])
def test_callback_that_comes_back(name: str) -> None:
    """A callback may start the same again, change what is being worked on, and collect garbage."""
    depth = 0

    def again(*_: Any) -> Any:
        nonlocal depth
        if depth < 2:
            depth += 1
            (MAPS.get(name) or ASKS[name])(again)
        gc.collect()
        return [1] if name in MAPS else False

    (MAPS.get(name) or ASKS[name])(again)
    assert depth == 2


def test_tree_that_is_emptied() -> None:
    """A predicate that empties what is being flattened gives some answer, or an error; no crash."""
    for name in ("dag_broadcast_prefix", "broadcast_prefix", "dag_broadcast_common"):
        full: list[Any] = [[1, 2], [3, [4]]]

        def empty(_: Any, full: list[Any] = full) -> bool:
            full.clear()
            return False

        with pytest.raises((ValueError, IndexError)):
            getattr(pydag, name)([[1, 1], [2]], full, empty)


def test_each_node_is_opened_once() -> None:
    """A flatten function runs once for each of the two trees."""
    for name in ("dag_broadcast_prefix", "broadcast_prefix", "broadcast_common", "prefix_errors"):
        Box.opened = 0
        getattr(pydag, name)(Box(1, 2), Box(N, Box(3)))
        assert Box.opened == 3


@pytest.mark.parametrize("where", ["aux", "key"])
def test_comparison_that_raises(where: str) -> None:
    """What a user's `==` raises passes through."""

    class Odd:
        """Equal to nothing: it raises."""

        def __eq__(self, other: object) -> bool:
            raise LookupError("mine")

        def __hash__(self) -> int:
            return 7

    def tree() -> Any:
        return Box(1, aux=Odd()) if where == "aux" else {Odd(): 1, "a": 2}

    for function in (pydag.dag_broadcast_prefix, pydag.broadcast_common, pydag.prefix_errors):
        with pytest.raises(LookupError, match="mine"):
            function(tree(), tree())


def test_cycles_are_told() -> None:
    """An object that contains itself is a `CycleError`, on either side."""
    loop: list[Any] = [1]
    loop.append(loop)
    for function in (
        *(pydag.dag_broadcast_prefix, pydag.broadcast_prefix, pydag.dag_broadcast_common),
        *(pydag.broadcast_common, pydag.prefix_errors),
    ):
        for trees in ((1, loop), (loop, [1, 2]), (loop, loop)):
            if function is pydag.prefix_errors and trees == (1, loop):
                continue  # nobody looks at what a prefix that is a leaf stands for
            with pytest.raises(pydag.CycleError):
                function(*trees)
