# SPDX-License-Identifier: Apache-2.0
"""Functions mapped over the distinct leaves of DAGs."""

from collections.abc import Callable
from typing import Any, TypeVar, Unpack, overload

import pydag._core as _core
from pydag.ops.select import Selector, selector
from pydag.public.compiled import check_function, compiled
from pydag.public.options import with_options
from pydag.typing import Builtin, Dag, FlattenOptions, KeywordOptions, MapOptions, Where

T = TypeVar("T")


def _chosen(where: Where | None, options: KeywordOptions) -> Selector | None:
    """The selector of `where=`; None, which means all leaves, if it was left out."""
    return None if where is None else selector(where, options.get("namespace", ""))


@overload
def dag_map(
    func: Callable[..., Any], tree: Builtin, /, *rests: Dag, **options: Unpack[MapOptions]
) -> Any: ...
@overload
def dag_map(
    func: Callable[..., Any], tree: T, /, *rests: Dag, **options: Unpack[MapOptions]
) -> T: ...
@compiled("map")
def dag_map(
    func: Callable[..., Any],
    tree: Dag,
    /,
    *rests: Dag,
    where: Where | None = None,
    **options: Unpack[FlattenOptions],
) -> Dag:
    """Call a function once for each distinct leaf; the result has the sharing of `tree`.

    Args:
        func: Gets the leaf, and the part of each of `rests` at its place.
        where: ... The function is called for these only; other leaves are kept. Left out: all.

    Raises:
        ValueError: A rest doesn't have the structure of `tree`.
        SharingError: A rest gives one shared object two answers, or a prefix of booleans does.
        CycleError: An object contains itself.

    >>> w = [1, 2]
    >>> out = dag_map(lambda x: x * 10, {"a": w, "b": w})
    >>> out, out["a"] is out["b"]
    ({'a': [10, 20], 'b': [10, 20]}, True)
    >>> dag_map(lambda x: x * 10, {"a": w, "b": 3}, where="*a*")
    {'a': [10, 20], 'b': 3}
    """
    return _core.map_where(func, tree, rests, _chosen(where, options), **options)


@with_options
def dag_map_(
    func: Callable[..., Any],
    tree: T,
    /,
    *rests: Dag,
    where: Where | None = None,
    **options: Unpack[FlattenOptions],
) -> T:
    """Call a function once for each distinct leaf, for its side effects.

    An update in place happens once, however many paths lead to the leaf.

    Args:
        func: Gets the leaf, and the part of each of `rests` at its place.
        where: ... The function is called for these only; other leaves are kept. Left out: all.

    Returns:
        The tree itself.

    Raises:
        ValueError, SharingError, CycleError: As `dag_map`.

    >>> w = bytearray(b"a")
    >>> tree = dag_map_(lambda x: x.extend(b"b"), {"encoder": w, "decoder": w})
    >>> tree["encoder"]
    bytearray(b'ab')
    """
    check_function("dag_map_", func, tree)
    _core.for_each(func, tree, rests, _chosen(where, options), **options)
    return tree


@overload
def dag_map_with_path(
    func: Callable[..., Any], tree: Builtin, /, *rests: Dag, **options: Unpack[MapOptions]
) -> Any: ...
@overload
def dag_map_with_path(
    func: Callable[..., Any], tree: T, /, *rests: Dag, **options: Unpack[MapOptions]
) -> T: ...
@compiled("map_with_path")
def dag_map_with_path(
    func: Callable[..., Any],
    tree: Dag,
    /,
    *rests: Dag,
    where: Where | None = None,
    **options: Unpack[FlattenOptions],
) -> Dag:
    """Like `dag_map`; the function also gets the path of the leaf, a tuple of entries.

    The path of a shared leaf is its anchor's, the first in traversal order.

    Args:
        func: Gets the path, the leaf, and the part of each of `rests` at its place.
        where: ... The function is called for these only; other leaves are kept. Left out: all.

    Raises:
        ValueError, SharingError, CycleError: As `dag_map`.

    >>> dag_map_with_path(lambda path, x: (path, x), {"a": [7]})
    {'a': [(('a', 0), 7)]}
    """
    return _core.map_with_path(func, tree, rests, _chosen(where, options), **options)


@with_options
def dag_map_with_path_(
    func: Callable[..., Any],
    tree: T,
    /,
    *rests: Dag,
    where: Where | None = None,
    **options: Unpack[FlattenOptions],
) -> T:
    """Like `dag_map_`; the function also gets the path of the leaf, a tuple of entries.

    The path of a shared leaf is its anchor's, the first in traversal order.

    Args:
        func: Gets the path, the leaf, and the part of each of `rests` at its place.
        where: ... The function is called for these only; other leaves are kept. Left out: all.

    Returns:
        The tree itself.

    Raises:
        ValueError, SharingError, CycleError: As `dag_map`.

    >>> found = {}
    >>> _ = dag_map_with_path_(found.__setitem__, {"a": [7], "b": 8})
    >>> found
    {('a', 0): 7, ('b',): 8}
    """
    check_function("dag_map_with_path_", func, tree)
    _core.for_each_with_path(func, tree, rests, _chosen(where, options), **options)
    return tree


@overload
def dag_map_with_accessor(
    func: Callable[..., Any], tree: Builtin, /, *rests: Dag, **options: Unpack[MapOptions]
) -> Any: ...
@overload
def dag_map_with_accessor(
    func: Callable[..., Any], tree: T, /, *rests: Dag, **options: Unpack[MapOptions]
) -> T: ...
@compiled("map_with_accessor")
def dag_map_with_accessor(
    func: Callable[..., Any],
    tree: Dag,
    /,
    *rests: Dag,
    where: Where | None = None,
    **options: Unpack[FlattenOptions],
) -> Dag:
    """Like `dag_map`; the function also gets the `PyTreeAccessor` of the leaf.

    Args:
        func: Gets the accessor, the leaf, and the part of each of `rests` at its place.
        where: ... The function is called for these only; other leaves are kept. Left out: all.

    Raises:
        ValueError, SharingError, CycleError: As `dag_map`.

    >>> dag_map_with_accessor(lambda accessor, x: accessor.codify("tree"), {"a": [7]})
    {'a': ["tree['a'][0]"]}
    """
    return _core.map_with_accessor(func, tree, rests, _chosen(where, options), **options)


@with_options
def dag_map_with_accessor_(
    func: Callable[..., Any],
    tree: T,
    /,
    *rests: Dag,
    where: Where | None = None,
    **options: Unpack[FlattenOptions],
) -> T:
    """Like `dag_map_`; the function also gets the `PyTreeAccessor` of the leaf.

    Args:
        func: Gets the accessor, the leaf, and the part of each of `rests` at its place.
        where: ... The function is called for these only; other leaves are kept. Left out: all.

    Returns:
        The tree itself.

    Raises:
        ValueError, SharingError, CycleError: As `dag_map`.

    >>> found = []
    >>> _ = dag_map_with_accessor_(lambda accessor, x: found.append(accessor.codify()), {"a": [7]})
    >>> found
    ["*['a'][0]"]
    """
    check_function("dag_map_with_accessor_", func, tree)
    _core.for_each_with_accessor(func, tree, rests, _chosen(where, options), **options)
    return tree
