# SPDX-License-Identifier: Apache-2.0
"""A copy of a model that has nothing in common with it but its configuration."""

import jax

from pydag.jaxinterop.content.content import take_apart
from pydag.jaxinterop.content.leaves import copied, is_number
from pydag.jaxinterop.foreign.jax_private import is_ref
from pydag.jaxinterop.typed import T
from pydag.sharing.refs import copy_of_leaf
from pydag.typing import Leaf


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
        TypeError: A leaf is an object of a class that is not registered.
        CycleError: An object contains itself.

    >>> w = jnp.ones(2)
    >>> model = {"encoder": w, "decoder": w, "name": "net"}
    >>> target = copy(model)
    >>> target["encoder"] is target["decoder"], target["encoder"] is w, target["name"]
    (True, False, 'net')
    """
    leaves, content = take_apart(tree)
    new: T = content.build(map(_copy_of, leaves))
    return new


def _copy_of(leaf: Leaf) -> Leaf:
    if isinstance(leaf, jax.Array) and not is_ref(leaf):
        return copied(leaf)
    return leaf if is_number(leaf) else copy_of_leaf(leaf)
