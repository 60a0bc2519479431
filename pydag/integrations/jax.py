# SPDX-License-Identifier: Apache-2.0
"""`dag_ravel` for JAX: one flat array for the distinct leaves, and the way back."""

try:
    import jax
    from optree.integrations.jax import ArrayLikeTree as ArrayLikeTree
    from optree.integrations.jax import ArrayTree as ArrayTree
    from optree.integrations.jax import tree_ravel as optree_ravel
except ImportError as error:
    raise ImportError(
        f'pydag.integrations.jax needs JAX: pip install "pydag-tree[jax]" ({error})'
    ) from error

from pydag.typing import Identity, IsLeaf

from ._ravel import Unravel, ravel

__all__ = ["ArrayLikeTree", "ArrayTree", "dag_ravel"]


def dag_ravel(
    tree: ArrayLikeTree,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: Identity = "all",
) -> tuple[jax.Array, Unravel]:
    """One flat array of all distinct leaves, and a function that puts such an array back.

    Each object is in it once, a value once for each occurrence. What comes back is tied as the tree
    is.

    Args:
        tree: The DAG.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.

    Raises:
        ValueError: By the function that comes back: the array has another shape or dtype.
        CycleError: An object contains itself.

    >>> w = jax.numpy.ones(2)
    >>> flat, unravel = dag_ravel({"encoder": w, "decoder": w})
    >>> flat.shape
    (2,)
    >>> tree = unravel(flat)
    >>> tree["encoder"] is tree["decoder"]
    True
    """
    return ravel(optree_ravel, tree, is_leaf, none_is_leaf, namespace, identity)
