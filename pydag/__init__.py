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

from . import _classify as _classify
from . import dagspec as dagspec
from . import files as files
from ._core import PyDagSpec as PyDagSpec
from .errors import CycleError as CycleError
from .errors import SharingError as SharingError
from .fields import register_fields as register_fields
from .ops.copy import dag_copy as dag_copy
from .ops.flatten import dag_accessors as dag_accessors
from .ops.flatten import dag_flatten as dag_flatten
from .ops.flatten import dag_flatten_with_accessor as dag_flatten_with_accessor
from .ops.flatten import dag_flatten_with_path as dag_flatten_with_path
from .ops.flatten import dag_leaves as dag_leaves
from .ops.flatten import dag_paths as dag_paths
from .ops.flatten import dag_structure as dag_structure
from .ops.flatten import dag_unflatten as dag_unflatten
from .ops.fold import dag_fold as dag_fold
from .ops.fold import dag_intern as dag_intern
from .ops.fold import dag_rewrite as dag_rewrite
from .ops.map import dag_map as dag_map
from .ops.map import dag_map_with_accessor as dag_map_with_accessor
from .ops.map import dag_map_with_path as dag_map_with_path
from .registry import RegistryEntry as RegistryEntry
from .registry import clear_caches as clear_caches
from .registry import register_pydag_node as register_pydag_node
from .registry import register_pydag_node_class as register_pydag_node_class
from .registry import unregister_pydag_node as unregister_pydag_node
from .selectors import dag_mask as dag_mask
from .sharing.deref import Alias as Alias
from .sharing.deref import Anchor as Anchor
from .sharing.deref import Node as Node
from .sharing.deref import deref as deref
from .sharing.deref import reref as reref
from .sharing.explain import explain as explain
from .sharing.shared_objects import SharedObject as SharedObject
from .sharing.shared_objects import shared_objects as shared_objects
from .sharing.tie import retie as retie
from .sharing.tie import tie as tie
from .sharing.tie import untie as untie
from .sharing.update import dag_combine as dag_combine
from .sharing.update import dag_replace as dag_replace
from .sharing.update import dag_update as dag_update
from .specs import dagspec_accessors as dagspec_accessors
from .specs import dagspec_child as dagspec_child
from .specs import dagspec_children as dagspec_children
from .specs import dagspec_defaultdict as dagspec_defaultdict
from .specs import dagspec_deque as dagspec_deque
from .specs import dagspec_dict as dagspec_dict
from .specs import dagspec_entries as dagspec_entries
from .specs import dagspec_entry as dagspec_entry
from .specs import dagspec_from_collection as dagspec_from_collection
from .specs import dagspec_frozendict as dagspec_frozendict
from .specs import dagspec_is_leaf as dagspec_is_leaf
from .specs import dagspec_is_one_level as dagspec_is_one_level
from .specs import dagspec_is_prefix as dagspec_is_prefix
from .specs import dagspec_is_strict_leaf as dagspec_is_strict_leaf
from .specs import dagspec_is_suffix as dagspec_is_suffix
from .specs import dagspec_leaf as dagspec_leaf
from .specs import dagspec_list as dagspec_list
from .specs import dagspec_namedtuple as dagspec_namedtuple
from .specs import dagspec_none as dagspec_none
from .specs import dagspec_one_level as dagspec_one_level
from .specs import dagspec_ordereddict as dagspec_ordereddict
from .specs import dagspec_paths as dagspec_paths
from .specs import dagspec_structseq as dagspec_structseq
from .specs import dagspec_transform as dagspec_transform
from .specs import dagspec_tuple as dagspec_tuple
from .view import View as View
from .view import view as view

if not TYPE_CHECKING:  # to a type checker it would mean that the package has every name
    from ._missing import __getattr__ as __getattr__

__version__ = "0.1.0"

__all__ = [
    "Alias",
    "Anchor",
    "CycleError",
    "Node",
    "PyDagSpec",
    "RegistryEntry",
    "SharedObject",
    "SharingError",
    "View",
    "clear_caches",
    "dag_accessors",
    "dag_combine",
    "dag_copy",
    "dag_flatten",
    "dag_flatten_with_accessor",
    "dag_flatten_with_path",
    "dag_fold",
    "dag_intern",
    "dag_leaves",
    "dag_map",
    "dag_map_with_accessor",
    "dag_map_with_path",
    "dag_mask",
    "dag_paths",
    "dag_replace",
    "dag_rewrite",
    "dag_structure",
    "dag_unflatten",
    "dag_update",
    "dagspec_accessors",
    "dagspec_child",
    "dagspec_children",
    "dagspec_defaultdict",
    "dagspec_deque",
    "dagspec_dict",
    "dagspec_entries",
    "dagspec_entry",
    "dagspec_from_collection",
    "dagspec_frozendict",
    "dagspec_is_leaf",
    "dagspec_is_one_level",
    "dagspec_is_prefix",
    "dagspec_is_strict_leaf",
    "dagspec_is_suffix",
    "dagspec_leaf",
    "dagspec_list",
    "dagspec_namedtuple",
    "dagspec_none",
    "dagspec_one_level",
    "dagspec_ordereddict",
    "dagspec_paths",
    "dagspec_structseq",
    "dagspec_transform",
    "dagspec_tuple",
    "deref",
    "explain",
    "register_fields",
    "register_pydag_node",
    "register_pydag_node_class",
    "reref",
    "retie",
    "shared_objects",
    "tie",
    "unregister_pydag_node",
    "untie",
    "view",
]
