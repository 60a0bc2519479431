# SPDX-License-Identifier: Apache-2.0
"""Methods of `PyDagSpec` that are written in Python, and the items of `PyDagSpec.shared`.

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


class _Paths:
    """The paths to the shared objects of a spec; its listing is made at the first use.

    (Closures would be shorter, but making them without memory crashes CPython 3.13.)
    """

    def __init__(self, spec: "PyDagSpec") -> None:
        self.spec = spec

    @functools.cached_property
    def listing(self) -> Any:
        from pydag.structure.listing import Listing

        return Listing.of(self.spec)

    def of(self, index: int) -> tuple[tuple[Any, ...], ...]:
        """A path for each slot of the shared object with this number."""
        return tuple(map(self.listing.path, self.listing.slots[index]))


def shared_of_spec(spec: "PyDagSpec", objects: Sequence[Any] | None = None) -> list[SharedObject]:
    """The result of `PyDagSpec.shared`; with the objects, the result of `shared_objects`."""
    paths = _Paths(spec)
    shared = []
    for index, kind, cls in spec._shared():
        one = SharedObject.__new__(SharedObject)
        found = None if objects is None else objects[index]
        of_object = cls if objects is None else builtins.type(found)
        vars(one).update(index=index, kind=kind, type=of_object, object=found, _find=paths.of)
        shared.append(one)
    return shared


def to_json(spec: "PyDagSpec") -> str:
    """`PyDagSpec.to_json`."""
    from .json import to_json

    return to_json(spec)


def from_json(text: str, namespace: str | None) -> "PyDagSpec":
    """`PyDagSpec.from_json`."""
    from .json import from_json

    return from_json(text, namespace)
