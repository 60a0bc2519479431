# SPDX-License-Identifier: Apache-2.0
"""Broadcasting: a leaf of a prefix stands for everything in a full DAG below the same path.

Each object of the full DAG must get one answer: the same object at every path to it, or equal
values. Sharing within the prefix is ignored.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.ops.map import dag_map, dag_map_with_accessor, dag_map_with_path
from pydag.public.compiled import check_function
from pydag.public.options import with_options
from pydag.structure.text import short_repr
from pydag.typing import Dag, FlattenOptions, IsLeaf, KeywordOptions, Leaf

Conflict = tuple[Any, ...]
"""Two paths to one object, and what is given there; what the core finds."""


def conflict_error(conflict: Conflict, name: str) -> SharingError:
    """The error for a prefix that gives one object two answers, at two of its paths."""
    first, other = (name + path.removeprefix("tree") for path in conflict[:2])
    answers = [short_repr(answer) for answer in conflict[2:]]
    both = " and ".join(answers) if len(answers) == 2 else "two kinds of nodes"
    return SharingError(
        "the prefix gives one object two answers\n"
        f"  full tree:  {first} and {other} are one object\n"
        f"  prefix:  it has {both} there\n"
        "  Give the object one answer at all of its paths, or untie it first (pydag.untie)."
    )


def _spread(
    prefix_tree: Dag, full_tree: Dag, options: FlattenOptions
) -> tuple[PyDagSpec, list[Leaf]]:
    """The structure that a prefix is broadcast to, and its leaves."""
    leaves, prefix = _core.flatten(prefix_tree, **options)
    full = _core.structure_below(prefix, full_tree, **options)
    try:
        spec, values, conflicts = _core.broadcast_tree(prefix, leaves, full)
    except ValueError:
        _core.check_prefix(prefix, full_tree)  # says which object doesn't fit
        raise  # pragma: no cover: it has been said
    if conflicts:
        raise conflict_error(conflicts[0], "tree")
    return spec, values


@with_options
def dag_broadcast_prefix(
    prefix_tree: Dag,
    full_tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    **options: Unpack[KeywordOptions],
) -> Dag:
    """The full tree, with each leaf replaced by the leaf of the prefix that stands for it.

    The result has the sharing of the full tree, so the prefix must give an object the same answer
    at all of its paths, or equal values. Sharing within the prefix is ignored.

    Raises:
        ValueError: The full tree doesn't have the structure of the prefix. (`prefix_errors` finds
            all places.)
        SharingError: A shared object of the full tree gets two answers.
        CycleError: An object contains itself.

    >>> n = ["x", "y"]
    >>> out = dag_broadcast_prefix({"a": 1, "b": 1}, {"a": n, "b": n})
    >>> out, out["a"] is out["b"]
    ({'a': [1, 1], 'b': [1, 1]}, True)
    """
    spec, values = _spread(prefix_tree, full_tree, FlattenOptions(is_leaf=is_leaf, **options))
    return spec.unflatten(values)


@with_options
def broadcast_prefix(
    prefix_tree: Dag,
    full_tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    **options: Unpack[KeywordOptions],
) -> list[Leaf]:
    """For each distinct leaf of the full tree the leaf of the prefix that stands for it.

    Like `dag_broadcast_prefix`, which puts them into a tree.

    Raises:
        ValueError: The full tree doesn't have the structure of the prefix. (`prefix_errors` finds
            all places.)
        SharingError: A shared object of the full tree gets two answers.
        CycleError: An object contains itself.

    >>> n = ["x", "y"]
    >>> broadcast_prefix({"a": 1, "b": 1, "c": 2}, {"a": n, "b": n, "c": "z"})
    [1, 1, 2]
    """
    return _spread(prefix_tree, full_tree, FlattenOptions(is_leaf=is_leaf, **options))[1]


@with_options
def dag_broadcast_common(
    tree: Dag, other_tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> tuple[Dag, Dag]:
    """Two trees with the structure that both are prefixes of, each with its own leaves.

    Each result has the sharing of its own tree, and below its leaves that of the other tree.

    Args:
        tree: A tree.

    Raises:
        ValueError: The trees have different nodes at one place.
        SharingError: A shared leaf of one tree meets two different structures in the other.
        CycleError: An object contains itself.

    >>> dag_broadcast_common([1, (2, 3)], [[4, 5], 6])
    ([[1, 1], (2, 3)], [[4, 5], (6, 6)])
    """
    (leaves, spec), (others, other) = (
        _core.flatten(t, is_leaf=is_leaf, **options) for t in (tree, other_tree)
    )
    common, other_common = (
        spec.broadcast_to_common_suffix(other),
        other.broadcast_to_common_suffix(spec),
    )
    return _fill(spec, leaves, common), _fill(other, others, other_common)


def _fill(spec: PyDagSpec, leaves: list[Leaf], suffix: PyDagSpec) -> Dag:
    """A tree of the structure `suffix`, of which `spec` is a prefix with the same sharing."""
    return suffix.unflatten(_answers([(leaves, spec)], suffix)[0])


@with_options
def broadcast_common(
    tree: Dag, other_tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> tuple[list[Leaf], list[Leaf]]:
    """The leaves of two trees for each distinct leaf of the structure that both are prefixes of.

    That structure has the sharing of the first tree, and below its leaves that of the other tree.

    Args:
        tree: A tree.

    Raises:
        ValueError: The trees have different nodes at one place.
        SharingError: One object of the common structure gets two answers, or a shared leaf of the
            first tree meets two different structures.
        CycleError: An object contains itself.

    >>> broadcast_common([1, (2, 3)], [[4, 5], 6])
    ([1, 1, 2, 3], [4, 5, 6, 6])
    """
    first, other = _common((tree, other_tree), FlattenOptions(is_leaf=is_leaf, **options))[1]
    return first, other


def _common(trees: tuple[Dag, ...], options: FlattenOptions) -> tuple[PyDagSpec, list[list[Leaf]]]:
    """The structure of which all trees are prefixes, and each tree's answers for its leaves."""
    parts = [_core.flatten(tree, **options) for tree in trees]
    common = parts[0][1]
    for i, (_, spec) in enumerate(parts[1:], 1):
        with _naming(i, parts):
            common = common.broadcast_to_common_suffix(spec)
    return common, _answers(parts, common)


