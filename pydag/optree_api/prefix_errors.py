# SPDX-License-Identifier: Apache-2.0
"""Why a tree is no prefix of another tree: all differences, not only the first."""

import builtins
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import optree

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.public.options import with_options
from pydag.structure.text import short_repr
from pydag.typing import Dag, FlattenOptions, IsLeaf, KeywordOptions

from .broadcast import Conflict, conflict_error

ErrorMaker = Callable[[str], ValueError]
"""Makes an error, given the name of the prefix."""

_MAPPINGS = (
    optree.PyTreeKind.DICT,
    optree.PyTreeKind.ORDEREDDICT,
    optree.PyTreeKind.DEFAULTDICT,
    optree.PyTreeKind.FROZENDICT,
)
_DICTS = frozenset({dict, OrderedDict, defaultdict, getattr(builtins, "frozendict", dict)})
_VALUES = (
    optree.PyTreeKind.TUPLE,
    optree.PyTreeKind.NAMEDTUPLE,
    optree.PyTreeKind.STRUCTSEQUENCE,
    optree.PyTreeKind.FROZENDICT,
    optree.PyTreeKind.NONE,
)


class _OpenNode(NamedTuple):
    """A node of one level; no two of its slots are shared."""

    node: Any
    children: list[Any]
    spec: PyDagSpec

    def data(self) -> Any:
        """The data of the node besides its class and its children."""
        return self.spec.walk(self.children, lambda cls, data, children: data)


class _Way(NamedTuple):
    """The way to a node of the prefix: a slot of its parent, and the way there."""

    above: "_Way | None"
    parent: PyDagSpec
    slot: int


@with_options
def prefix_errors(
    prefix_tree: Dag,
    full_tree: Dag,
    /,
    is_leaf: IsLeaf | None = None,
    **options: Unpack[KeywordOptions],
) -> list[ErrorMaker]:
    """Find all places where a tree is no prefix of another tree.

    There are none exactly if `broadcast_prefix` succeeds. First come the nodes that don't fit, each
    pair of a prefix node and a node of the full tree once, at its first path; then the shared
    objects of the full tree that get two answers. A prefix that is a single leaf fits any tree: the
    full tree isn't examined then, not even for a cycle.

    Returns:
        Functions that take a name for the prefix and return an error, a `ValueError` or, for two
        answers, a `SharingError`.

    >>> for error in prefix_errors([1, {"a": 2}], [[5, 6], {"b": 7}]):
    ...     print(str(error("in_axes")).splitlines()[:2])
    ['pytree structure error: different pytree keys at key path', '    in_axes[1]']
    """
    asked = FlattenOptions(is_leaf=is_leaf, **options)
    if is_leaf is None and (found := _where_all_fits(prefix_tree, full_tree, asked)) is not None:
        return found
    errors = _structure_errors(prefix_tree, full_tree, asked)
    return errors + _sharing_errors(prefix_tree, full_tree, asked, bool(errors))


def _where_all_fits(
    prefix_tree: Dag, full_tree: Dag, options: FlattenOptions
) -> list[ErrorMaker] | None:
    """Conflicts: two answers for one object; None if nodes don't fit. Calls no predicate."""
    leaves, prefix = _core.flatten_at(prefix_tree, "tree", **options)
    if prefix.is_leaf():
        return []  # a leaf fits anything
    full = _core.flatten_at(full_tree, "tree", **options)[1]
    try:
        conflicts = _core.broadcast_tree(prefix, leaves, full)[2]
    except ValueError:
        return None
    return _conflicts(prefix, leaves, full) if conflicts else []


def _conflicts(prefix: PyDagSpec, leaves: list[Any], full: PyDagSpec) -> list[ErrorMaker]:
    """All objects of the full tree that get two answers."""

    def maker(conflict: Conflict) -> ErrorMaker:
        return lambda name: conflict_error(conflict, name)

    return [maker(conflict) for conflict in _core.broadcast_conflicts(prefix, leaves, full)]


def _sharing_errors(
    prefix_tree: Dag, full_tree: Dag, options: FlattenOptions, has_misfits: bool
) -> list[ErrorMaker]:
    """Two answers for one object, if the trees fit."""
    if _core.structure(full_tree, **options | FlattenOptions(is_leaf=None)).num_shared == 0:
        return []
    leaves, prefix = _core.flatten_at(prefix_tree, "tree", **options)
    if has_misfits and options.get("is_leaf") is not None:
        return []  # which objects are above the prefix's leaves isn't known
    return _conflicts(prefix, leaves, _core.structure_below(prefix, full_tree, **options))


