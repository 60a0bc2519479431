# SPDX-License-Identifier: Apache-2.0
"""The shared objects of a DAG, and where they are held."""

from dataclasses import replace

from pydag import _core
from pydag.typing import Dag, Identity, IsLeaf

from .shared_object import SharedObject, shared_of_spec


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
