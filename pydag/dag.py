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

import pydag as _pydag

from ._core import PyDagSpec as PyDagSpec
from .optree_api.reexport import ReexportedModule as ReexportedModule
from .optree_api.reexport import reexport as reexport

accessors = _pydag.dag_accessors
all = _pydag.dag_all
any = _pydag.dag_any
broadcast_common = _pydag.dag_broadcast_common
broadcast_map = _pydag.dag_broadcast_map
broadcast_map_with_accessor = _pydag.dag_broadcast_map_with_accessor
broadcast_map_with_path = _pydag.dag_broadcast_map_with_path
broadcast_prefix = _pydag.dag_broadcast_prefix
combine = _pydag.dag_combine
copy = _pydag.dag_copy
flatten = _pydag.dag_flatten
flatten_one_level = _pydag.dag_flatten_one_level
flatten_with_accessor = _pydag.dag_flatten_with_accessor
flatten_with_path = _pydag.dag_flatten_with_path
fold = _pydag.dag_fold
intern = _pydag.dag_intern
is_leaf = _pydag.dag_is_leaf
iter = _pydag.dag_iter
leaves = _pydag.dag_leaves
map = _pydag.dag_map
map_ = _pydag.dag_map_
map_with_accessor = _pydag.dag_map_with_accessor
map_with_accessor_ = _pydag.dag_map_with_accessor_
map_with_path = _pydag.dag_map_with_path
map_with_path_ = _pydag.dag_map_with_path_
mask = _pydag.dag_mask
max = _pydag.dag_max
min = _pydag.dag_min
partition = _pydag.dag_partition
paths = _pydag.dag_paths
reduce = _pydag.dag_reduce
register_node = _pydag.register_pydag_node
register_node_class = _pydag.register_pydag_node_class
replace = _pydag.dag_replace
replace_nones = _pydag.dag_replace_nones
rewrite = _pydag.dag_rewrite
structure = _pydag.dag_structure
sum = _pydag.dag_sum
transpose = _pydag.dag_transpose
transpose_map = _pydag.dag_transpose_map
transpose_map_with_accessor = _pydag.dag_transpose_map_with_accessor
transpose_map_with_path = _pydag.dag_transpose_map_with_path
unflatten = _pydag.dag_unflatten
unregister_node = _pydag.unregister_pydag_node
update = _pydag.dag_update

__all__ = sorted(name for name in globals() if name[0] != "_" and name != "ReexportedModule")
