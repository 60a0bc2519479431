# SPDX-License-Identifier: Apache-2.0
"""Computes over a DAG: visits each object once, however many paths lead to it.

All three functions go through the DAG children first, on the heap: depth is bounded by memory, and
the cost grows with the number of objects, not of paths. Their options are those of `dag_flatten`.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar, Unpack

import pydag._core as _core
from pydag.public.options import with_options
from pydag.typing import Dag, IsLeaf, KeywordOptions

R = TypeVar("R")

# The keys are classes. `Mapping` is invariant in them: with `type` it would take hardly any dict.
Functions: TypeAlias = Callable[..., R] | Mapping[Any, Callable[..., R]]


@with_options
def dag_fold(
    f: Functions[R],
    tree: Dag,
    is_leaf: IsLeaf | None = None,
    *,
    down: Functions[Any] | None = None,
    init: Any = None,
    **options: Unpack[KeywordOptions],
) -> R:
    """Compute a result for each object of a DAG from the results for the object's children.

    `f(node, children)` is called once per distinct object, children first, and once per occurrence
    of a value. Every parent of an object gets the same result for it. A leaf and None have no
    children. A tuple is a node as well: if an object holds its parts in a tuple, `f` is called for
    the parts, for the tuple, and then for the object, whose only child is the tuple.

    Args:
        f: Gets the object and a tuple of the children's results, in traversal order. But if all
            attributes of an instance are its children, these come in the order of the parameters of
            `__init__`; if an attribute isn't a parameter, all come by name. Or a mapping from
            classes to such functions, looked up along the object's MRO; `object` matches all other
            classes.
        down: Hands information down. `down(node, context)` returns the context of the children. If
            it is a mapping from classes to functions without one for the node, the children get the
            node's own context. `f` is then called as `f(node, children, context)`, once for each
            object and each context in which the object appears.
        init: The context of the root.
        none_is_leaf: ... Makes no difference here: in either case `f(None, ())` is called.

    Returns:
        The result of `f` for the root.

    Raises:
        CycleError: An object contains itself.
        TypeError: The mapping has no function for a class, or a context can't be hashed.

    >>> term = ("x", 2.0)
    >>> dag_fold(lambda node, children: 1 + max(children, default=0), [[term], term])
    4
    >>> size = {list: lambda node, sizes: 1 + sum(sizes), object: lambda node, sizes: 1}
    >>> shared = [1.0, 2.0]
    >>> dag_fold(size, [shared, shared])
    7
    >>> def deepest(node, below, depth):
    ...     return max(below, default=depth)
    >>> dag_fold(deepest, [[[]], []], down=lambda node, depth: depth + 1, init=0)
    2
    """
    result: R = _core.fold(f, tree, down, init, is_leaf=is_leaf, **options)
    return result


@with_options
def dag_rewrite(
    f: Functions[Any], tree: Dag, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> Dag:
    """Replace objects of a DAG, children first; an object without changes below it is kept.

    `f(node)` is called once per distinct object, and once per occurrence of a value. It gets the
    node with its parts rewritten: the node itself if no part changed, else a new node. It returns
    that node, or a replacement other than None, which isn't rewritten again. The result has the
    sharing of `tree`.

    Args:
        f: Or a mapping from classes to such functions, looked up along the node's MRO. A node
            without a function is kept.
        none_is_leaf: ... Makes no difference here: in either case `f(None)` is called.

    Raises:
        CycleError: An object contains itself, before or after.
        TypeError: A function returns None for a node that isn't None.

    >>> layer, head = ["dense", 4], ["head", 2]
    >>> model = {"encoder": layer, "decoder": layer, "head": head}
    >>> wider = dag_rewrite({int: lambda n: 8 if n == 4 else n}, model)
    >>> wider["encoder"], wider["encoder"] is wider["decoder"], wider["head"] is head
    (['dense', 8], True, True)
    >>> dag_rewrite(lambda node: node, model) is model
    True
    """
    return _core.rewrite(f, tree, is_leaf=is_leaf, **options)


@with_options
def dag_intern(tree: Dag, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]) -> Dag:
    """Make equal parts of a DAG one object: "hash consing", or common subexpressions found.

    Nodes are equal if class, keys, aux_data and children are. Dicts with different insertion orders
    differ. Leaves are equal by identity, values by type and `==`; 0.0 and -0.0 differ, any NaN
    equals any other. The first of several equal nodes replaces the others. If nothing merges, the
    tree itself is returned. Mutable containers, such as equal lists, are merged as well: the
    function is meant for expressions, not for state.

    Args:
        none_is_leaf: ... Makes no difference here.
        identity: ... Makes no difference here: a leaf equals itself.

    Raises:
        CycleError: An object contains itself.

    >>> x = object()
    >>> a, b = dag_intern((["sin", x], ["sin", x]))
    >>> a is b
    True
    """
    return _core.intern(tree, is_leaf=is_leaf, **options)
