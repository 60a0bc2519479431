# SPDX-License-Identifier: Apache-2.0
"""How a tree is taken apart, and the paths of its leaves as Python text, such as `args[0]['w']`."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag.ops.select import is_prefix, select
from pydag.public.options import raise_unexpected
from pydag.registry.tables import WeakTable
from pydag.structure.listing import Listing, shorten, step_text
from pydag.structure.text import short_repr
from pydag.typing import Dag, Identity, IsLeaf, Leaf, Where

from .leaves import is_array

Roots = str | tuple[str, ...]
"""What the user calls the tree that is walked, or each item of it where it is a tuple."""

CALL: Roots = ("args", "kwargs")

_LONGEST = 600  # characters of a path
_MOST_LEAVES = 20_000  # the texts of a larger structure aren't kept

# JAX asks for them at each call of a function that isn't compiled. Kept as long as the structure.
_known: WeakTable[dict[Roots, Sequence[str]]] = WeakTable()


def path_texts(spec: _core.PyDagSpec, roots: Roots) -> Sequence[str]:
    """The path of each leaf."""
    texts = _known.get(spec, None)
    if texts is None:
        texts = {}
        if spec.num_leaves <= _MOST_LEAVES:
            _known.set(spec, texts)
    if roots not in texts:
        found = _core.path_texts(spec, roots)
        texts[roots] = [shorten(t, _LONGEST) if len(t) > _LONGEST else t for t in found]
    return texts[roots]


def path_text(spec: _core.PyDagSpec, roots: Roots, leaf: int) -> str:
    """The path of one leaf."""
    return path_texts(spec, roots)[leaf]


def way_text(listing: Listing, way: Sequence[int], roots: Roots) -> str:
    """The path that leads along these positions in a listing."""
    steps = [listing.records[position] for position in way]
    if isinstance(roots, str):
        return shorten(roots + "".join(map(step_text, steps)), _LONGEST)
    if not steps:
        return "tree"
    return shorten(roots[steps[0].entry] + "".join(map(step_text, steps[1:])), _LONGEST)


MISSING = object()
"""What stands at a path that a structure doesn't have."""


class Options(NamedTuple):
    """How a tree is taken apart."""

    namespace: str = ""
    identity: Identity = "all"
    static: Where | None = None  # which leaves are static beside those that have to be

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Options":
        """The options that a wrapper was given by keyword."""
        for name in given.keys() - cls._fields:
            raise_unexpected(name)
        return cls(**given)

    def flatten(
        self, tree: Dag, roots: Roots = "tree", is_leaf: IsLeaf | None = None
    ) -> tuple[list[Leaf], _core.PyDagSpec]:
        """The distinct leaves of a tree, and its structure."""
        return _core.flatten_at(
            tree, roots, is_leaf=is_leaf, namespace=self.namespace, identity=self.identity
        )

    def selected(
        self, leaves: Sequence[Leaf], spec: _core.PyDagSpec, roots: Roots, is_result: bool
    ) -> list[int]:
        """The positions of the leaves that `static=` selects; of a result, no arrays."""
        if any(is_prefix(where, self.namespace) for where in _parts(self.static)):
            raise TypeError(
                f"static= takes classes, predicates and patterns, got {short_repr(self.static)}\n"
                '  Select by path, such as static="*.config", or name whole arguments by '
                "static_argnums."
            )
        flags = enumerate(self._flags(leaves, spec, roots))
        return [i for i, flag in flags if flag and not (is_result and is_array(leaves[i]))]

    def check_selects(self, tree: Dag, roots: Roots = CALL) -> None:
        """Checks that `static=`, where it is given, selects something of a tree."""
        if self.static is None:
            return
        leaves, spec = self.flatten(tree, roots)
        if leaves and not any(self._flags(leaves, spec, roots, must_match=True)):
            raise ValueError(
                f"static= selects none of {len(leaves)} leaves: {short_repr(self.static)}\n"
                "  A predicate is asked about each leaf that is no array; a class is that of "
                "leaves, or of what holds them. Leave it out where nothing is static."
            )

    def has_predicate(self) -> bool:
        """Whether `static=` has a predicate, whose answer may be another one for each number."""
        return any(callable(x) and not isinstance(x, type) for x in _parts(self.static))

    def _flags(
        self, leaves: Sequence[Leaf], spec: _core.PyDagSpec, roots: Roots, must_match: bool = False
    ) -> list[bool]:
        """What `static=` selects; predicates are asked about what could be static."""
        assert self.static is not None
        # Patterns are compared with paths that begin so many levels below the root.
        depth = 0 if isinstance(roots, str) else 2 if roots == CALL else 1
        how: Any = {"depth": depth, "roots": roots, "must_match": must_match}
        how["asked"] = lambda leaves, _: [not is_array(leaf) for leaf in leaves]
        return select(self.static, spec, leaves, self.namespace, **how)

    def key(self) -> Hashable:
        """These options as a part of a key."""
        return self.namespace, self.identity, hashable(self.static)


def hashable(given: Any) -> Hashable:
    """An option as a part of a key; what can't be hashed counts by identity."""
    if isinstance(given, dict):
        return tuple(sorted((name, hashable(item)) for name, item in given.items()))
    if isinstance(given, list | tuple):
        return type(given), *map(hashable, given)
    try:
        hash(given)
    except TypeError:
        return id(given)  # whatever is made for the key owns it
    return type(given), given


def _parts(where: Any) -> list[Any]:
    """A selection, and those in it if it is a list of such."""
    return [where, *(part for x in (where if type(where) is list else ()) for part in _parts(x))]
