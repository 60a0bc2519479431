# SPDX-License-Identifier: Apache-2.0
"""`dag_ravel` for PyTorch: one flat tensor for the distinct leaves, and the way back."""

from typing import Unpack

import torch
from optree.integrations.torch import TensorTree as TensorTree
from optree.integrations.torch import tree_ravel as optree_ravel

from pydag.integrations._ravel import Unravel, ravel
from pydag.public.options import with_options
from pydag.typing import IsLeaf, KeywordOptions


@with_options
def dag_ravel(
    tree: TensorTree, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> tuple[torch.Tensor, Unravel]:
    """One flat tensor of all distinct leaves, and a function that puts such a tensor back.

    Each object is in it once, a value once for each occurrence. The returned function gives a tree
    with the same sharing.

    Args:
        tree: The DAG.

    Raises:
        ValueError: By the returned function: the tensor has another shape or dtype.
        CycleError: An object contains itself.

    """
    return ravel(optree_ravel, tree, is_leaf=is_leaf, **options)
