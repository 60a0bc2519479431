# SPDX-License-Identifier: Apache-2.0
"""Accessors, the steps that they are made of: optree's classes."""

from optree import AutoEntry as AutoEntry
from optree import DataclassEntry as DataclassEntry
from optree import FlattenedEntry as FlattenedEntry
from optree import GetAttrEntry as GetAttrEntry
from optree import GetItemEntry as GetItemEntry
from optree import MappingEntry as MappingEntry
from optree import NamedTupleEntry as NamedTupleEntry
from optree import PyTreeAccessor as PyTreeAccessor
from optree import PyTreeEntry as PyTreeEntry
from optree import SequenceEntry as SequenceEntry
from optree import StructSequenceEntry as StructSequenceEntry

__all__ = [
    "AutoEntry",
    "DataclassEntry",
    "FlattenedEntry",
    "GetAttrEntry",
    "GetItemEntry",
    "MappingEntry",
    "NamedTupleEntry",
    "PyTreeAccessor",
    "PyTreeEntry",
    "SequenceEntry",
    "StructSequenceEntry",
]
