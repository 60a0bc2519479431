# SPDX-License-Identifier: Apache-2.0
"""The types that the library's signatures speak of."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

Leaf: TypeAlias = Any
"""What the library doesn't open."""

Dag: TypeAlias = Any
"""A nested structure whose objects may be shared."""

Path: TypeAlias = tuple[Any, ...]
"""The entries on the way from the root to a node."""

IsLeaf: TypeAlias = Callable[[Any], bool]
"""True keeps the object whole."""

Identity: TypeAlias = Literal["all", "nodes"]
"""`"nodes"`: leaves have no identity."""

FlattenFunc: TypeAlias = Callable[[Any], Iterable[Any]]
"""(object) -> (children, aux_data) or (children, aux_data, entries)"""

UnflattenFunc: TypeAlias = Callable[[Any, Any], Any]
"""(aux_data, children) -> object"""

Where: TypeAlias = Callable[[Any], Any] | type | tuple[type, ...] | str | bool | Sequence[Any] | Any
"""Which leaves: see `pydag.selectors`."""
