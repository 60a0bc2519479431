# SPDX-License-Identifier: Apache-2.0
"""How specs are made of specs, by names without a prefix, as in `optree.treespec`.

>>> from pydag import dagspec
>>> dagspec.dict(a=dagspec.leaf(), b=dagspec.list())
PyDagSpec({'a': *, 'b': []})
"""

from .optree_api.made_specs import dagspec_defaultdict as defaultdict
from .optree_api.made_specs import dagspec_deque as deque
from .optree_api.made_specs import dagspec_dict as dict
from .optree_api.made_specs import dagspec_from_collection as from_collection
from .optree_api.made_specs import dagspec_frozendict as frozendict
from .optree_api.made_specs import dagspec_leaf as leaf
from .optree_api.made_specs import dagspec_list as list
from .optree_api.made_specs import dagspec_namedtuple as namedtuple
from .optree_api.made_specs import dagspec_none as none
from .optree_api.made_specs import dagspec_ordereddict as ordereddict
from .optree_api.made_specs import dagspec_structseq as structseq
from .optree_api.made_specs import dagspec_tuple as tuple

__all__ = [
    "defaultdict",
    "deque",
    "dict",
    "from_collection",
    "frozendict",
    "leaf",
    "list",
    "namedtuple",
    "none",
    "ordereddict",
    "structseq",
    "tuple",
]
