# SPDX-License-Identifier: Apache-2.0
"""Functions that divide a DAG by its leaves, or replace some of them."""

from typing import Any, TypeVar, Unpack

import pydag._core as _core
from pydag.ops.select import selector
from pydag.public.options import with_options
from pydag.typing import Dag, Identity, IsLeaf, KeywordOptions, Where

T = TypeVar("T")


@with_options
def dag_partition(
    predicate: Where,
    tree: T,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    fillvalue: Any = None,
    **options: Unpack[KeywordOptions],
) -> tuple[T, T]:
    """Two DAGs structured as `tree`: one with the selected leaves, one with the others.

    The predicate is called once per distinct leaf. Both halves have the sharing of the tree, except
    for None, which has no identity. `dag_combine` puts the halves together again, sharing included.
    The tree is the second argument, as in optree; in `dag_mask(tree, where)` it is the first.

    Args:
        fillvalue: Replaces, in each half, the leaves of the other half. It isn't copied.

    Raises:
        SharingError: A prefix of booleans gives one object two answers.
        ValueError: A prefix of booleans doesn't have the structure of the tree.
        CycleError: An object contains itself.

    >>> w = [1.0, 2.0]
    >>> dag_partition(lambda x: x > 1, {"encoder": w, "decoder": w})
    ({'encoder': [None, 2.0], 'decoder': [None, 2.0]}, {'encoder': [1.0, None], 'decoder': [1.0, None]})
    """  # noqa: E501  # what it prints is one line
    leaves, spec = _core.flatten_at(tree, "tree", is_leaf=is_leaf, **options)
    chosen = selector(predicate, options.get("namespace", ""))(leaves, spec)
    pairs = list(zip(leaves, chosen, strict=True))
    left = spec.unflatten([leaf if is_chosen else fillvalue for leaf, is_chosen in pairs])
    return left, spec.unflatten([fillvalue if is_chosen else leaf for leaf, is_chosen in pairs])


@with_options
def dag_replace_nones(
    sentinel: Any, tree: Dag, /, namespace: str = "", *, identity: Identity = "all"
) -> Dag:
    """The DAG, with each None replaced by something else.

    Args:
        sentinel: The replacement; the same object at each place.

    Raises:
        CycleError: An object contains itself.

    >>> dag_replace_nones(0, {"a": None, "b": [1, None]})
    {'a': 0, 'b': [1, 0]}
    """
    if tree is None:
        return sentinel
    leaves, spec = _core.flatten(tree, none_is_leaf=True, namespace=namespace, identity=identity)
    return spec.unflatten([sentinel if leaf is None else leaf for leaf in leaves])
