# SPDX-License-Identifier: Apache-2.0
"""Pytrees that keep object identity: what was shared stays shared."""

from . import _classify as _classify
from ._core import PyDagSpec as PyDagSpec
from ._core import clear_caches as clear_caches
from .errors import CycleError as CycleError
from .errors import SharingError as SharingError
from .fields import register_fields as register_fields
from .folds import dag_fold as dag_fold
from .folds import dag_intern as dag_intern
from .folds import dag_rewrite as dag_rewrite
from .ops import dag_accessors as dag_accessors
from .ops import dag_copy as dag_copy
from .ops import dag_flatten as dag_flatten
from .ops import dag_flatten_with_accessor as dag_flatten_with_accessor
from .ops import dag_flatten_with_path as dag_flatten_with_path
from .ops import dag_leaves as dag_leaves
from .ops import dag_map as dag_map
from .ops import dag_map_with_accessor as dag_map_with_accessor
from .ops import dag_map_with_path as dag_map_with_path
from .ops import dag_paths as dag_paths
from .ops import dag_structure as dag_structure
from .ops import dag_unflatten as dag_unflatten
from .registry import RegistryEntry as RegistryEntry
from .registry import register_pydag_node as register_pydag_node
from .registry import register_pydag_node_class as register_pydag_node_class
from .registry import unregister_pydag_node as unregister_pydag_node
from .sharing import Alias as Alias
from .sharing import Anchor as Anchor
from .sharing import Node as Node
from .sharing import SharedObject as SharedObject
from .sharing import deref as deref
from .sharing import explain as explain
from .sharing import reref as reref
from .sharing import shared_objects as shared_objects

__version__ = "0.1.0"
