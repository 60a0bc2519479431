# SPDX-License-Identifier: Apache-2.0
"""What `PyDagSpec.shared` is made of.

The core imports this when it is made. So nothing here imports the core, nor what does
(`pydag.typing`).
"""

import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import optree

from pydag.structure.text import fields_repr

if TYPE_CHECKING:
    from pydag._core import PyDagSpec


@dataclass(frozen=True, slots=True)
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


def shared_of_spec(spec: "PyDagSpec") -> list[SharedObject]:
    """What `PyDagSpec.shared` returns."""
    return [SharedObject(index, kind, cls, paths) for index, kind, cls, paths in spec._shared()]
