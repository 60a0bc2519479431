# SPDX-License-Identifier: Apache-2.0
"""Pytrees that keep object identity: what was shared stays shared.

* To take apart and put together: `dag_flatten`, `dag_unflatten`, `dag_leaves`, `dag_structure`,
  `dag_paths`, `dag_map`, `dag_copy`, and their variants with path and with accessor. They are
  optree's `tree_*`, and treat each shared object as one.
* To make classes nodes: `register_fields` by their attributes, `register_pydag_node` by two
  functions, `register_pydag_node_class` by two methods.
* To see what is shared: `shared_objects`, `explain`, and the `PyDagSpec` that `dag_structure`
  returns.
* To work with structures: the methods of a `PyDagSpec`, and `dagspec_*` for optree's `treespec_*`.
* To meet other pytree libraries: `deref` and `reref`. To meet JAX: the package `pydag.jaxinterop`.

>>> import pydag
>>> w = [0.5]
>>> new = pydag.dag_map(lambda x: 2 * x, {"encoder": w, "decoder": w})
>>> new, new["encoder"] is new["decoder"]
({'encoder': [1.0], 'decoder': [1.0]}, True)
"""

from typing import TYPE_CHECKING

try:  # before anything else, so that a clone says what it lacks
    from ._core import PyDagSpec as PyDagSpec
except ModuleNotFoundError as error:  # pragma: no cover: a test imports a copy that has none
    if error.name != f"{__name__}._core":
        raise
    raise ImportError(
        f"pydag's compiled core isn't in {__path__[0]}: if that is a clone, run `pip install -e .` "
        "or `make dev` there with this Python, or start Python in another folder"
    ) from None
# Of the core's own imports; the next line raises if optree is too old.
except ImportError:  # pragma: no cover: another optree
    from .registry import optree_private as optree_private

    raise

from optree import NONE_IS_LEAF as NONE_IS_LEAF
from optree import NONE_IS_NODE as NONE_IS_NODE
from optree import AutoEntry as AutoEntry
from optree import CustomTreeNode as CustomTreeNode
from optree import DataclassEntry as DataclassEntry
from optree import FlattenedEntry as FlattenedEntry
from optree import FlattenFunc as FlattenFunc
from optree import GetAttrEntry as GetAttrEntry
from optree import GetItemEntry as GetItemEntry
from optree import MappingEntry as MappingEntry
from optree import NamedTupleEntry as NamedTupleEntry
from optree import PyTree as PyTree
from optree import PyTreeAccessor as PyTreeAccessor
from optree import PyTreeEntry as PyTreeEntry
from optree import PyTreeKind as PyTreeKind
from optree import PyTreeTypeVar as PyTreeTypeVar
from optree import SequenceEntry as SequenceEntry
from optree import StructSequenceEntry as StructSequenceEntry
from optree import UnflattenFunc as UnflattenFunc
from optree import dict_insertion_ordered as dict_insertion_ordered
from optree import is_namedtuple as is_namedtuple
from optree import is_namedtuple_class as is_namedtuple_class
from optree import is_namedtuple_instance as is_namedtuple_instance
from optree import is_structseq as is_structseq
from optree import is_structseq_class as is_structseq_class
from optree import is_structseq_instance as is_structseq_instance
from optree import namedtuple_fields as namedtuple_fields
from optree import structseq_fields as structseq_fields

from pydag.structure.spec_methods import SharedObject as SharedObject

