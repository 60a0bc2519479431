# SPDX-License-Identifier: Apache-2.0
"""The functions of `jax.tree` that tell the paths of leaves, as JAX's keys."""

from collections.abc import Callable
from typing import Any

import optree
from jax import tree_util

import pydag._core as _core
from pydag.jaxinterop.content.content import take_apart
from pydag.jaxinterop.help import with_wrapper_options
from pydag.public.compiled import check_function
from pydag.public.tracebacks import short_tracebacks
from pydag.typing import Dag, IsLeaf, Leaf

from .treedef import Structure, rows_of

KeyPath = tuple[Any, ...]
TakesPath = Callable[[KeyPath, Any], bool]


def _key(step: optree.PyTreeEntry) -> Any:
    """JAX's key for a step of an accessor."""
    text = step.codify("")
    if text.startswith("."):
        return tree_util.GetAttrKey(text[1:])
    if text.startswith("[<flat index "):
        return tree_util.FlattenedIndexKey(step.entry)
    if isinstance(step, optree.SequenceEntry):
        return tree_util.SequenceKey(step.entry)
    return tree_util.DictKey(step.entry)


def _by_path(tree: Dag, is_leaf: TakesPath) -> IsLeaf:
    """A predicate for what `is_leaf` keeps whole. It is asked once per distinct object.

    None at several places is one object: it is a leaf everywhere if it is one somewhere.
    """
    kept: dict[int, Any] = {}
    visited: dict[int, Any] = {}
    pending: list[tuple[Any, KeyPath]] = [(tree, ())]
    while pending:
        node, path = pending.pop()
        has_children = node is not None and not _core.is_leaf(node)
        if has_children and id(node) in visited:
            continue
        visited[id(node)] = node
        if is_leaf(path, node):
            kept[id(node)] = node
        elif has_children:
            children, _, spec = _core.open_one_level(node)
            steps = [(*path, *map(_key, accessor)) for accessor in spec.accessors()]
            pending.extend(reversed(list(zip(children, steps, strict=True))))
    return lambda x: id(x) in kept


@short_tracebacks
@with_wrapper_options
def flatten_with_path(
    tree: Dag, is_leaf: "IsLeaf | TakesPath | None" = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Leaf]], Structure]:
    """The distinct leaves of a DAG with their paths, and its structure.

    Returns:
        Pairs of a path, as JAX's keys, and a leaf. The path of a shared leaf is the first.

    >>> w = jnp.ones(2)
    >>> pairs, _ = flatten_with_path({"layers": [w, w]})
    >>> [jax.tree_util.keystr(path) for path, _ in pairs]
    ["['layers'][0]"]
    """
    predicate: Any = is_leaf
    if predicate is not None and is_leaf_takes_path:
        predicate = _by_path(tree, predicate)
    found, content = take_apart(tree, is_leaf=predicate)
    accessors = content.traced_among(content.spec.accessors())
    paths = [tuple(map(_key, accessor)) for accessor in accessors]
    return list(zip(paths, found, strict=True)), Structure(content)


@with_wrapper_options
def leaves_with_path(
    tree: Dag, is_leaf: "IsLeaf | TakesPath | None" = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Leaf]]:
    """The distinct leaves of a DAG with their paths.

    >>> [(path, leaf)] = leaves_with_path({"a": 3.0})
    >>> path, leaf
    ((DictKey(key='a'),), 3.0)
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


@short_tracebacks
@with_wrapper_options
def map_with_path(
    f: Callable[..., Any],
    tree: Dag,
    *rest: Dag,
    is_leaf: "IsLeaf | TakesPath | None" = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """As `map`; the function also gets the path of the leaf, as JAX's keys.

    Args:
        f: Gets the path, the leaf, and what each further tree has at its place.

    Raises:
        ValueError: A further tree is structured differently.
        SharingError: A further tree gives one object two answers.
        CycleError, TypeError: As `map`.

    >>> map_with_path(lambda path, x: jax.tree_util.keystr(path), {"a": 1.0, "b": 2.0})
    {'a': "['a']", 'b': "['b']"}
    """
    check_function("map_with_path", f, tree)
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    rows = rows_of(treedef._content, [leaf for _, leaf in pairs], rest)
    return treedef.unflatten(
        leaf if stays else f(path, leaf, *row)
        for (path, _), (leaf, row, stays) in zip(pairs, rows, strict=True)
    )
