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
from .ops import copy as _copy
from .ops import flatten as _flatten
from .ops import fold as _fold
from .ops import map as _map
from .ops import one_level as _one_level
from .ops import partition as _partition
from .ops import reduce as _reduce
from .ops import select as _select
from .optree_api import broadcast as _broadcast
from .optree_api import transpose as _transpose
from .optree_api.reexport import ReexportedModule as ReexportedModule
from .optree_api.reexport import reexport as reexport
from .registry import functions as _functions
from .sharing import update as _update

accessors = _flatten.dag_accessors
all = _reduce.dag_all
any = _reduce.dag_any
broadcast_common = _broadcast.dag_broadcast_common
broadcast_map = _broadcast.dag_broadcast_map
broadcast_map_with_accessor = _broadcast.dag_broadcast_map_with_accessor
broadcast_map_with_path = _broadcast.dag_broadcast_map_with_path
broadcast_prefix = _broadcast.dag_broadcast_prefix
combine = _update.dag_combine
copy = _copy.dag_copy
flatten = _flatten.dag_flatten
flatten_one_level = _one_level.dag_flatten_one_level
flatten_with_accessor = _flatten.dag_flatten_with_accessor
flatten_with_path = _flatten.dag_flatten_with_path
fold = _fold.dag_fold
intern = _fold.dag_intern
is_leaf = _one_level.dag_is_leaf
iter = _flatten.dag_iter
leaves = _flatten.dag_leaves
map = _map.dag_map
map_ = _map.dag_map_
map_with_accessor = _map.dag_map_with_accessor
map_with_accessor_ = _map.dag_map_with_accessor_
map_with_path = _map.dag_map_with_path
map_with_path_ = _map.dag_map_with_path_
mask = _select.dag_mask
max = _reduce.dag_max
min = _reduce.dag_min
partition = _partition.dag_partition
paths = _flatten.dag_paths
reduce = _reduce.dag_reduce
register_node = _functions.register_pydag_node
register_node_class = _functions.register_pydag_node_class
replace = _update.dag_replace
replace_nones = _partition.dag_replace_nones
rewrite = _fold.dag_rewrite
structure = _flatten.dag_structure
sum = _reduce.dag_sum
transpose = _transpose.dag_transpose
transpose_map = _transpose.dag_transpose_map
transpose_map_with_accessor = _transpose.dag_transpose_map_with_accessor
transpose_map_with_path = _transpose.dag_transpose_map_with_path
unflatten = _flatten.dag_unflatten
unregister_node = _functions.unregister_pydag_node
update = _update.dag_update

__all__ = sorted(name for name in globals() if name[0] != "_" and name != "ReexportedModule")