from . import typing as typing
from .errors import CycleError as CycleError
from .errors import SharingError as SharingError
from .ops.copy import dag_copy as dag_copy
from .ops.flatten import dag_accessors as dag_accessors
from .ops.flatten import dag_flatten as dag_flatten
from .ops.flatten import dag_flatten_with_accessor as dag_flatten_with_accessor
from .ops.flatten import dag_flatten_with_path as dag_flatten_with_path
from .ops.flatten import dag_iter as dag_iter
from .ops.flatten import dag_leaves as dag_leaves
from .ops.flatten import dag_paths as dag_paths
from .ops.flatten import dag_structure as dag_structure
from .ops.flatten import dag_unflatten as dag_unflatten
from .ops.fold import dag_fold as dag_fold
from .ops.fold import dag_intern as dag_intern
from .ops.fold import dag_rewrite as dag_rewrite
from .ops.map import dag_map as dag_map
from .ops.map import dag_map_ as dag_map_
from .ops.map import dag_map_with_accessor as dag_map_with_accessor
from .ops.map import dag_map_with_accessor_ as dag_map_with_accessor_
from .ops.map import dag_map_with_path as dag_map_with_path
from .ops.map import dag_map_with_path_ as dag_map_with_path_
from .ops.one_level import all_leaves as all_leaves
from .ops.one_level import dag_flatten_one_level as dag_flatten_one_level
from .ops.one_level import dag_is_leaf as dag_is_leaf
from .ops.reduce import dag_all as dag_all
from .ops.reduce import dag_any as dag_any
from .ops.reduce import dag_max as dag_max
from .ops.reduce import dag_min as dag_min
from .ops.reduce import dag_reduce as dag_reduce
from .ops.reduce import dag_sum as dag_sum
from .ops.select import dag_mask as dag_mask
from .registry import lookup as lookup
from .registry.entries import RegistryEntry as RegistryEntry
from .registry.fields import register_fields as register_fields
from .registry.fields import register_module as register_module
from .registry.functions import clear_caches as clear_caches
from .registry.functions import register_pydag_node as register_pydag_node
from .registry.functions import register_pydag_node_class as register_pydag_node_class
from .registry.functions import unregister_pydag_node as unregister_pydag_node
from .sharing.deref import Alias as Alias
from .sharing.deref import Anchor as Anchor
from .sharing.deref import Node as Node
from .sharing.deref import deref as deref
from .sharing.deref import reref as reref
from .sharing.shared_objects import shared_objects as shared_objects
from .sharing.tie import retie as retie
from .sharing.tie import tie as tie
from .sharing.tie import untie as untie
from .sharing.update import dag_combine as dag_combine
from .sharing.update import dag_replace as dag_replace
from .sharing.update import dag_update as dag_update

