# SPDX-License-Identifier: Apache-2.0
"""Paths as Python expressions, which the core writes itself where it can."""

import collections
import time
from typing import Any

import optree
import pytest

import pydag
from pydag import _core

Point = collections.namedtuple("Point", "x y")


class Odd:
    """Attributes, of which one has a name that no expression can have."""

    def __init__(self) -> None:
        self.a = 1
        setattr(self, "two words", [2])


class Own:
    """A node whose entries know how they are written."""


class OwnEntry(optree.PyTreeEntry):
    """Written as a call."""

    def codify(self, /, node: str = "") -> str:
        """The call."""
        return f"{node}.part({self.entry!r})"


pydag.register_fields(Odd, ["a", "two words"])
pydag.register_pydag_node(
    Own,
    lambda _: (([1],), None, ("first",)),
    lambda _, __: Own(),
    path_entry_type=OwnEntry,
)

TEXTS = {
    "tree": 1,
    "tree[0]": [1],
    "tree['a']['b c'][1]": {"a": {"b c": (None, 2)}},
    "tree[(1, 'x')]": {(1, "x"): 1},
    "tree.x[0]": Point([1], None),
    "tree[0].tm_year": [time.struct_time((1, *[None] * 8))],
    "tree.part('first')[0]": Own(),
}


@pytest.mark.parametrize("text", TEXTS)
def test_the_path_of_a_leaf(text: str) -> None:
    """Each kind of node has its own way to write a step."""
    assert _core.path_texts(pydag.dag_structure(TEXTS[text]), "tree") == [text]


def test_the_paths_are_those_of_accessors() -> None:
    """The paths are what `codify` says, also behind steps that only it can write."""
    w = [3.0]
    tree: Any = [Odd(), {"k": Own(), "w": w}, Point(Odd(), w), collections.OrderedDict(z=(4, w))]
    spec = pydag.dag_structure(tree)
    assert _core.path_texts(spec, "t") == [a.codify("t") for a in spec.accessors()]
    assert "getattr(t[0], 'two words')[0]" in _core.path_texts(spec, "t")
