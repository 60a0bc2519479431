# SPDX-License-Identifier: Apache-2.0
"""`dag_ravel` for JAX: one flat array for the distinct leaves, and the way back."""

from functools import partial
from typing import Unpack

try:
    import jax
    from optree.integrations.jax import ArrayLikeTree as ArrayLikeTree
    from optree.integrations.jax import ArrayTree as ArrayTree
    from optree.integrations.jax import tree_ravel as optree_ravel
except ImportError as error:  # pragma: no cover: the tests have JAX
    raise ImportError(
        f'pydag.integrations.jax needs JAX: pip install "pydag-tree[jax]" ({error})'
    ) from error

import pydag._core as _core
from pydag.jaxinterop.content.options import path_text
from pydag.jaxinterop.content.refused import check_value
from pydag.jaxinterop.content.static import static_positions
from pydag.public.options import with_options
from pydag.typing import IsLeaf, KeywordOptions, Leaf

from ._ravel import Unravel, ravel

__all__ = ["ArrayLikeTree", "ArrayTree", "dag_ravel"]


@with_options
def dag_ravel(
    tree: ArrayLikeTree, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> tuple[jax.Array, Unravel]:
    """One flat array of all distinct data, and a function that puts such an array back.

    Each object is in it once, a value once for each occurrence. The returned function gives a tree
    with the same sharing. The numbers of modules, text and functions are configuration, as for
    `pydag.jaxinterop`: they aren't in the array, and unchanged in the new tree.

    Args:
        tree: The DAG.

    Raises:
        ValueError: By the returned function: the array has another shape or dtype.
        CycleError: An object contains itself.
        TypeError: A leaf is an object of a class that is not registered, and holds arrays.

    >>> w = jax.numpy.ones(2)
    >>> flat, unravel = dag_ravel({"encoder": w, "decoder": w})
    >>> flat.shape
    (2,)
    >>> tree = unravel(flat)
    >>> tree["encoder"] is tree["decoder"]
    True
    """
    namespace = options.get("namespace", "")

    def configuration(leaves: list[Leaf], spec: _core.PyDagSpec) -> list[tuple[int, Leaf]]:
        positions = [
            i
            for i in static_positions(leaves, spec, "tree")
            if _core.is_leaf(leaves[i], none_is_leaf=True, namespace=namespace)  # else kept whole
        ]
        for i in positions:
            check_value(leaves[i], partial(path_text, spec, "tree", i))
        return [(i, leaves[i]) for i in positions]

    return ravel(optree_ravel, tree, configuration, is_leaf=is_leaf, **options)
