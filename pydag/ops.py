# SPDX-License-Identifier: Apache-2.0
"""optree's `tree_*` functions for DAGs: what is shared stays shared.

Each option is explained at each function, in the same words, so that an editor shows it there;
tests/test_help.py sees to that.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import optree

from . import _core
from ._core import PyDagSpec
from .typing import Dag, Identity, IsLeaf, Leaf, Path

T = TypeVar("T")


def dag_flatten(
    tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> tuple[list[Leaf], PyDagSpec]:
    """Take a DAG apart: its distinct leaves, in first-visit order, and its structure.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        CycleError: An object contains itself.

    >>> shared = [1.0, 2.0]
    >>> dag_flatten({"encoder": shared, "decoder": shared})
    ([1.0, 2.0], PyDagSpec({'decoder': &0 [*, *], 'encoder': *0}))
    """
    return _core.flatten(tree, is_leaf, none_is_leaf, namespace, identity)


def dag_unflatten(spec: PyDagSpec, leaves: Iterable[Leaf]) -> Dag:
    """Put a DAG together again, with fresh objects; each shared one is built once.

    Args:
        spec: The structure.
        leaves: As many as it has, in the order of `dag_flatten`.

    Raises:
        ValueError: There are too few or too many leaves.

    >>> leaves, spec = dag_flatten([[1], [2]])
    >>> dag_unflatten(spec, ["a", "b"])
    [['a'], ['b']]
    """
    return _core.unflatten(spec, leaves)


def dag_leaves(
    tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> list[Leaf]:
    """The distinct leaves of a DAG, in first-visit order.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        CycleError: An object contains itself.

    >>> w = [0.5]
    >>> dag_leaves({"encoder": w, "decoder": w})
    [0.5]
    """
    return _core.leaves(tree, is_leaf, none_is_leaf, namespace, identity)


def dag_structure(
    tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> PyDagSpec:
    """The structure of a DAG, sharing included.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        CycleError: An object contains itself.

    >>> w = [0.5]
    >>> dag_structure([w, w]) == dag_structure([[0.5], [0.5]])
    False
    """
    return _core.structure(tree, is_leaf, none_is_leaf, namespace, identity)


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


def dag_flatten_with_path(
    tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> tuple[list[Path], list[Leaf], PyDagSpec]:
    """The path of each distinct leaf, the leaves, and the structure.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        CycleError: An object contains itself.

    >>> dag_flatten_with_path({"a": [7]})
    ([('a', 0)], [7], PyDagSpec({'a': [*]}))
    """
    return _core.flatten_with_path(tree, is_leaf, none_is_leaf, namespace, identity)


def dag_flatten_with_accessor(
    tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> tuple[list[optree.PyTreeAccessor], list[Leaf], PyDagSpec]:
    """The accessor of each distinct leaf, the leaves, and the structure.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        CycleError: An object contains itself.

    >>> accessors, leaves, spec = dag_flatten_with_accessor({"a": [7]})
    >>> accessors[0]({"a": [8]})
    8
    """
    return _core.flatten_with_accessor(tree, is_leaf, none_is_leaf, namespace, identity)


def dag_paths(
    tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> list[Path]:
    """The path of each distinct leaf; a shared one's is its anchor's.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        CycleError: An object contains itself.

    >>> dag_paths({"a": [7, 8]})
    [('a', 0), ('a', 1)]
    """
    return _core.structure(tree, is_leaf, none_is_leaf, namespace, identity).paths()


def dag_accessors(
    tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> list[optree.PyTreeAccessor]:
    """The accessor of each distinct leaf; a shared one's is its anchor's.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        CycleError: An object contains itself.

    >>> [accessor.codify("tree") for accessor in dag_accessors({"a": [7, 8]})]
    ["tree['a'][0]", "tree['a'][1]"]
    """
    return _core.structure(tree, is_leaf, none_is_leaf, namespace, identity).accessors()


def dag_copy(
    tree: T,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    leaf: Callable[[Leaf], Leaf] | None = None,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> T:
    """New containers, shared as they were, around the same leaves, or around new ones.

    Neither isolates the copy from what a leaf refers to (a view of an array has the same memory),
    nor from aux_data and meta fields, which original and copy have in common.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        leaf: Makes the new leaf, such as `copy.copy` or `jnp.copy`; called once for each distinct
            leaf, numbers and text included. Left out, the leaves stay.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        CycleError: An object contains itself.

    >>> w = [object()]
    >>> a, b = dag_copy((w, w))
    >>> a is b, a is w, a[0] is w[0]
    (True, False, True)
    >>> a, b = dag_copy((w, w), leaf=lambda x: object())
    >>> a is b, a[0] is w[0]
    (True, False)
    """
    copied: T = (
        _core.copy(tree, is_leaf, none_is_leaf, namespace, identity)
        if leaf is None
        else _core.map(leaf, tree, (), is_leaf, none_is_leaf, namespace, identity)
    )
    return copied
