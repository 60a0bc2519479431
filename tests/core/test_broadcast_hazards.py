# SPDX-License-Identifier: Apache-2.0
"""Broadcasting and transposing, with callbacks, keys and aux_data that turn against them."""

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


def test_each_node_is_opened_once() -> None:
    """A flatten function runs once for each of the two trees."""
    for name in ("dag_broadcast_prefix", "broadcast_prefix", "broadcast_common", "prefix_errors"):
        Box.opened = 0
        getattr(pydag, name)(Box(1, 2), Box(N, Box(3)))
        assert Box.opened == 3


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
