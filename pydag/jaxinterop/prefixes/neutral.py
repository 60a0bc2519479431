# SPDX-License-Identifier: Apache-2.0
"""Structures in which nodes of ours stand for the nodes of users' classes.

A wrapper marks the leaves of a tree by building the tree with marks in their place. A class may
check what it holds when it is built, and refuse a mark. Our nodes don't.
"""

from collections.abc import Iterable
from typing import Any

import optree

from pydag import _core
from pydag._core import PyDagSpec
from pydag.registry.functions import register_pydag_node
from pydag.typing import Dag

_BUILTIN = frozenset(
    (
        optree.PyTreeKind.TUPLE,
        optree.PyTreeKind.LIST,
        optree.PyTreeKind.DICT,
        optree.PyTreeKind.ORDEREDDICT,
        optree.PyTreeKind.DEFAULTDICT,
        optree.PyTreeKind.DEQUE,
        optree.PyTreeKind.NONE,
        optree.PyTreeKind.LEAF,
    )
)


class Node:
    """Stands for a node of a user's class.

    Args:
        meant: The spec of that node alone.
    """

    def __init__(self, meant: PyDagSpec, children: Iterable[Any]) -> None:
        self.meant, self.children = meant, tuple(children)


register_pydag_node(Node, lambda node: (node.children, node.meant), Node)


def neutral(spec: PyDagSpec) -> PyDagSpec:
    """The structure with nodes of ours for those of users' classes."""

    def of_node(node: PyDagSpec) -> PyDagSpec:
        if node.kind in _BUILTIN:
            return node
        holes = [object() for _ in range(node.num_children)]
        return _core.flatten(Node(node, holes), **_options(node))[1]

    return spec.transform(of_node)


def meant(spec: PyDagSpec) -> PyDagSpec:
    """The structure that a neutral one stands for."""

    def of_node(node: PyDagSpec) -> PyDagSpec:
        if node.type is not Node:
            return node
        built: Node = node.unflatten([object() for _ in range(node.num_children)])
        return built.meant

    return spec.transform(of_node)


def class_of(node: Dag) -> type:
    """The class of a node; for one of ours, the class that it stands for."""
    return node.meant.type if type(node) is Node and node.meant.type is not None else type(node)


def _options(spec: PyDagSpec) -> dict[str, Any]:
    return {"namespace": spec.namespace, "none_is_leaf": spec.none_is_leaf}


class Nothing:
    """A node with children, built as None."""

    def __init__(self, children: Iterable[Any]) -> None:
        self.children = tuple(children)


register_pydag_node(Nothing, lambda node: (node.children, None), lambda _, children: None)


def without_refusing(spec: PyDagSpec) -> PyDagSpec:
    """The structure with None for the nodes of classes that refuse to hold None."""

    def of_node(node: PyDagSpec) -> PyDagSpec:
        if node.kind in _BUILTIN:
            return node
        try:
            node.unflatten([None] * node.num_children)
        except Exception:
            holes = [object() for _ in range(node.num_children)]
            return _core.flatten(Nothing(holes), **_options(node))[1]
        return node

    return spec.transform(of_node)


class Slot:
    """Stands for a leaf: an object with an identity of its own, also if the leaf is a number."""

    def __init__(self, index: int) -> None:
        self.index = index


def marked(spec: PyDagSpec) -> Dag:
    """A tree of a structure, with a `Slot` in the place of each leaf and nodes of ours."""
    return _core.unflatten(neutral(spec), map(Slot, range(spec.num_leaves)))
