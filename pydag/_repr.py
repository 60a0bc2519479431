# SPDX-License-Identifier: Apache-2.0
"""How an object is shown in an error message: shortly, whatever it is.

A shared structure can be exponentially long when it is written out, and a class's own `__repr__`
may write out anything. So it is asked only of classes that are known to be brief.
"""

import collections
import reprlib
import types
from typing import Any

# NumPy's and JAX's arrays leave out their middle.
_BRIEF_MODULES = ("numpy", "jax", "jaxlib", "ml_dtypes")
_BRIEF = (int, float, complex, range, types.FunctionType, types.BuiltinFunctionType)


class _ShortRepr(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxtuple = self.maxlist = self.maxdict = self.maxset = self.maxdeque = 12
        self.maxstring = self.maxlong = self.maxother = 200

    def repr1(self, x: Any, level: int) -> str:
        cls = type(x)
        if cls in (tuple, list, dict, set, frozenset, collections.deque, str, bytes, int):
            return super().repr1(x, level)
        if isinstance(x, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
            pairs = zip(getattr(cls, "_fields"), x, strict=False)  # noqa: B009 (typed as a tuple)
            names = (f"{name}={self.repr1(item, level - 1)}" for name, item in pairs)
            return f"{cls.__name__}({', '.join(names)})" if level > 0 else f"{cls.__name__}(...)"
        if cls is collections.OrderedDict:
            return f"OrderedDict({super().repr1(dict(x), level)})"
        if cls is collections.defaultdict:
            return f"defaultdict({x.default_factory!r}, {super().repr1(dict(x), level)})"
        is_brief = cls.__module__.partition(".")[0] in _BRIEF_MODULES
        has_default = getattr(cls, "__repr__", None) is object.__repr__
        if x is None or isinstance(x, (*_BRIEF, type)) or is_brief or has_default:
            return self.repr_instance(x, level)
        return f"<{cls.__module__}.{cls.__qualname__} object at {id(x):#x}>"


def short_repr(x: object) -> str:
    """`repr(x)` where that is short; else an outline of it."""
    return _ShortRepr().repr(x)
