# SPDX-License-Identifier: Apache-2.0
"""Which leaves belong to modules: what the JAX boundary asks about numbers."""

from typing import Any

import pytest

import pydag
from pydag import _core


@pydag.register_module
class Module:
    def __init__(self, *parts: Any) -> None:
        self.parts = list(parts)


@pydag.register_fields
class Record:
    def __init__(self, *parts: Any) -> None:
        self.parts = list(parts)


SHARED = [5, {"a": 6}]


@pytest.mark.parametrize(
    ("tree", "owned", "mixed"),
    [
        ([1, {"a": 2}, Record(3)], (), ()),
        ([1, Module(2, (3, {"a": 4})), 5], (1, 2, 3), ()),
        (Module(1, Record(2), 3), (0, 2), ()),
        (Record(1, Module(2), 3), (1,), ()),
        ([Module(SHARED), Module(SHARED)], (0, 1), ()),
        ([Record(SHARED), Record(SHARED)], (), ()),
        ([Module(SHARED), 1, Record(SHARED)], (0, 1), (0, 1)),
        ([Record(SHARED), 1, Module(SHARED)], (0, 1), (0, 1)),
        ([SHARED, Module(SHARED)], (0, 1), (0, 1)),
        ([SHARED[1], Module(SHARED)], (0, 1), (0,)),
        (Module(), (), ()),
    ],
)
def test_module_leaves(tree: Any, owned: tuple[int, ...], mixed: tuple[int, ...]) -> None:
    """The nearest registered owner counts, along every path; those of both sorts are listed."""
    assert _core.module_leaves(pydag.dag_structure(tree)) == (owned, mixed)


def test_sixty_fold() -> None:
    """Sixty-fold sharing is gone through once, from both sides."""
    tree: Any = [1]
    for _ in range(60):
        tree = [tree, tree]
    spec = pydag.dag_structure([Module(tree), Record(tree), 2])
    assert _core.module_leaves(spec) == ((0,), (0,))
