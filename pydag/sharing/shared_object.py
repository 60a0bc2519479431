# SPDX-License-Identifier: Apache-2.0
"""The items of `PyDagSpec.shared`.

The core imports this module during its own import. So this module imports the core, and modules
that need it (`pydag.typing`, `pydag.structure.listing`), only when they are used.
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

    if not TYPE_CHECKING:  # the attributes are known

        def __getattr__(self, name: str) -> Any:
            # All paths of a deep structure together are as long as the square of its depth. So
            # the paths of an object are computed at their first use.
            find = vars(self).get("_find") if name == "paths" else None
            if find is None:
                raise AttributeError(
                    f"{builtins.type(self).__name__!r} object has no attribute {name!r}"
                )
            return vars(self).setdefault("paths", find(self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedObject, (self.index, self.kind, self.type, self.paths, self.object)


def shared_of_spec(spec: "PyDagSpec", objects: Sequence[Any] | None = None) -> list[SharedObject]:
    """The result of `PyDagSpec.shared`; with the objects, the result of `shared_objects`."""

    @functools.cache
    def listing() -> Any:
        from pydag.structure.listing import Listing

        return Listing.of(spec)

    def paths(index: int) -> tuple[tuple[Any, ...], ...]:
        """A path for each slot of the shared object with this number."""
        return tuple(map(listing().path, listing().slots[index]))

    shared = []
    for index, kind, cls in spec._shared():
        one = SharedObject.__new__(SharedObject)
        found = None if objects is None else objects[index]
        of_object = cls if objects is None else builtins.type(found)
        vars(one).update(index=index, kind=kind, type=of_object, object=found, _find=paths)
        shared.append(one)
    return shared
