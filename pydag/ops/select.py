# SPDX-License-Identifier: Apache-2.0
"""Selects leaves: one vocabulary for all functions that take a selection.

A *selection* is one of these:

* a predicate, called with each distinct leaf; for masks, files, JAX and optimizers with data alone;
* a class, or a tuple of classes: leaves that are instances, and all that lies below nodes that
  are, on any path;
* a pattern: text in which `*` stands for anything and `?` for one character. It is compared with
  the path of the leaf as Python text without the root, such as `layers[0].weight`; the whole
  path, with or without its leading dot, case and all. `[`, `]` and `.` are themselves. A leaf is
  selected when any of its paths matches;
* a tree prefix of booleans, or a bare one, checked along every path;
* a list of such: any of them. (A list whose leaves are all booleans is a prefix.)

All of them are linear in objects and edges, however many paths there are: the state of the match
is handed down the DAG, once along each edge.
"""

import functools
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.arrays.kinds import looks_like_array
from pydag.ops.prefixes import by_prefix, is_bool, prefix_flags
from pydag.public.options import with_options
from pydag.public.tracebacks import short_tracebacks
from pydag.structure.listing import Listing
from pydag.structure.near import Near
from pydag.structure.text import short_repr
from pydag.typing import Dag, IsLeaf, KeywordOptions, Leaf, Where


def _no_such_path(text: str, spec: PyDagSpec, depth: int) -> ValueError:
    """An error that names existing paths with a similar spelling, and what may be meant."""
    near = Near(Listing.of(spec), depth)
    patterns = [p for p in near.patterns(text) if any(_core.leaves_by_path(spec, p, depth))]
    paths = near.texts(text, patterns)
    there = f"the nearest that exist: {', '.join(paths)}" if paths else "there are none"
    if paths == [""]:
        there = "it has one leaf alone, the tree itself"
    advice = f"\n  Did you mean {' or '.join(map(repr, patterns))}?" if patterns else ""
    return ValueError(
        f"which leaves: no path matches the pattern {short_repr(text)}\n  {there}{advice}\n"
        "  A pattern is compared with the whole path of a leaf: * stands for anything, ? for one "
        "character."
    )


def _by_class(classes: tuple[type, ...], spec: PyDagSpec, leaves: Sequence[Leaf]) -> list[bool]:
    found = [isinstance(leaf, classes) for leaf in leaves]
    below = [] if all(found) else _core.leaves_below(spec, lambda cls: issubclass(cls, classes))
    return list(map(operator.or_, found, below)) if below else found


def _classes(where: Any) -> tuple[type, ...]:
    """The classes that a selection consists of; none if it is another selection."""
    classes = where if type(where) is tuple else (where,)
    return classes if all(isinstance(item, type) for item in classes) else ()


def _flattened(where: Any, namespace: str) -> tuple[list[Leaf], PyDagSpec] | None:
    """The leaves and the structure of a selection that is a tree; None for any other."""
    # A partial is a predicate, though some of them are nodes.
    if isinstance(where, str | functools.partial) or _classes(where):
        return None
    leaves, spec = _core.flatten_at(where, "tree", namespace=namespace, identity="nodes")
    return None if spec.is_leaf() or (not leaves and type(where) is list) else (leaves, spec)


def is_prefix(where: Any, namespace: str = "") -> bool:
    """Whether a selection is a tree prefix of booleans, or a bare one."""
    tree = _flattened(where, namespace)
    return is_bool(where) or (tree is not None and prefix_flags(*tree) is not None)


Selector = Callable[[Sequence[Leaf], PyDagSpec], list[bool]]
"""Tells for each leaf of a structure whether it is selected, or predicates are asked about it."""


def _all(leaves: Sequence[Leaf], spec: PyDagSpec) -> list[bool]:
    return [True] * len(leaves)


def data(leaves: Sequence[Leaf], spec: PyDagSpec) -> list[bool]:
    """Which leaves are arrays, or numbers that aren't the configuration of a module."""
    owned = frozenset().union(*_core.module_leaves(spec))
    return [
        (isinstance(leaf, int | float | complex) and i not in owned) or looks_like_array(leaf)
        for i, leaf in enumerate(leaves)
    ]


