# SPDX-License-Identifier: Apache-2.0
"""Structures in which nodes of ours stand for the nodes of users' classes.

A wrapper marks the leaves of a tree by building the tree with marks in their place. A class may
check what it holds when it is built, and refuse a mark. Our nodes don't.
"""

from collections.abc import Callable, Iterable
from typing import Any

import optree

import pydag._core as _core
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
        spec: The spec of that node alone.
    """

    def __init__(self, spec: PyDagSpec, children: Iterable[Any]) -> None:
        self.spec, self.children = spec, tuple(children)


register_pydag_node(Node, lambda node: (node.children, node.spec), Node)


def with_own_nodes(spec: PyDagSpec) -> PyDagSpec:
    """The structure with nodes of ours for those of users' classes."""

    def of_node(node: PyDagSpec) -> PyDagSpec:
        if node.kind in _BUILTIN:
            return node
        holes = [object() for _ in range(node.num_children)]
        return _core.flatten(Node(node, holes), **_options(node))[1]

    return spec.transform(of_node)


def _options(spec: PyDagSpec) -> dict[str, Any]:
    return {"namespace": spec.namespace, "none_is_leaf": spec.none_is_leaf}


class Cautious:
    """Stands for a node of a user's class, and is built as that; as None where the class refuses.

    Args:
        spec: The spec of that node alone.
        refuses: Says of what it was to be built from whether it may refuse that.
    """

    def __init__(
        self, spec: PyDagSpec, refuses: Callable[[tuple[Any, ...]], bool], children: Iterable[Any]
    ) -> None:
        self.spec, self.refuses, self.children = spec, refuses, tuple(children)


def _build(aux: Any, children: Iterable[Any]) -> Any:
    spec, refuses = aux
    held = tuple(children)
    try:
        return spec.unflatten(held)
    except Exception:
        if not refuses(held):
            raise
        return None


register_pydag_node(Cautious, lambda node: (node.children, (node.spec, node.refuses)), _build)


def _holds_none(held: tuple[Any, ...]) -> bool:
    return any(child is None for child in held)


def _always(_: tuple[Any, ...]) -> bool:
    return True


def build(spec: PyDagSpec, leaves: Iterable[Any], are_marks: bool = False) -> Dag:
    """A tree with these leaves; None for a whole object whose class refuses what it would hold.

    Args:
        are_marks: Whether the leaves aren't the user's: a class may refuse those. Else it may
            refuse None alone, and whatever else it raises is the user's.
    """
    held, refuses = list(leaves), _always if are_marks else _holds_none
    try:
        return _core.unflatten(spec, held)
    except Exception:
        if not (are_marks or _holds_none(tuple(held))):
            raise

    def of_node(node: PyDagSpec) -> PyDagSpec:
        if node.kind in _BUILTIN:
            return node
        holes = [object() for _ in range(node.num_children)]
        return _core.flatten(Cautious(node, refuses, holes), **_options(node))[1]

    return _core.unflatten(spec.transform(of_node), held)
