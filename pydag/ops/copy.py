# SPDX-License-Identifier: Apache-2.0
"""A copy of a DAG, with the sharing of the DAG."""

import copy
from collections.abc import Callable
from typing import TypeVar, Unpack

import pydag._core as _core
from pydag.public.compiled import compiled
from pydag.typing import IsLeaf, KeywordOptions, Leaf

T = TypeVar("T")


@compiled("copy")
def dag_copy(
    tree: T,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    leaf: Callable[[Leaf], Leaf] | None = None,
    deep: bool = False,
    **options: Unpack[KeywordOptions],
) -> T:
    """New containers around the same leaves, which are not copied. Sharing is kept.

    To get a model with new arrays, use `deep=True`, `leaf=`, or `pydag.jaxinterop.tree.copy`. Only
    the first isolates the copy from whatever a leaf refers to. Aux_data and meta fields are never
    copied.

    Args:
        leaf: Makes the new leaf, such as `copy.copy` or `jnp.copy`; called once for each distinct
            leaf, numbers and text included. By default leaves are kept.
        deep: Copies leaves, and keys, as `copy.deepcopy` does, each object once, with one memo for
            all: an object that refers to a node of the tree refers to the new node in the copy.
            Unlike there a tuple is new at each place, registered classes are rebuilt by their
            registration, and a node that contains itself raises.

    Raises:
        CycleError: An object contains itself.
        TypeError: `leaf` and `deep` are both given, or a leaf can't be copied.

    >>> w = [object()]
    >>> a, b = dag_copy((w, w))
    >>> a is b, a is w, a[0] is w[0]
    (True, False, True)
    >>> a, b = dag_copy((w, w), leaf=lambda x: object())
    >>> a is b, a[0] is w[0]
    (True, False)
    >>> a, b = dag_copy(([[1]], {2}), deep=True)
    >>> a, b
    ([[1]], {2})
    """
    copied: T
    if deep:
        if leaf is not None:
            raise TypeError("dag_copy takes `leaf` or `deep`, not both")
        copied = _core.deep_copy(tree, copy.deepcopy, is_leaf=is_leaf, **options)
    elif leaf is not None:
        copied = _core.map(leaf, tree, (), None, is_leaf=is_leaf, **options)
    else:
        copied = _core.copy(tree, is_leaf=is_leaf, **options)
    return copied
