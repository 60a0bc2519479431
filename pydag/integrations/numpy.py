# SPDX-License-Identifier: Apache-2.0
"""`dag_ravel` for NumPy: one flat array for the distinct leaves, and the way back."""

from typing import Unpack

import numpy as np
from optree.integrations.numpy import ArrayLikeTree as ArrayLikeTree
from optree.integrations.numpy import ArrayTree as ArrayTree
from optree.integrations.numpy import tree_ravel as optree_ravel

from pydag.public.options import with_options
from pydag.typing import IsLeaf, KeywordOptions

from ._ravel import Unravel, ravel

__all__ = ["ArrayLikeTree", "ArrayTree", "dag_ravel"]


@with_options
def dag_ravel(
    tree: ArrayLikeTree, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> tuple[np.ndarray, Unravel]:
    """One flat array of all distinct leaves, and a function that puts such an array back.

    Each object is in it once, a value once for each occurrence. The returned function gives a tree
    with the same sharing.

    Args:
        tree: The DAG.

    Raises:
        ValueError: By the returned function: the array has another shape or dtype.
        CycleError: An object contains itself.

    >>> w = np.ones(2)
    >>> flat, unravel = dag_ravel({"encoder": w, "decoder": w, "bias": np.zeros(1)})
    >>> flat.tolist()
    [0.0, 1.0, 1.0]
    >>> tree = unravel(flat)
    >>> tree["encoder"] is tree["decoder"]
    True
    """
    return ravel(optree_ravel, tree, is_leaf=is_leaf, **options)