def _open(node: Any, options: FlattenOptions) -> _OpenNode:
    """The node as a structure of one level."""
    is_whole = _core.is_leaf(node, **options | FlattenOptions(is_leaf=None))
    children, spec = _core.flatten_at(
        node,
        "tree",
        **options | FlattenOptions(is_leaf=lambda x: is_whole or x is not node, identity="nodes"),
    )
    return _OpenNode(node, children, spec)


def _structure_errors(
    prefix_tree: Dag, full_tree: Dag, options: FlattenOptions
) -> list[ErrorMaker]:
    """The nodes that don't fit, in the order of the prefix."""
    errors: list[ErrorMaker] = []
    is_leaf = options.get("is_leaf")
    pending: list[tuple[_Way | None, Any, Any]] = [(None, prefix_tree, full_tree)]
    visited: dict[tuple[int, int], Any] = {}  # owns the objects, so that no address is reused
    while pending:
        way, node, other = pending.pop()
        if (id(node), id(other)) in visited or (is_leaf and is_leaf(node)):
            continue
        prefix = _open(node, options)
        if prefix.spec.is_leaf():
            continue
        if prefix.spec.kind not in _VALUES:
            visited[id(node), id(other)] = node, other
        problem, others = _problem(prefix, other, options)
        if problem:
            errors.append(_maker(way, problem))
            continue
        rows = list(zip(prefix.children, others, strict=True))
        for i in reversed(range(len(rows))):
            pending.append((_Way(way, prefix.spec, i), *rows[i]))
    return errors


def _problem(prefix: _OpenNode, other: Any, options: FlattenOptions) -> tuple[str, list[Any]]:
    """The problem of a pair of nodes; if it is empty, the children of `other`, in order."""
    try:
        return "", prefix.spec.flatten_up_to(other)
    except ValueError:
        if problem := _difference(prefix, other, options):
            return problem, []
        raise  # pragma: no cover: nodes that don't fit differ


def _difference(prefix: _OpenNode, other: Any, options: FlattenOptions) -> str:
    """How two nodes differ, in words."""
    classes, are_mappings = (type(prefix.node), type(other)), prefix.spec.kind in _MAPPINGS
    if classes[0] is not classes[1] and not (are_mappings and classes[1] in _DICTS):
        return _say("types", classes, "", f"a subtree of different type\n    {classes[1]}.")
    full = _open(other, options)
    fit = _core.root_fit(prefix.spec, full.spec)
    if fit == "fits":  # pragma: no cover: then they would have been matched
        return ""
    if fit == "keys" and are_mappings:
        keys, others = prefix.spec.entries(), full.spec.entries()
        text = f"a subtree of type\n    {classes[1]}\nbut with {_listed(others)}"
        differences = {
            "missing": _sorted(set(keys).difference(others)),
            "extra": _sorted(set(others).difference(keys)),
        }
        for what, which in differences.items():
            text += f"\n{what} key(s):\n    {short_repr(which)}" if which else ""
        return _say("pytree keys", classes, f"with {_listed(keys)}\n", text)
    same = "a subtree of the same type but with "
    counts = prefix.spec.num_children, full.spec.num_children
    if counts[0] != counts[1]:
        text = f"{same}{counts[1]} children."
        return _say("numbers of pytree children", classes, f"with {counts[0]} children, ", text)
    one, two = (short_repr(node_of.data()) for node_of in (prefix, full))
    text = f"{same}metadata\n    {two}"
    return _say("pytree metadata", classes, f"with metadata\n    {one}\n", text)


def _listed(keys: list[Any]) -> str:
    """How many keys there are, and which."""
    return f"{len(keys)} key(s)\n    {short_repr(keys)}"


def _sorted(keys: set[Any]) -> list[Any]:
    """In the order in which a dict is traversed."""
    return _core.structure(dict.fromkeys(keys), none_is_leaf=True).entries()


def _say(what: str, classes: tuple[type, type], prefix: str, full: str) -> str:
    """The text of an error, with fields for the path and for the name."""
    return (
        f"pytree structure error: different {what} at key path\n    @PATH\n"
        f"At that key path, the prefix pytree @NAME has a subtree of type\n    {classes[0]}\n"
        f"{prefix}but at the same key path the full pytree has {full}"
    )


def _maker(way: _Way | None, problem: str) -> ErrorMaker:
    """A function that puts the name and the path into the text."""
    steps: list[optree.PyTreeEntry] = []  # from the node to the root
    while way is not None:
        steps += way.parent.accessors()[way.slot]
        way = way.above
    accessor = optree.PyTreeAccessor(reversed(steps))

    def make(name: str) -> ValueError:
        path = accessor.codify(name) if accessor else f"{name} tree root"
        return ValueError(problem.replace("@PATH", path, 1).replace("@NAME", name, 1))

    return make
