# SPDX-License-Identifier: Apache-2.0
"""How specs are made of specs, by names without a prefix, as in `optree.treespec`.

>>> from pydag import dagspec
>>> dagspec.dict(a=dagspec.leaf(), b=dagspec.list())
PyDagSpec({'a': *, 'b': []})
"""

from .structure.made_specs import dagspec_defaultdict as defaultdict
from .structure.made_specs import dagspec_deque as deque
from .structure.made_specs import dagspec_dict as dict
from .structure.made_specs import dagspec_from_collection as from_collection
from .structure.made_specs import dagspec_frozendict as frozendict
from .structure.made_specs import dagspec_leaf as leaf
from .structure.made_specs import dagspec_list as list
from .structure.made_specs import dagspec_namedtuple as namedtuple
from .structure.made_specs import dagspec_none as none
from .structure.made_specs import dagspec_ordereddict as ordereddict
from .structure.made_specs import dagspec_structseq as structseq
from .structure.made_specs import dagspec_tuple as tuple

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
