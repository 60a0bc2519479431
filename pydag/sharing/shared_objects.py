# SPDX-License-Identifier: Apache-2.0
"""The shared objects of a DAG, and where they are held."""

import builtins
from dataclasses import dataclass, replace
from typing import Any

import optree

from pydag import _core
from pydag._core import PyDagSpec
from pydag.typing import Dag, Identity, IsLeaf, Path


@dataclass(frozen=True, slots=True)
class SharedObject:
    """A shared object of a DAG.

    Args:
        index: Its number, in traversal order.
        kind: The kind of node that it is.
        type: Its class; None for a leaf where there is only a spec.
        paths: One path for each slot that holds the object, reached through anchors; the first is
            the anchor's.
        object: The object itself; None where there is only a spec.
    """

    index: int
    kind: optree.PyTreeKind
    type: builtins.type | None
    paths: tuple[Path, ...]
    object: Any = None


def shared_of_spec(spec: PyDagSpec) -> list[SharedObject]:
    """What `PyDagSpec.shared` returns."""
    return [SharedObject(index, kind, cls, paths) for index, kind, cls, paths in spec._shared()]


def shared_objects(
    tree: Dag,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> list[SharedObject]:
    """The shared objects of a DAG, and the places where they are held.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        CycleError: An object contains itself.

    >>> w = [1.0]
    >>> [found] = shared_objects({"encoder": w, "decoder": {"out": w}})
    >>> found.paths, found.object is w
    ((('decoder', 'out'), ('encoder',)), True)
    """
    spec, objects = _core.shared_objects(tree, is_leaf, none_is_leaf, namespace, identity)
    return [
        replace(shared, object=found, type=type(found))
        for shared, found in zip(shared_of_spec(spec), objects, strict=True)
    ]


_shared = property(shared_of_spec, doc="The shared objects: index, kind, type and paths.")
setattr(PyDagSpec, "shared", _shared)  # noqa: B010 (the stub has it as a property already)
