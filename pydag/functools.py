# SPDX-License-Identifier: Apache-2.0
"""`partial`, a node whose children are the arguments, and `reduce`.

The class is optree's, registered with it, so it is a node there and here.

>>> from pydag.functools import partial
>>> shared = [1.0]
>>> bound = pydag.dag_map(lambda x: 2 * x, partial(print, shared, end=shared))
>>> bound.args[0] is bound.keywords["end"]
True
"""

import optree.functools
from optree.functools import partial as partial

from .ops.reduce import dag_reduce as reduce

__all__ = ["partial", "reduce"]

if hasattr(optree.functools, "Placeholder"):  # pragma: no cover: Python 3.14 has one
    Placeholder = optree.functools.Placeholder
    __all__ += ["Placeholder"]  # a name
