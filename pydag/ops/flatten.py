# SPDX-License-Identifier: Apache-2.0
"""Takes DAGs apart and puts them together: optree's functions; shared objects stay shared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, overload

import optree

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.public.compiled import compiled
from pydag.public.options import with_options
from pydag.typing import Dag, IsLeaf, KeywordOptions, Leaf, Path

_N = TypeVar("_N", bound=complex)
# A tree of builtin containers, all of whose leaves are numbers of one type. (Arrays have no such
# type: a registered class, which is a node, may match a protocol of arrays, too.)
_Numbers: TypeAlias = _N | Mapping[Any, "_Numbers[_N]"] | Sequence["_Numbers[_N]"]


@overload
def dag_flatten(
    tree: _Numbers[_N], /, **options: Unpack[KeywordOptions]
) -> tuple[list[_N], PyDagSpec]: ...
@overload
def dag_flatten(
    tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> tuple[list[Leaf], PyDagSpec]: ...
@compiled("flatten")
def dag_flatten(
    tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> tuple[list[Leaf], PyDagSpec]:
    """Take a DAG apart: its distinct leaves, in first-visit order, and its structure.

    Raises:
        CycleError: An object contains itself.

    >>> shared = [1.0, 2.0]
    >>> dag_flatten({"encoder": shared, "decoder": shared})
    ([1.0, 2.0], PyDagSpec({'decoder': &0 [*, *], 'encoder': *0}))
    """
    return _core.flatten(tree, is_leaf=is_leaf, **options)


@compiled("unflatten")
def dag_unflatten(spec: PyDagSpec, leaves: Iterable[Leaf]) -> Dag:
    """Put a DAG together again, with fresh objects; each shared one is built once.

    Args:
        spec: The structure.
        leaves: As many as it has, in the order of `dag_flatten`.

    Raises:
        ValueError: There are too few or too many leaves.

    >>> leaves, spec = dag_flatten([[1], [2]])
    >>> dag_unflatten(spec, ["a", "b"])
    [['a'], ['b']]
    """
    return _core.unflatten(spec, leaves)


@overload
def dag_leaves(tree: _Numbers[_N], /, **options: Unpack[KeywordOptions]) -> list[_N]: ...
@overload
def dag_leaves(
    tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> list[Leaf]: ...
@compiled("leaves")
def dag_leaves(
    tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> list[Leaf]:
    """The distinct leaves of a DAG, in first-visit order.

    Raises:
        CycleError: An object contains itself.

    >>> w = [0.5]
    >>> dag_leaves({"encoder": w, "decoder": w})
    [0.5]
    """
    return _core.leaves(tree, is_leaf=is_leaf, **options)


@compiled("iterate")
def dag_iter(
    tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> Iterator[Leaf]:
    """An iterator over the distinct leaves of a DAG. It yields each leaf when it first reaches it.

    The children of a node are read when the iterator reaches the node: it sees earlier changes to
    the node, and no later ones. All objects that it visited stay alive until it is exhausted.

    Raises:
        CycleError: An object contains itself; raised when it is reached.
        RuntimeError: A callback asks the iterator that called it for the next leaf.

    >>> w = object()
    >>> list(dag_iter([1, w, [w, 2]])) == [1, w, 2]
    True
    """
    return _core.iterate(tree, is_leaf=is_leaf, **options)


@compiled("structure")
def dag_structure(
    tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> PyDagSpec:
    """The structure of a DAG, sharing included.

    Raises:
        CycleError: An object contains itself.

    >>> w = [0.5]
    >>> dag_structure([w, w]) == dag_structure([[0.5], [0.5]])
    False
    """
    return _core.structure(tree, is_leaf=is_leaf, **options)


@compiled("flatten_with_path")
def dag_flatten_with_path(
    tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> tuple[list[Path], list[Leaf], PyDagSpec]:
    """The path of each distinct leaf, the leaves, and the structure.

    Raises:
        CycleError: An object contains itself.

    >>> dag_flatten_with_path({"a": [7]})
    ([('a', 0)], [7], PyDagSpec({'a': [*]}))
    """
    return _core.flatten_with_path(tree, is_leaf=is_leaf, **options)


@compiled("flatten_with_accessor")
def dag_flatten_with_accessor(
    tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> tuple[list[optree.PyTreeAccessor], list[Leaf], PyDagSpec]:
    """The accessor of each distinct leaf, the leaves, and the structure.

    Raises:
        CycleError: An object contains itself.

    >>> accessors, leaves, spec = dag_flatten_with_accessor({"a": [7]})
    >>> accessors[0]({"a": [8]})
    8
    """
    return _core.flatten_with_accessor(tree, is_leaf=is_leaf, **options)


@overload
def dag_paths(
    tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    all_paths: Literal[False] = False,
    **options: Unpack[KeywordOptions],
) -> list[Path]: ...
@overload
def dag_paths(
    tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    all_paths: Literal[True],
    **options: Unpack[KeywordOptions],
) -> list[list[Path]]: ...
@with_options
def dag_paths(
    tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    *,
    all_paths: bool = False,
    **options: Unpack[KeywordOptions],
) -> list[Path] | list[list[Path]]:
    """The path of each distinct leaf; a shared leaf has the path of its anchor.

    Args:
        all_paths: True gives a list of all paths of each leaf, in traversal order. There may be
            many: `t = [t, t]`, repeated sixty times, has 2**60.

    Raises:
        CycleError: An object contains itself.

    >>> dag_paths({"a": [7, 8]})
    [('a', 0), ('a', 1)]
    >>> w = [7, 8]
    >>> dag_paths([w, w], all_paths=True)
    [[(0, 0), (1, 0)], [(0, 1), (1, 1)]]
    """
    spec = _core.flatten_at(tree, "tree", is_leaf=is_leaf, **options)[1]
    return _core.all_paths(spec) if all_paths else spec.paths()


@with_options
def dag_accessors(
    tree: Dag, /, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> list[optree.PyTreeAccessor]:
    """The accessor of each distinct leaf; a shared leaf has the accessor of its anchor.

    Raises:
        CycleError: An object contains itself.

    >>> [accessor.codify("tree") for accessor in dag_accessors({"a": [7, 8]})]
    ["tree['a'][0]", "tree['a'][1]"]
    """
    return _core.flatten_at(tree, "tree", is_leaf=is_leaf, **options)[1].accessors()
