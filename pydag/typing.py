# SPDX-License-Identifier: Apache-2.0
"""The types that the library's signatures speak of; and those of optree, unchanged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from optree.typing import *  # noqa: F403  # all of its `__all__`

from pydag._core import PyDagSpec as PyDagSpec

del PyTreeDef, PyTreeSpec  # noqa: F821  # of the star; a structure of pydag is a PyDagSpec

Leaf: TypeAlias = Any
"""An object that pydag doesn't open."""

Dag: TypeAlias = Any
"""A nested structure whose objects may be shared."""

Builtin: TypeAlias = Mapping[Any, Any] | Sequence[Any] | complex | None
"""A tree whose type names the types of its parts: a map over it may return another type."""

Path: TypeAlias = tuple[Any, ...]
"""The entries on the way from the root to a node."""

IsLeaf: TypeAlias = Callable[[Any], bool]
"""True keeps the object whole."""

Identity: TypeAlias = Literal["all", "nodes"]
"""`"nodes"`: leaves have no identity."""

FlattenFunction: TypeAlias = Callable[[Any], Iterable[Any]]
"""(object) -> (children, aux_data) or (children, aux_data, entries)"""

UnflattenFunction: TypeAlias = Callable[[Any, Any], Any]
"""(aux_data, children) -> object"""

Where: TypeAlias = Callable[[Any], Any] | type | tuple[type, ...] | str | bool | Sequence[Any] | Any
"""A selection of leaves: see `pydag.ops.select`."""


class SpecOptions(TypedDict, total=False):
    """The options of functions that make specs of specs."""

    none_is_leaf: bool
    namespace: str


class KeywordOptions(SpecOptions, total=False):
    """The options of functions that take a DAG apart and whose `is_leaf` may come by position."""

    identity: Identity


class FlattenOptions(KeywordOptions, total=False):
    """The options of functions that take a DAG apart, all by keyword: what the core takes."""

    is_leaf: IsLeaf | None


class MapOptions(FlattenOptions, total=False):
    """The options of functions that are called for the leaves of a DAG."""

    where: Where | None
