# SPDX-License-Identifier: Apache-2.0
"""What `PyDagSpec.shared` is made of.

The core imports this when it is made. So nothing here imports the core, nor what does
(`pydag.typing`, `pydag.structure.listing`), before it is used.
"""

import builtins
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import optree

from pydag.structure.text import fields_repr

if TYPE_CHECKING:
    from pydag._core import PyDagSpec


@dataclass(frozen=True)
class SharedObject:
    """A shared object of a DAG.

    Args:
        index: Its number, in traversal order.
        kind: The kind of node that it is.
        type: Its class; None for a leaf where there is only a spec.
        paths: One path for each slot that holds the object, reached through anchors; the first is
            the anchor's.
        object: The object itself; None where there is only a spec.
    """

    index: int
    kind: optree.PyTreeKind
    type: builtins.type | None
    paths: tuple[tuple[Any, ...], ...]
    object: Any = None

    __repr__ = fields_repr

    def __getattr__(self, name: str) -> Any:
        # All paths of a deep structure together are as long as the square of its depth: so those of
        # an object are written out when somebody asks.
        find = vars(self).get("_find") if name == "paths" else None
        if find is None:
            raise AttributeError(
                f"{builtins.type(self).__name__!r} object has no attribute {name!r}"
            )
        return vars(self).setdefault("paths", find(self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedObject, (self.index, self.kind, self.type, self.paths, self.object)


def shared_of_spec(spec: "PyDagSpec", objects: Sequence[Any] | None = None) -> list[SharedObject]:
    """What `PyDagSpec.shared` returns; with the objects, what `shared_objects` returns."""

    @functools.cache
    def listing() -> Any:
        from pydag.structure.listing import Listing

        return Listing.of(spec)

    known: dict[int, tuple[Any, ...]] = {0: ()}  # the paths that were asked for, by position

    def path(position: int) -> tuple[Any, ...]:
        steps = []
        while position not in known:
            steps.append(listing().records[position].entry)
            position = listing().parents[position]
        return known[position] + tuple(reversed(steps))

    def find(index: int) -> tuple[tuple[Any, ...], ...]:
        slots = listing().slots[index]
        paths = tuple(map(path, slots))
        known[slots[0]] = paths[0]
        return paths

    shared = []
    for index, kind, cls in spec._shared():
        one = SharedObject.__new__(SharedObject)
        found = None if objects is None else objects[index]
        of_object = cls if objects is None else builtins.type(found)
        vars(one).update(index=index, kind=kind, type=of_object, object=found, _find=find)
        shared.append(one)
    return shared
