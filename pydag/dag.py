# SPDX-License-Identifier: Apache-2.0
"""The functions on DAGs under names without prefix, as optree has them in `optree.pytree`.

>>> from pydag import dag
>>> w = [1]
>>> dag.map(lambda x: x + 1, {"a": w, "b": w})
{'a': [2], 'b': [2]}
"""

from optree import PyTreeEntry as PyTreeEntry
from optree import PyTreeKind as PyTreeKind
from optree import dict_insertion_ordered as dict_insertion_ordered

from ._core import PyDagSpec as PyDagSpec
from .ops.copy import dag_copy as copy
from .ops.flatten import dag_accessors as accessors
from .ops.flatten import dag_flatten as flatten
from .ops.flatten import dag_flatten_with_accessor as flatten_with_accessor
from .ops.flatten import dag_flatten_with_path as flatten_with_path
from .ops.flatten import dag_iter as iter
from .ops.flatten import dag_leaves as leaves
from .ops.flatten import dag_paths as paths
from .ops.flatten import dag_structure as structure
from .ops.flatten import dag_unflatten as unflatten
from .ops.fold import dag_fold as fold
from .ops.fold import dag_intern as intern
from .ops.fold import dag_rewrite as rewrite
from .ops.map import dag_map as map
from .ops.map import dag_map_ as map_
from .ops.map import dag_map_with_accessor as map_with_accessor
from .ops.map import dag_map_with_accessor_ as map_with_accessor_
from .ops.map import dag_map_with_path as map_with_path
from .ops.map import dag_map_with_path_ as map_with_path_
from .ops.one_level import dag_flatten_one_level as flatten_one_level
from .ops.one_level import dag_is_leaf as is_leaf
from .ops.partition import dag_partition as partition
from .ops.partition import dag_replace_nones as replace_nones
from .ops.reduce import dag_all as all
from .ops.reduce import dag_any as any
from .ops.reduce import dag_max as max
from .ops.reduce import dag_min as min
from .ops.reduce import dag_reduce as reduce
from .ops.reduce import dag_sum as sum
from .ops.select import dag_mask as mask
from .optree_api.broadcast import dag_broadcast_common as broadcast_common
from .optree_api.broadcast import dag_broadcast_map as broadcast_map
from .optree_api.broadcast import dag_broadcast_map_with_accessor as broadcast_map_with_accessor
from .optree_api.broadcast import dag_broadcast_map_with_path as broadcast_map_with_path
from .optree_api.broadcast import dag_broadcast_prefix as broadcast_prefix
from .optree_api.reexport import ReexportedModule as ReexportedModule
from .optree_api.reexport import reexport as reexport
from .optree_api.transpose import dag_transpose as transpose
from .optree_api.transpose import dag_transpose_map as transpose_map
from .optree_api.transpose import dag_transpose_map_with_accessor as transpose_map_with_accessor
from .optree_api.transpose import dag_transpose_map_with_path as transpose_map_with_path
from .registry.functions import register_pydag_node as register_node
from .registry.functions import register_pydag_node_class as register_node_class
from .registry.functions import unregister_pydag_node as unregister_node
from .sharing.update import dag_combine as combine
from .sharing.update import dag_replace as replace
from .sharing.update import dag_update as update

__all__ = [
    "PyDagSpec",
    "PyTreeEntry",
    "PyTreeKind",
    "accessors",
    "all",
    "any",
    "broadcast_common",
    "broadcast_map",
    "broadcast_map_with_accessor",
    "broadcast_map_with_path",
    "broadcast_prefix",
    "combine",
    "copy",
    "dict_insertion_ordered",
    "flatten",
    "flatten_one_level",
    "flatten_with_accessor",
    "flatten_with_path",
    "fold",
    "intern",
    "is_leaf",
    "iter",
    "leaves",
    "map",
    "map_",
    "map_with_accessor",
    "map_with_accessor_",
    "map_with_path",
    "map_with_path_",
    "mask",
    "max",
    "min",
    "partition",
    "paths",
    "reduce",
    "reexport",
    "register_node",
    "register_node_class",
    "replace",
    "replace_nones",
    "rewrite",
    "structure",
    "sum",
    "transpose",
    "transpose_map",
    "transpose_map_with_accessor",
    "transpose_map_with_path",
    "unflatten",
    "unregister_node",
    "update",
]
