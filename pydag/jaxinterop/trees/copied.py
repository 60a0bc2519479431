# SPDX-License-Identifier: Apache-2.0
"""A copy of a model that has nothing in common with it but its configuration."""

from typing import TypeVar

import jax

from pydag.jaxinterop.static.leaves import copy_of_array, is_number
from pydag.sharing.refs import copy_of_leaf, is_ref
from pydag.typing import Leaf

from .opened import opened, tree_of

T = TypeVar("T")


def copy(tree: T) -> T:
    """A real copy of a DAG: containers, modules, arrays and refs are new, and tied as they were.

    A change of the copy doesn't reach the original, nor the other way round; either may be donated
    while the other lives. Configuration, numbers and text are the same objects in both. An array
    keeps its type and sharding, one of NumPy stays one of NumPy, and a ref becomes a new ref with
    the content that the old one has now.

    `pydag.dag_copy`, which is faster, makes new containers around the same arrays.

    Args:
        tree: The DAG.

    Raises:
        TypeError: A leaf is an object of a class that is not registered, and holds arrays.
        CycleError: An object contains itself.

    >>> w = jnp.ones(2)
    >>> model = {"encoder": w, "decoder": w, "name": "net"}
    >>> target = copy(model)
    >>> target["encoder"] is target["decoder"], target["encoder"] is w, target["name"]
    (True, False, 'net')
    """
    untraced, found = opened(tree)
    copied: T = tree_of(untraced, [_copied(leaf) for leaf in found])
    return copied


def _copied(leaf: Leaf) -> Leaf:
    if is_ref(leaf) or not isinstance(leaf, jax.Array):
        return leaf if is_number(leaf) or leaf is None else copy_of_leaf(leaf)
    return copy_of_array(leaf)
