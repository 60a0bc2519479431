# SPDX-License-Identifier: Apache-2.0
"""A copy of a DAG, shared as the DAG is."""

from collections.abc import Callable
from typing import TypeVar

from pydag import _core
from pydag.public.compiled import compiled
from pydag.typing import Identity, IsLeaf, Leaf

T = TypeVar("T")


@compiled("copy")
def dag_copy(
    tree: T,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
    leaf: Callable[[Leaf], Leaf] | None = None,
) -> T:
    """New containers, shared as they were, around the same leaves, or around new ones.

    Neither isolates the copy from what a leaf refers to (a view of an array has the same memory),
    nor from aux_data and meta fields, which original and copy have in common.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.
        leaf: Makes the new leaf, such as `copy.copy` or `jnp.copy`; called once for each distinct
            leaf, numbers and text included. Left out, the leaves stay.

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