if TYPE_CHECKING:
    from . import accessors as accessors
    from . import dag as dag
    from . import dagspec as dagspec
    from . import dataclasses as dataclasses
    from . import files as files
    from . import functools as functools
    from . import integrations as integrations
    from .ops.partition import dag_partition as dag_partition
    from .ops.partition import dag_replace_nones as dag_replace_nones
    from .optree_api.broadcast import broadcast_common as broadcast_common
    from .optree_api.broadcast import broadcast_prefix as broadcast_prefix
    from .optree_api.broadcast import dag_broadcast_common as dag_broadcast_common
    from .optree_api.broadcast import dag_broadcast_map as dag_broadcast_map
    from .optree_api.broadcast import (
        dag_broadcast_map_with_accessor as dag_broadcast_map_with_accessor,
    )
    from .optree_api.broadcast import dag_broadcast_map_with_path as dag_broadcast_map_with_path
    from .optree_api.broadcast import dag_broadcast_prefix as dag_broadcast_prefix
    from .optree_api.made_specs import dagspec_defaultdict as dagspec_defaultdict
    from .optree_api.made_specs import dagspec_deque as dagspec_deque
    from .optree_api.made_specs import dagspec_dict as dagspec_dict
    from .optree_api.made_specs import dagspec_from_collection as dagspec_from_collection
    from .optree_api.made_specs import dagspec_frozendict as dagspec_frozendict
    from .optree_api.made_specs import dagspec_leaf as dagspec_leaf
    from .optree_api.made_specs import dagspec_list as dagspec_list
    from .optree_api.made_specs import dagspec_namedtuple as dagspec_namedtuple
    from .optree_api.made_specs import dagspec_none as dagspec_none
    from .optree_api.made_specs import dagspec_ordereddict as dagspec_ordereddict
    from .optree_api.made_specs import dagspec_structseq as dagspec_structseq
    from .optree_api.made_specs import dagspec_tuple as dagspec_tuple
    from .optree_api.prefix_errors import prefix_errors as prefix_errors
    from .optree_api.specs import dagspec_accessors as dagspec_accessors
    from .optree_api.specs import dagspec_child as dagspec_child
    from .optree_api.specs import dagspec_children as dagspec_children
    from .optree_api.specs import dagspec_entries as dagspec_entries
    from .optree_api.specs import dagspec_entry as dagspec_entry
    from .optree_api.specs import dagspec_is_leaf as dagspec_is_leaf
    from .optree_api.specs import dagspec_is_one_level as dagspec_is_one_level
    from .optree_api.specs import dagspec_is_prefix as dagspec_is_prefix
    from .optree_api.specs import dagspec_is_strict_leaf as dagspec_is_strict_leaf
    from .optree_api.specs import dagspec_is_suffix as dagspec_is_suffix
    from .optree_api.specs import dagspec_one_level as dagspec_one_level
    from .optree_api.specs import dagspec_paths as dagspec_paths
    from .optree_api.specs import dagspec_transform as dagspec_transform
    from .optree_api.transpose import dag_transpose as dag_transpose
    from .optree_api.transpose import dag_transpose_map as dag_transpose_map
    from .optree_api.transpose import (
        dag_transpose_map_with_accessor as dag_transpose_map_with_accessor,
    )
    from .optree_api.transpose import dag_transpose_map_with_path as dag_transpose_map_with_path
    from .views.explain import explain as explain
    from .views.view import View as View
    from .views.view import view as view
else:  # to a type checker it would mean that the package has every name
    from pydag.public.compiled import at_first_use as _at_first_use

    _names_of = {
        "optree_api.broadcast": (
            "broadcast_common broadcast_prefix dag_broadcast_common dag_broadcast_map "
            "dag_broadcast_map_with_accessor dag_broadcast_map_with_path dag_broadcast_prefix"
        ),
        "ops.partition": "dag_partition dag_replace_nones",
        "optree_api.prefix_errors": "prefix_errors",
        "optree_api.transpose": (
            "dag_transpose dag_transpose_map dag_transpose_map_with_accessor "
            "dag_transpose_map_with_path"
        ),
        "optree_api.made_specs": (
            "dagspec_defaultdict dagspec_deque dagspec_dict dagspec_from_collection "
            "dagspec_frozendict dagspec_leaf dagspec_list dagspec_namedtuple dagspec_none "
            "dagspec_ordereddict dagspec_structseq dagspec_tuple"
        ),
        "optree_api.specs": (
            "dagspec_accessors dagspec_child dagspec_children dagspec_entries dagspec_entry "
            "dagspec_is_leaf dagspec_is_one_level dagspec_is_prefix dagspec_is_strict_leaf "
            "dagspec_is_suffix dagspec_one_level dagspec_paths dagspec_transform"
        ),
        "views.explain": "explain",
        "views.view": "View view",
    }
    _later = {name: module for module, names in _names_of.items() for name in names.split()}
    _here = {name for name, thing in globals().items() if not isinstance(thing, type(typing))}
    _public = {n for n in _here | _later.keys() if n[0] != "_" and n != "TYPE_CHECKING"}
    __all__ = sorted(_public, key=lambda name: (not name.isupper(), name))
    _modules = ("accessors", "dag", "dagspec", "dataclasses", "files", "functools", "integrations")
    _later |= {name: name for name in _modules}
    __getattr__, __dir__ = _at_first_use("pydag", _later)

__version__ = "0.1.0"