def _answers(parts: list[tuple[list[Leaf], PyDagSpec]], common: PyDagSpec) -> list[list[Leaf]]:
    """For each leaf of a common structure, the answer of each tree."""
    found = []
    for i, (leaves, spec) in enumerate(parts):
        values, conflicts = _core.broadcast_leaves(spec, leaves, common)
        if conflicts:
            with _naming(i, parts):
                raise _answer_error(conflicts[0])
        found.append(values)
    return found


@contextlib.contextmanager
def _naming(number: int, parts: Sequence[object]) -> Iterator[None]:
    """Adds to errors which of several trees doesn't fit the first one."""
    try:
        yield
    except ValueError as error:
        if number and len(parts) > 2:
            error.add_note(f"The tree that doesn't fit is rests[{number - 1}].")
        raise


def _answer_error(conflict: Conflict) -> SharingError:
    """The error for a tree that gives one object two answers, at two of its paths."""
    first, other, *answers = conflict
    both = " and ".join(map(short_repr, answers))
    return SharingError(
        "the trees are shared differently\n"
        f"  first tree:  {first} and {other} are one object\n"
        f"  other tree:  they are two: {both}\n"
        "  Give the object one answer at all of its paths, or untie it first (pydag.untie)."
    )


@with_options
def dag_broadcast_map(
    func: Callable[..., Any], tree: Dag, /, *rests: Dag, **options: Unpack[FlattenOptions]
) -> Dag:
    """Like `dag_map`, for trees that are prefixes of one structure: leaves are broadcast.

    The function runs once for each distinct leaf of that structure. It has the sharing of `tree`,
    and below a leaf of `tree` that of the first of the rests with a node there.

    Args:
        func: Gets the answer of each of the trees for a leaf.
        rests: More DAGs; where one has a node, the others have such a node or a leaf.

    Raises:
        ValueError: The trees have different nodes at one place.
        SharingError: A tree gives two answers for one object.
        CycleError: An object contains itself.

    >>> dag_broadcast_map(lambda x, y: x * y, [2, [3, 4]], [[5, 6], 10])
    [[10, 12], [30, 40]]
    """
    check_function("dag_broadcast_map", func, tree)
    if not rests:
        return dag_map(func, tree, **options)
    common, values = _common((tree, *rests), options)
    return common.unflatten(map(func, *values))


@with_options
def dag_broadcast_map_with_path(
    func: Callable[..., Any], tree: Dag, /, *rests: Dag, **options: Unpack[FlattenOptions]
) -> Dag:
    """Like `dag_broadcast_map`; the function also gets the path of the leaf, a tuple of entries.

    Args:
        func: Gets the path in the common structure, and each tree's answer for the leaf.
        rests: More DAGs; where one has a node, the others have such a node or a leaf.

    Raises:
        ValueError: The trees have different nodes at one place.
        SharingError: A tree gives two answers for one object.
        CycleError: An object contains itself.

    >>> dag_broadcast_map_with_path(lambda path, x, y: (path, x + y), [1], [[2]])
    [[((0, 0), 3)]]
    """
    check_function("dag_broadcast_map_with_path", func, tree)
    if not rests:
        return dag_map_with_path(func, tree, **options)
    common, values = _common((tree, *rests), options)
    return common.unflatten(map(func, common.paths(), *values))


@with_options
def dag_broadcast_map_with_accessor(
    func: Callable[..., Any], tree: Dag, /, *rests: Dag, **options: Unpack[FlattenOptions]
) -> Dag:
    """Like `dag_broadcast_map`; the function also gets the `PyTreeAccessor` of the leaf.

    Args:
        func: Gets the accessor in the common structure, and each tree's answer for the leaf.
        rests: More DAGs; where one has a node, the others have such a node or a leaf.

    Raises:
        ValueError: The trees have different nodes at one place.
        SharingError: A tree gives two answers for one object.
        CycleError: An object contains itself.

    >>> dag_broadcast_map_with_accessor(lambda a, x, y: a.codify("t"), [1], [[2]])
    [['t[0][0]']]
    """
    check_function("dag_broadcast_map_with_accessor", func, tree)
    if not rests:
        return dag_map_with_accessor(func, tree, **options)
    common, values = _common((tree, *rests), options)
    return common.unflatten(map(func, common.accessors(), *values))
