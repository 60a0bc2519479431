# SPDX-License-Identifier: Apache-2.0
"""A copy of a DAG, with the sharing of the DAG."""

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
    **options: Unpack[KeywordOptions],
) -> T:
    """New containers around the same leaves, which are not copied. Sharing is kept.

    To get a model with new arrays, use `leaf=`, or `pydag.jaxinterop.tree.copy`. Neither isolates
    the copy from an object that a leaf refers to (a view of an array has the same memory),
    nor from aux_data and meta fields, which original and copy have in common.

    Args:
        leaf: Makes the new leaf, such as `copy.copy` or `jnp.copy`; called once for each distinct
            leaf, numbers and text included. By default leaves are kept.

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
        _core.copy(tree, is_leaf=is_leaf, **options)
        if leaf is None
        else _core.map(leaf, tree, (), is_leaf=is_leaf, **options)
    )
    return copied
