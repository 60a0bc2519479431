# SPDX-License-Identifier: Apache-2.0
"""What a function changed in the tree that it was given.

This one comparison serves updates of the caller's objects, and the warning about lost changes.
"""

from collections.abc import Iterator, Sequence
from operator import is_
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import MISSING, LeavesByPath, Roots, path_texts, way_text
from pydag.jaxinterop.packed.dag import Dag as PackedDag
from pydag.structure.listing import Listing
from pydag.typing import Dag, Leaf, Path


class Change(NamedTuple):
    """A leaf that was replaced, added or removed."""

    path: Path
    text: str  # the path as Python text
    holders: tuple[Any, ...]  # the objects on the way, as they are now, outermost first
    old: Leaf  # MISSING where it was added
    new: Leaf  # MISSING where it was removed


class Given(NamedTuple):
    """A tree as a function gets it."""

    tree: Dag
    leaves: Sequence[Leaf]
    spec: PyDagSpec
    options: Options
    roots: Roots
    outermost: Sequence[Any]  # what builtin containers alone lead to

    @classmethod
    def of(cls, tree: Dag, options: Options, roots: Roots) -> "Given":
        """The tree as it is now: what a class does when it is built is not a change."""
        return cls(tree, *_flatten(tree, options, roots), options, roots, _outermost(tree))

    def changes(self) -> list[Change]:
        """What has changed since then."""
        try:
            leaves, spec = _flatten(self.tree, self.options, self.roots)
        except (TypeError, ValueError):
            return []  # such as a cycle: the next flatten raises it
        is_same = spec == self.spec and len(leaves) == len(self.leaves)
        if is_same and all(map(is_, leaves, self.leaves)):
            return []
        before, now = LeavesByPath(self.spec, self.leaves), LeavesByPath(spec, leaves)
        found = []
        for own, is_now in ((spec, True), (self.spec, False)):
            told = set[int]()
            for number, path, text in list(_places(own, self.roots)):
                old, new = before.at(path), now.at(path)
                is_change = old is not new if is_now else new is MISSING
                if is_change and number not in told:
                    told.add(number)
                    found.append(Change(path, text, self._holders(path), old, new))
        return found

    def _holders(self, path: Path) -> tuple[Any, ...]:
        """The objects on the way to a leaf, as far as they exist."""
        found, at = [], self.tree
        for entry in path:
            found.append(at)
            children, entries, _ = _core.open_one_level(at, namespace=self.options.namespace)
            at = next((c for c, e in zip(children, entries, strict=True) if e == entry), MISSING)
            if at is MISSING or _core.is_leaf(at, namespace=self.options.namespace):
                break
        return tuple(found)


def _flatten(tree: Dag, options: Options, roots: Roots) -> tuple[Sequence[Leaf], PyDagSpec]:
    namespace, identity = options.namespace, options.identity
    return _core.flatten_at(tree, roots, namespace=namespace, identity=identity)


def _outermost(tree: Dag) -> list[Any]:
    found, seen, waiting = [], set[int](), [tree]
    for part in waiting:
        if not isinstance(part, _BUILTIN):
            found.append(part)
        elif id(part) not in seen:
            seen.add(id(part))
            waiting += part.values() if isinstance(part, dict) else part
    return found


def _places(spec: PyDagSpec, roots: Roots) -> Iterator[tuple[int, Path, str]]:
    """The leaves by number, path and text: at their first paths, then where objects appear again.

    An object that holds several leaves is represented by the first of them.
    """
    for number, (path, text) in enumerate(zip(spec.paths(), path_texts(spec, roots), strict=True)):
        yield number, path, text
    listing = Listing.of(spec) if spec.num_shared else Listing([])
    for alias, anchor in listing.targets.items():
        position = next(
            (i for i in range(anchor, listing.ends[anchor]) if i in listing.leaf_numbers), None
        )
        if position is not None:
            way = [*listing.way(alias), *listing.way(position)[len(listing.way(anchor)) :]]
            path = tuple(listing.records[step].entry for step in way)
            yield listing.leaf_numbers[position], path, way_text(listing, way, roots)


def nodes_of(tree: Dag, options: Options) -> dict[int, Any]:
    """The objects with identity that hold something in a tree, and in Dags in it, by their ids."""
    found: dict[int, Any] = {}

    def note(node: Any) -> bool:
        found[id(node)] = node
        return False

    waiting = [tree]
    for part in waiting:
        leaves = _core.leaves(part, is_leaf=note, namespace=options.namespace)
        for leaf in leaves:
            found.pop(id(leaf), None)
        seen = {id(x) for x in waiting}
        dags = (node for node in found.values() if isinstance(node, PackedDag))
        waiting += [dag.tree for dag in dags if id(dag.tree) not in seen]
    return {key: node for key, node in found.items() if not isinstance(node, tuple | type(None))}


_BUILTIN = (dict, list, tuple)


def is_registered(node: Any, namespace: str) -> bool:
    """Whether an object is an instance of a registered class: a module, a record, one of NNX's."""
    if isinstance(node, _BUILTIN) or type(node).__module__ == "collections":
        return False
    return not _core.is_leaf(node, namespace=namespace)
