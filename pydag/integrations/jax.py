# SPDX-License-Identifier: Apache-2.0
"""`dag_ravel` for JAX: one flat array for the distinct leaves, and the way back."""

from typing import Unpack

try:
    import jax
    from optree.integrations.jax import ArrayLikeTree as ArrayLikeTree
    from optree.integrations.jax import ArrayTree as ArrayTree
    from optree.integrations.jax import tree_ravel as optree_ravel
except ImportError as error:
    raise ImportError(
        f'pydag.integrations.jax needs JAX: pip install "pydag-tree[jax]" ({error})'
    ) from error

from pydag.public.options import with_options
from pydag.typing import IsLeaf, KeywordOptions

from ._ravel import Unravel, ravel

__all__ = ["ArrayLikeTree", "ArrayTree", "dag_ravel"]


@with_options
def dag_ravel(
    tree: ArrayLikeTree,
    /,
    is_leaf: IsLeaf | None = None,
    **options: Unpack[KeywordOptions],
) -> tuple[jax.Array, Unravel]:
    """One flat array of all distinct leaves, and a function that puts such an array back.

    Each object is in it once, a value once for each occurrence. What comes back is tied as the tree
    is.

    Args:
        tree: The DAG.

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
    return ravel(optree_ravel, tree, is_leaf=is_leaf, **options)
