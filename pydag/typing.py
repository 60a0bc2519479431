# SPDX-License-Identifier: Apache-2.0
"""The types that the library's signatures speak of; and those of optree, unchanged."""

from collections.abc import Callable as Callable
from collections.abc import Iterable as Iterable
from collections.abc import Mapping
from collections.abc import Sequence as Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from optree.accessors import AutoEntry as AutoEntry
from optree.accessors import DataclassEntry as DataclassEntry
from optree.accessors import FlattenedEntry as FlattenedEntry
from optree.accessors import GetAttrEntry as GetAttrEntry
from optree.accessors import GetItemEntry as GetItemEntry
from optree.accessors import MappingEntry as MappingEntry
from optree.accessors import NamedTupleEntry as NamedTupleEntry
from optree.accessors import PyTreeAccessor as PyTreeAccessor
from optree.accessors import PyTreeEntry as PyTreeEntry
from optree.accessors import SequenceEntry as SequenceEntry
from optree.accessors import StructSequenceEntry as StructSequenceEntry
from optree.typing import KT as KT
from optree.typing import VT as VT
from optree.typing import Children as Children
from optree.typing import CustomTreeNode as CustomTreeNode
from optree.typing import DefaultDict as DefaultDict
from optree.typing import Deque as Deque
from optree.typing import Dict as Dict
from optree.typing import F as F
from optree.typing import FlattenFunc as FlattenFunc
from optree.typing import List as List
from optree.typing import MetaData as MetaData
from optree.typing import NamedTuple as NamedTuple
from optree.typing import OrderedDict as OrderedDict
from optree.typing import P as P
from optree.typing import PyTree as PyTree
from optree.typing import PyTreeKind as PyTreeKind
from optree.typing import PyTreeTypeVar as PyTreeTypeVar
from optree.typing import S as S
from optree.typing import StructSequence as StructSequence
from optree.typing import T as T
from optree.typing import Tuple as Tuple
from optree.typing import U as U
from optree.typing import UnflattenFunc as UnflattenFunc
from optree.typing import is_namedtuple as is_namedtuple
from optree.typing import is_namedtuple_class as is_namedtuple_class
from optree.typing import is_namedtuple_instance as is_namedtuple_instance
from optree.typing import is_structseq as is_structseq
from optree.typing import is_structseq_class as is_structseq_class
from optree.typing import is_structseq_instance as is_structseq_instance
from optree.typing import namedtuple_fields as namedtuple_fields
from optree.typing import structseq_fields as structseq_fields

from pydag._core import PyDagSpec as PyDagSpec

Leaf: TypeAlias = Any
"""What the library doesn't open."""

Dag: TypeAlias = Any
"""A nested structure whose objects may be shared."""

Builtin: TypeAlias = Mapping[Any, Any] | Sequence[Any] | complex | None
"""What has a type that says what its parts are, so that a map over it may return another type."""

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
"""Which leaves: see `pydag.ops.select`."""


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
