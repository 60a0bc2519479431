# SPDX-License-Identifier: Apache-2.0
"""Functions mapped over the distinct leaves of DAGs."""

from collections.abc import Callable
from typing import Any

from pydag import _core
from pydag.typing import Dag, Identity, IsLeaf


def dag_map(
    func: Callable[..., Any],
    tree: Dag,
    /,
    *rests: Dag,
    is_leaf: IsLeaf | None = None,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> Dag:
    """Call a function once for each distinct leaf; the result is shared as `tree` is.

    Args:
        func: Gets the leaf, and what each of `rests` holds at its place.
        tree: The DAG.
        rests: Trees with at least the structure of `tree`, which give each of its shared objects
            one answer: the same object at every path, or equal values.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        ValueError: A rest doesn't have the structure of `tree`.
        SharingError: A rest gives one shared object two answers.
        CycleError: An object contains itself.

    >>> w = [1, 2]
    >>> out = dag_map(lambda x: x * 10, {"a": w, "b": w})
    >>> out, out["a"] is out["b"]
    ({'a': [10, 20], 'b': [10, 20]}, True)
    """
    return _core.map(func, tree, rests, is_leaf, none_is_leaf, namespace, identity)


def dag_map_with_path(
    func: Callable[..., Any],
    tree: Dag,
    /,
    *rests: Dag,
    is_leaf: IsLeaf | None = None,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> Dag:
    """As `dag_map`; the function also gets the path of the leaf, a tuple of entries.

    The path of a shared leaf is its anchor's, the first in traversal order.

    Args:
        func: Gets the path, the leaf, and what each of `rests` holds at its place.
        tree: The DAG.
        rests: Trees with at least the structure of `tree`, which give each of its shared objects
            one answer: the same object at every path, or equal values.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        ValueError: A rest doesn't have the structure of `tree`.
        SharingError: A rest gives one shared object two answers.
        CycleError: An object contains itself.

    >>> dag_map_with_path(lambda path, x: (path, x), {"a": [7]})
    {'a': [(('a', 0), 7)]}
    """
    return _core.map_with_path(func, tree, rests, is_leaf, none_is_leaf, namespace, identity)


def dag_map_with_accessor(
    func: Callable[..., Any],
    tree: Dag,
    /,
    *rests: Dag,
    is_leaf: IsLeaf | None = None,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> Dag:
    """As `dag_map`; the function also gets the `PyTreeAccessor` of the leaf.

    Args:
        func: Gets the accessor, the leaf, and what each of `rests` holds at its place.
        tree: The DAG.
        rests: Trees with at least the structure of `tree`, which give each of its shared objects
            one answer: the same object at every path, or equal values.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        ValueError: A rest doesn't have the structure of `tree`.
        SharingError: A rest gives one shared object two answers.
        CycleError: An object contains itself.

    >>> dag_map_with_accessor(lambda accessor, x: accessor.codify("tree"), {"a": [7]})
    {'a': ["tree['a'][0]"]}
    """
    return _core.map_with_accessor(func, tree, rests, is_leaf, none_is_leaf, namespace, identity)