def select(
    where: Where,
    spec: PyDagSpec,
    leaves: Sequence[Leaf],
    namespace: str = "",
    *,
    asked: Selector = _all,
    depth: int = 0,
    roots: str | tuple[str, ...] = "tree",
    must_match: bool = False,
) -> list[bool]:
    """Whether each distinct leaf is selected.

    Args:
        where: The selection, in the vocabulary of this module.
        namespace: The namespace in which a prefix is flattened.
        asked: Tells which leaves predicates are asked about; they don't select others.
        depth: How many levels below the root of the structure paths begin: each argument of a call
            is a separate root.
        roots: What a note to an error of a predicate calls the tree, or each of its items.
        must_match: Whether a pattern that no path matches is an error.

    Raises:
        TypeError: `where` is not a selection.
        ValueError: A prefix doesn't fit; or no path matches a pattern, and `must_match` is true.
        SharingError: A prefix gives one object two answers.
    """
    if is_bool(where):
        return [bool(where)] * len(leaves)
    if isinstance(where, str):
        by_path = _core.leaves_by_path(spec, where, depth)
        if must_match and not any(by_path):
            raise _no_such_path(where, spec, depth)
        return by_path
    if classes := _classes(where):
        return _by_class(classes, spec, leaves)
    tree = _flattened(where, namespace)
    flags = None if tree is None else prefix_flags(*tree)
    if tree is not None and flags is not None:
        return by_prefix(flags, Listing.of(tree[1]), Listing.of(spec))
    if type(where) is list:
        found = [False] * len(leaves)
        for item in where:
            chosen = select(
                *(item, spec, leaves, namespace),
                asked=asked,
                depth=depth,
                roots=roots,
                must_match=must_match,
            )
            found = [a or b for a, b in zip(found, chosen, strict=True)]
        return found
    if tree is not None and not callable(where):
        wrong = next(leaf for leaf in tree[0] if not is_bool(leaf))
        cure = "\n  Several patterns are a list." if isinstance(wrong, str) else ""
        if len(leaves) == 1 and (isinstance(leaves[0], str | type) or callable(leaves[0])):
            cure = "\n  Swap them: the tree is in the place of the selection."
        raise TypeError(
            f"which leaves: the leaves of a prefix must be booleans, got {short_repr(wrong)}{cure}"
        )
    if not callable(where):
        raise TypeError(
            "which leaves: expected a predicate, a class or a tuple of classes, a pattern of the "
            f"path, a prefix of booleans, or a list of such, got {short_repr(where)}\n"
            '  Select a leaf by its path, such as "layers[0].weight".'
        )
    return _by_predicate(where, spec, leaves, asked, roots)


def _by_predicate(
    where: Callable[[Leaf], Any],
    spec: PyDagSpec,
    leaves: Sequence[Leaf],
    asked: Selector,
    roots: str | tuple[str, ...] = "tree",
) -> list[bool]:
    found = list[bool]()
    try:
        for leaf, is_asked in zip(leaves, asked(leaves, spec), strict=True):
            found.append(is_asked and bool(where(leaf)))
    except Exception as error:
        error.add_note(f"raised while selecting {_core.path_texts(spec, roots)[len(found)]}")
        raise
    return found


def select_matching(
    where: Where, spec: PyDagSpec, leaves: Sequence[Leaf], namespace: str, asked: Selector = _all
) -> list[bool]:
    """Like `select`, but raises if there are patterns and none of them matches a path.

    A list may have patterns for models of several kinds: one match is enough.
    """
    found = select(where, spec, leaves, namespace, asked=asked)
    if leaves and not any(found):
        select(where, spec, leaves, namespace, asked=asked, must_match=True)
    return found


# For classes that wrap a DAG, a function that makes the mask of an instance from a selection.
masks: dict[type, Callable[[Any, Where], Any]] = {}


def selector(where: Where, namespace: str = "", asked: Selector = _all) -> Selector:
    """A function that returns for each leaf of a structure whether `where` selects it."""
    # The usual cases: no tree, and no other selection.
    if type(where) is types.FunctionType:
        return lambda leaves, spec: _by_predicate(where, spec, leaves, asked)
    if type(where) is type:
        return lambda leaves, spec: _by_class((where,), spec, leaves)
    return lambda leaves, spec: select_matching(where, spec, leaves, namespace, asked)


@short_tracebacks
@with_options
def dag_mask(
    tree: Dag, where: Where, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> Dag:
    """The DAG with True for each selected leaf and False for every other one.

    The tree is the first argument; in `dag_partition(predicate, tree)` it is the second.
    A predicate is called with arrays and numbers, and doesn't select other leaves; the numbers of a
    module are its configuration. The mask of a `pydag.jaxinterop.Dag` is again a `Dag`, selected by
    the paths of its tree.

    Raises:
        SharingError: A prefix gives one object two answers.
        ValueError: A prefix doesn't have the structure of the tree; or nothing is selected, and no
            path matches a pattern.

    >>> w = [1.0, 2.0]
    >>> dag_mask({"encoder": w, "decoder": w, "bias": 3.0}, "*encoder*[0]")
    {'encoder': [True, False], 'decoder': [True, False], 'bias': False}
    """
    if type(tree) in masks:
        return masks[type(tree)](tree, where)
    leaves, spec = _core.flatten_at(tree, "tree", is_leaf=is_leaf, **options)
    return _core.unflatten(spec, selector(where, options.get("namespace", ""), data)(leaves, spec))
