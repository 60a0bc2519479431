# SPDX-License-Identifier: Apache-2.0
"""Functions that make specs of specs, under names without prefix, as in `optree.treespec`.

>>> from pydag import dagspec
>>> dagspec.dict(a=dagspec.leaf(), b=dagspec.list())
PyDagSpec({'a': *, 'b': []})
"""

from .optree_api import made_specs as _specs

defaultdict = _specs.dagspec_defaultdict
deque = _specs.dagspec_deque
dict = _specs.dagspec_dict
from_collection = _specs.dagspec_from_collection
frozendict = _specs.dagspec_frozendict
leaf = _specs.dagspec_leaf
list = _specs.dagspec_list
namedtuple = _specs.dagspec_namedtuple
none = _specs.dagspec_none
ordereddict = _specs.dagspec_ordereddict
structseq = _specs.dagspec_structseq
tuple = _specs.dagspec_tuple

__all__ = sorted(name for name in globals() if not name.startswith("_"))
