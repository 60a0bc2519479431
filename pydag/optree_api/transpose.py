# SPDX-License-Identifier: Apache-2.0
"""Turns DAGs inside out: an outer structure of inner ones becomes an inner structure of outer ones.

Parts may share a leaf: it appears in each of its slots. Parts may not share a node: the result
would have several copies of it, and the tie would be lost silently.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Unpack

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.public.compiled import check_function
from pydag.public.options import with_options
from pydag.structure.listing import Listing, step_text
from pydag.structure.text import short_repr
from pydag.typing import Dag, FlattenOptions, IsLeaf, Leaf

_LONGEST = 100  # steps of a path, or nodes of a structure, that are written out


def dag_transpose(
    outer_spec: PyDagSpec, inner_spec: PyDagSpec, tree: Dag, /, is_leaf: IsLeaf | None = None
) -> Dag:
    """Turn a tree of the outer structure, which holds trees of the inner one, inside out.

    If anything is shared, the tree is matched with both structures; otherwise its leaves are
    counted, as in optree.

    Args:
        outer_spec: The structure of the tree.
        inner_spec: The structure of each of its parts, and of the result.
        tree: The tree.
        is_leaf: Asked once per distinct object before it is opened, and once per occurrence of a
            value. True keeps the object whole, as a leaf.

    Raises:
        TypeError: The leaves of the tree don't match the two structures.
        ValueError: One of the structures has no leaves, they don't go together, or the tree doesn't
            fit.
        SharingError: Two parts share a node, or a shared leaf of a structure meets two objects.
        CycleError: An object contains itself.

    >>> outer, inner = pydag.dag_structure({"a": 1, "b": 2}), pydag.dag_structure((1, 2))
    >>> dag_transpose(outer, inner, {"a": (1, 2), "b": (3, 4)})
    ({'a': 1, 'b': 3}, {'a': 2, 'b': 4})
    """
    _check(outer_spec, inner_spec)
    namespace = outer_spec.namespace or inner_spec.namespace
    leaves, spec = _core.flatten(
        tree, is_leaf=is_leaf, none_is_leaf=outer_spec.none_is_leaf, namespace=namespace
    )
    if spec.num_shared or outer_spec.num_shared or inner_spec.num_shared:
        parts = _match(outer_spec, inner_spec, tree, leaves, spec, is_leaf is not None)
        return _inside_out(outer_spec, inner_spec, parts)
    size = inner_spec.num_leaves
    if len(leaves) != outer_spec.num_leaves * size:
        raise _mismatch(outer_spec, inner_spec, spec)
    parts = [leaves[i : i + size] for i in range(0, len(leaves), size)]
    return _inside_out(outer_spec, inner_spec, parts)


def _check(outer: PyDagSpec, inner: PyDagSpec) -> None:
    """Whether two structures go together."""
    for spec in (outer, inner):
        if not isinstance(spec, PyDagSpec):
            raise TypeError(
                f"Expected a PyDagSpec, got {short_repr(spec)}. Take pydag.dag_structure(tree)."
            )
    if outer.none_is_leaf != inner.none_is_leaf:
        raise ValueError("Tree structures must have the same none_is_leaf value.")
    if outer.num_leaves == 0 or inner.num_leaves == 0:
        raise ValueError("Tree structures must have at least one leaf.")
    if outer.namespace and inner.namespace and outer.namespace != inner.namespace:
        raise ValueError(
            "Tree structures must have the same namespace, "
            f"got {outer.namespace!r} vs. {inner.namespace!r}."
        )


def _mismatch(outer: PyDagSpec, inner: PyDagSpec, spec: PyDagSpec) -> TypeError:
    """The error that shows the expected and the actual structure of a tree."""
    expected = _shown(outer.compose(inner))
    return TypeError(f"Tree structure mismatch; expected: {expected}, got: {_shown(spec)}.")


def _shown(spec: PyDagSpec) -> str:
    """A structure in an error message: in full if it is short."""
    text = repr(spec) if spec.num_nodes <= _LONGEST else ""
    return text if 0 < len(text) <= 8 * _LONGEST else short_repr(spec)


def _inside_out(outer: PyDagSpec, inner: PyDagSpec, parts: list[list[Leaf]]) -> Dag:
    """The result, made of the leaves that each part has for the leaves of the inner structure."""
    columns = zip(*parts, strict=True) if parts else [()] * inner.num_leaves
    return inner.unflatten(map(outer.unflatten, columns))


def _match(
    outer: PyDagSpec,
    inner: PyDagSpec,
    tree: Dag,
    leaves: list[Leaf],
    spec: PyDagSpec,
    may_hold_nodes: bool,
) -> list[list[Leaf]]:
    """The leaves that each part has for the leaves of the inner structure.

    Args:
        may_hold_nodes: Whether objects that would be nodes may be leaves of the tree.
    """
    parts = outer.flatten_up_to(tree)
    found = [inner.flatten_up_to(part) for part in parts]
    known = set(map(id, leaves))
    # A node in the place of a leaf: then there are more leaves than the two structures have.
    if not known.issuperset(map(id, itertools.chain.from_iterable(found))):
        raise _mismatch(outer, inner, spec)
    if any(cls is not None for _, _, cls in spec._shared()):
        _check_nodes(outer, parts, (lambda x: id(x) in known) if may_hold_nodes else None)
    return found


def _check_nodes(outer: PyDagSpec, parts: list[Dag], is_leaf: IsLeaf | None) -> None:
    """Checks that no two parts share a node."""
    options = FlattenOptions(
        is_leaf=is_leaf,
        none_is_leaf=outer.none_is_leaf,
        namespace=outer.namespace,
        identity="nodes",
    )
    structure = _core.structure(tuple(parts), **options)
    numbers = [_core.structure((part,), **options).num_nodes - 1 for part in parts]
    if structure.num_nodes == 1 + sum(numbers):
        return  # a node of two parts would count twice in the sum
    listing = Listing.of(structure)
    part = [0] * len(listing.records)  # the part that each node belongs to, by its position
    for position, parent in enumerate(listing.parents[1:], 1):
        part[position] = part[parent] or position
    for first, *aliases in listing.slots:
        other = next((slot for slot in aliases if part[slot] != part[first]), None)
        if other is None:
            continue
        name = listing.records[first].type.__name__
        one, two = (_path_in_tree(outer, listing, slot) for slot in (first, other))
        raise SharingError(
            f"two parts of the tree share a node, and couldn't in the result\n"
            f"  {one} and {two} are one {name}\n"
            "  Untie it first (pydag.untie)."
        )


def _path_in_tree(outer: PyDagSpec, listing: Listing, slot: int) -> str:
    """The path in the tree to a slot in the tuple of its parts."""
    first, *rest = (listing.records[position] for position in listing.way(slot))
    steps = "".join(map(step_text, rest)) if len(rest) < _LONGEST else "[...]"
    return f"{outer.accessors()[first.entry].codify('tree')}{steps}"


def _map_transposed(
    func: Callable[..., Dag],
    trees: tuple[Dag, ...],
    inner: PyDagSpec | None,
    options: FlattenOptions,
    names: Callable[[PyDagSpec], Sequence[object]] | None = None,
) -> Dag:
    """The results of a function for the leaves of the first tree, turned inside out.

    Args:
        names: The function's further argument for each leaf, made from the structure.
    """
    leaves, outer = _core.flatten(trees[0], **options)
    if inner is None and outer.num_leaves == 0:
        raise ValueError(f"The outer structure must have at least one leaf. Got: {_shown(outer)}.")
    columns = [leaves, *_core.match_rests(outer, trees[1:])]
    results = list(map(func, *([names(outer)] if names else []), *columns))
    given = inner
    if inner is None:
        inner = _core.structure(results[0], **options)
    if inner.num_leaves == 0:
        raise ValueError(f"The inner structure must have at least one leaf. Got: {_shown(inner)}.")
    try:
        parts = [inner.flatten_up_to(result) for result in results]
    except SharingError as error:
        if given is not None:
            raise
        raise SharingError(
            f"{error}\n  The first result has the sharing that all must have: pass inner_treespec, "
            "a structure that shares less."
        ) from None
    return _inside_out(outer, inner, parts)


@with_options
def dag_transpose_map(
    func: Callable[..., Dag],
    tree: Dag,
    /,
    *rests: Dag,
    inner_treespec: PyDagSpec | None = None,
    **options: Unpack[FlattenOptions],
) -> Dag:
    """Map a function that returns trees; the result is such a tree, whose leaves are like `tree`.

    The function runs once for each distinct leaf. Each part of the result has the sharing of
    `tree`. An object that the function's results share is one part of the result.

    Args:
        func: Gets the leaf, and the part of each of `rests` at its place. Returns a tree.

    Raises:
        ValueError: There is no leaf, or a result or a rest doesn't fit.
        SharingError: A result shares less than the first one, or a rest gives one shared object
            two answers.
        CycleError: An object contains itself.

    >>> dag_transpose_map(lambda x: {"same": x, "twice": 2 * x}, [1, (2, 3)])
    {'same': [1, (2, 3)], 'twice': [2, (4, 6)]}
    """
    check_function("dag_transpose_map", func, tree)
    return _map_transposed(func, (tree, *rests), inner_treespec, options)


@with_options
def dag_transpose_map_with_path(
    func: Callable[..., Dag],
    tree: Dag,
    /,
    *rests: Dag,
    inner_treespec: PyDagSpec | None = None,
    **options: Unpack[FlattenOptions],
) -> Dag:
    """Like `dag_transpose_map`; the function also gets the path of the leaf, a tuple of entries.

    Args:
        func: Gets the path, the leaf, and the part of each of `rests` at its place. Returns a tree.

    Raises:
        ValueError: There is no leaf, or a result or a rest doesn't fit.
        SharingError: A result shares less than the first one, or a rest gives one shared object
            two answers.
        CycleError: An object contains itself.

    >>> dag_transpose_map_with_path(lambda path, x: (len(path), x), {"a": [7]})
    ({'a': [2]}, {'a': [7]})
    """
    check_function("dag_transpose_map_with_path", func, tree)
    return _map_transposed(func, (tree, *rests), inner_treespec, options, PyDagSpec.paths)


@with_options
def dag_transpose_map_with_accessor(
    func: Callable[..., Dag],
    tree: Dag,
    /,
    *rests: Dag,
    inner_treespec: PyDagSpec | None = None,
    **options: Unpack[FlattenOptions],
) -> Dag:
    """Like `dag_transpose_map`; the function also gets the `PyTreeAccessor` of the leaf.

    Args:
        func: Gets the accessor, the leaf, and the part of each of `rests` at its place. Returns a
            tree.

    Raises:
        ValueError: There is no leaf, or a result or a rest doesn't fit.
        SharingError: A result shares less than the first one, or a rest gives one shared object
            two answers.
        CycleError: An object contains itself.

    >>> dag_transpose_map_with_accessor(lambda a, x: [a.codify("t"), x], {"a": 7})
    [{'a': "t['a']"}, {'a': 7}]
    """
    check_function("dag_transpose_map_with_accessor", func, tree)
    return _map_transposed(func, (tree, *rests), inner_treespec, options, PyDagSpec.accessors)
