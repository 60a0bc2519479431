# SPDX-License-Identifier: Apache-2.0
"""Objects of updated arguments that a function returns: the caller gets his own ones back."""

from collections.abc import Sequence
from typing import Any

import pydag._core as _core
from pydag.jaxinterop.packed.given import GivenTree
from pydag.jaxinterop.static.untraced import Options
from pydag.structure.listing import Listing

from .ways import Step, follow, way_to

Ways = tuple[list[Step], list[Step]]


class ReturnedObjects:
    """Where a result has objects of the arguments.

    Args:
        ways: To each of them: in the result; and in `(args, kwargs)`.
    """

    def __init__(self, ways: Sequence[Ways], options: Options) -> None:
        self.ways, self.options = ways, options

    @classmethod
    def of(
        cls, given: GivenTree, chosen: Any, reached: set[int], listing: Listing, result: Any
    ) -> "ReturnedObjects | None":
        """Those of arguments that are updated; None if there are none.

        Args:
            given: All arguments, as the function left them.
            chosen: Those that are updated.
            reached: The positions in `listing` that lie in these.
            listing: Of the structure of all arguments.
            result: What the function returned.
        """
        options = given.untraced.options
        returned = _nodes(result, options).keys() & _nodes(chosen, options).keys()
        if not returned:
            return None
        places: dict[int, list[Step]] = {}
        for position in sorted(reached):
            if not listing.records[position].is_leaf:
                way = way_to(listing, position)
                node = follow(given.tree, way, options.namespace)
                if id(node) in returned:
                    places.setdefault(id(node), way)
        kept, spec = _core.flatten(
            result,
            is_leaf=lambda x: id(x) in places,
            namespace=options.namespace,
            identity=options.identity,
        )
        found = Listing.of(spec)
        pairs = zip(found.leaves, kept, strict=True)
        ways = [(way_to(found, at), places[id(x)]) for at, x in pairs if id(x) in places]
        return cls(ways, options) if ways else None

    def __call__(self, result: Any, arguments: tuple[Any, Any]) -> Any:
        """The result with the caller's own objects in it."""
        namespace = self.options.namespace
        own: dict[int, Any] = {}
        built = []  # so that no two have one id
        for way, there in self.ways:
            node = follow(result, way, namespace)
            if not way:
                return follow(arguments, there, namespace)
            built.append(node)
            own[id(node)] = follow(arguments, there, namespace)
        leaves, spec = _core.flatten(
            result,
            is_leaf=lambda x: id(x) in own,
            namespace=namespace,
            identity=self.options.identity,
        )
        return _core.unflatten(spec, [own.get(id(x), x) for x in leaves])


def _nodes(tree: Any, options: Options) -> dict[int, Any]:
    """The containers and modules of a tree, by id; not tuples, which have no identity."""
    met: dict[int, Any] = {}

    def note(node: Any) -> bool:
        met[id(node)] = node
        return False

    try:
        leaves, _ = _core.flatten(
            tree, is_leaf=note, namespace=options.namespace, identity=options.identity
        )
    except Exception:
        return {}  # whoever packs the result says what is wrong
    for leaf in leaves:
        met.pop(id(leaf), None)
    return {key: node for key, node in met.items() if not (node is None or isinstance(node, tuple))}
