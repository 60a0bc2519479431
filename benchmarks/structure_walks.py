# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: functions called for each node of a structure; one level alone."""

from collections.abc import Callable
from typing import Any

from models import Builder, skeletons
from peers import Peers
from rows import Race, Row, at_least, steady
from timing import Effort, Work

import pydag


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """All of them."""
    if "optree" not in peers:
        return []
    model = Builder().module(skeletons()["ResNet18"])
    levels = {
        "a list": [1.5, 2.5, 3.5],
        "a dict": {f"key {i}": 1.5 for i in range(8)},
        "a tuple of 100": (1.5,) * 100,
    }
    return [
        at_least("walk with a function for nodes", 1.1, _walk(peers["optree"], model, _node)),
        at_least("walk with functions for both", 1.1, _walk(peers["optree"], model, _node, _leaf)),
        at_least("traverse", 1.1, _traverse(peers["optree"], model)),
    ] + [
        at_least(f"flatten_one_level of {name}", 1.1, _one_level(peers["optree"], level))
        for name, level in levels.items()
    ]


def _node(cls: Any, data: Any, children: Any) -> Any:
    return None


def _built(node: Any) -> Any:
    return node


def _leaf(leaf: Any) -> Any:
    return leaf


def _walk(optree: Any, tree: Any, *functions: Callable[..., Any]) -> Race:
    """Both give the function a class, data and the results of the children."""
    works = {}
    for name, flatten in (("pydag", pydag.dag_flatten), ("optree", optree.tree_flatten)):
        leaves, spec = flatten(tree)
        works[name] = Work(spec.walk, leaves, *functions)
    return steady(works)


def _traverse(optree: Any, tree: Any) -> Race:
    """Both build each node, and give it to the function."""
    works = {}
    for name, flatten in (("pydag", pydag.dag_flatten), ("optree", optree.tree_flatten)):
        leaves, spec = flatten(tree)
        works[name] = Work(spec.traverse, leaves, _built, _leaf)
    return steady(works)


def _one_level(optree: Any, tree: Any) -> Race:
    """Both give children, data, entries and a function that builds the node."""
    theirs = optree.tree_flatten_one_level
    return steady({"pydag": Work(pydag.dag_flatten_one_level, tree), "optree": Work(theirs, tree)})
