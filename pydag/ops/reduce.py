# SPDX-License-Identifier: Apache-2.0
"""Reduces the distinct leaves of a DAG to one value; a shared leaf counts once."""

import functools
from collections.abc import Callable
from typing import Any, Unpack

import pydag._core as _core
from pydag.public.compiled import MISSING, check_function
from pydag.public.options import with_options
from pydag.typing import Dag, FlattenOptions, Leaf


def _given(**options: Any) -> dict[str, Any]:
    """The options that the caller gave."""
    return {name: value for name, value in options.items() if value is not MISSING}


@with_options
def dag_reduce(
    func: Callable[[Any, Any], Any],
    tree: Dag,
    /,
    initial: Any = MISSING,
    **options: Unpack[FlattenOptions],
) -> Any:
    """Reduce the distinct leaves to one value, from left to right, as `functools.reduce` does.

    Args:
        func: Gets the result so far, and the next leaf.
        initial: The result before the first leaf; left out: the first leaf.

    Raises:
        TypeError: There are no leaves, and no `initial`.
        CycleError: An object contains itself.

    >>> w = [1, 2]
    >>> dag_reduce(lambda x, y: 10 * x + y, {"encoder": w, "decoder": w})
    12
    """
    check_function("dag_reduce", func, tree)
    leaves = _core.leaves(tree, **options)
    if initial is MISSING:
        return functools.reduce(func, leaves)
    return functools.reduce(func, leaves, initial)


@with_options
def dag_sum(tree: Dag, /, start: Any = 0, **options: Unpack[FlattenOptions]) -> Any:
    """The sum of the distinct leaves.

    An object is added once, a value at each of its occurrences. What lies below a shared node is
    added once.

    Args:
        start: The leaves are added to this. A `str`, `bytes` or `bytearray` is joined with them.

    Raises:
        CycleError: An object contains itself.

    >>> n = [1, 2]
    >>> dag_sum([n, n]), dag_sum([1, 1])
    (3, 2)
    """
    leaves = _core.leaves(tree, **options)
    if isinstance(start, str):
        return "".join([start, *leaves])
    if isinstance(start, bytes):
        return b"".join([start, *leaves])
    if isinstance(start, bytearray):
        return bytearray().join([start, *leaves])
    return sum(leaves, start)


@with_options
def dag_max(
    tree: Dag,
    /,
    *,
    default: Any = MISSING,
    key: Callable[[Leaf], Any] | None = None,
    **options: Unpack[FlattenOptions],
) -> Any:
    """The greatest of the leaves.

    Args:
        default: The result if there are no leaves.
        key: Gives the value by which leaves are compared; called once for each distinct leaf.

    Raises:
        ValueError: There are no leaves, and no `default`.
        CycleError: An object contains itself.

    >>> dag_max({"a": [3, 1], "b": -4}), dag_max({"a": [3, 1], "b": -4}, key=abs)
    (3, -4)
    """
    leaves = _core.leaves(tree, **options)
    return max(leaves, key=key, **_given(default=default))


@with_options
def dag_min(
    tree: Dag,
    /,
    *,
    default: Any = MISSING,
    key: Callable[[Leaf], Any] | None = None,
    **options: Unpack[FlattenOptions],
) -> Any:
    """The least of the leaves.

    Args:
        default: The result if there are no leaves.
        key: Gives the value by which leaves are compared; called once for each distinct leaf.

    Raises:
        ValueError: There are no leaves, and no `default`.
        CycleError: An object contains itself.

    >>> dag_min({"a": [3, 1], "b": -4}), dag_min({"a": [3, 1], "b": -4}, key=abs)
    (-4, 1)
    """
    leaves = _core.leaves(tree, **options)
    return min(leaves, key=key, **_given(default=default))


@with_options
def dag_all(tree: Dag, /, **options: Unpack[FlattenOptions]) -> bool:
    """Whether all leaves are true.

    The DAG is opened only as far as needed: up to the first leaf that is false.

    Raises:
        CycleError: An object contains itself.

    >>> dag_all([1, {"a": 2}]), dag_all([1, 0]), dag_all([])
    (True, False, True)
    """
    return all(_core.iterate(tree, **options))


@with_options
def dag_any(tree: Dag, /, **options: Unpack[FlattenOptions]) -> bool:
    """Whether any leaf is true.

    The DAG is opened only as far as needed: up to the first leaf that is true.

    Raises:
        CycleError: An object contains itself.

    >>> dag_any([1, {"a": 2}]), dag_any([1, 0]), dag_any([])
    (True, True, False)
    """
    return any(_core.iterate(tree, **options))
