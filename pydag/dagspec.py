# SPDX-License-Identifier: Apache-2.0
"""How specs are made of specs, by names without a prefix, as in `optree.treespec`.

>>> from pydag import dagspec
>>> dagspec.dict(a=dagspec.leaf(), b=dagspec.list())
PyDagSpec({'a': *, 'b': []})
"""

import pydag as _pydag

defaultdict = _pydag.dagspec_defaultdict
deque = _pydag.dagspec_deque
dict = _pydag.dagspec_dict
from_collection = _pydag.dagspec_from_collection
frozendict = _pydag.dagspec_frozendict
leaf = _pydag.dagspec_leaf
list = _pydag.dagspec_list
namedtuple = _pydag.dagspec_namedtuple
none = _pydag.dagspec_none
ordereddict = _pydag.dagspec_ordereddict
structseq = _pydag.dagspec_structseq
tuple = _pydag.dagspec_tuple

__all__ = sorted(name for name in globals() if not name.startswith("_"))
