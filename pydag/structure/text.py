# SPDX-License-Identifier: Apache-2.0
"""Texts of objects: brief in an error message, elsewhere in full if that isn't too long.

A shared structure can be exponentially long when it is written out, and a class's own `__repr__`
may write out anything. So a message uses only a `__repr__` that is known to be brief. Elsewhere it
is used if the object consists of few others, where an object that appears twice counts twice.
"""

import builtins
import collections
import gc
import itertools
import re
import reprlib
import sys
import types
from typing import Any

from pydag.arrays.kinds import LIBRARIES, array_outline, module_of, outline

_ADDRESS = re.compile("( object| instance)? at 0x[0-9a-fA-F]+")
_UNNAMED = "unnamed field"  # as CPython calls it
# Structures of other libraries, without sharing: their texts must not look like a PyDagSpec.
_FOREIGN_SPECS = {
    "optree.PyTreeSpec": "optree's PyTreeSpec",
    "jaxlib._jax.pytree.PyTreeDef": "JAX's PyTreeDef",
}
_BRIEF = (
    int, float, complex, range, type(...), type(NotImplemented), types.FunctionType,
    types.BuiltinFunctionType,
)  # fmt: skip


def _is_filled(x: Any) -> bool:
    """Whether all items of a list or tuple are set; it may still be under construction.

    The garbage collector doesn't report unset items; reading one would crash.
    """
    return len(gc.get_referents(x)) == len(x)


_FROZEN_DICT = getattr(builtins, "frozendict", None)


class _ShortRepr(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxtuple = self.maxlist = self.maxdict = self.maxset = self.maxdeque = 12
        self.maxstring = self.maxlong = self.maxother = 200

    def shortened(self, text: str) -> str:
        """The text without its middle, if it is long."""
        half = (self.maxother - 3) // 2
        return text if len(text) <= self.maxother else f"{text[:half]}...{text[-half:]}"

    def repr1(self, x: Any, level: int) -> str:
        cls = type(x)
        if cls in (tuple, list) and not _is_filled(x):
            return f"<{cls.__name__} of {len(x)} that isn't filled yet>"
        if cls in (tuple, list, dict, set, frozenset, collections.deque, str, bytes, int):
            return super().repr1(x, level)
        if module_of(cls).startswith("pydag.") and hasattr(cls, "_brief_repr"):
            return self.shortened(_ADDRESS.sub("", x._brief_repr()))
        if isinstance(x, tuple) and (names := self._names(cls)) is not None:
            is_namedtuple = hasattr(cls, "_fields")
            name = cls.__name__ if is_namedtuple else f"{module_of(cls)}.{cls.__qualname__}"
            if level <= 0:
                return f"{name}(...)"
            shown = itertools.islice(zip(names, x, strict=False), self.maxtuple)
            pairs = [f"{label}={self.repr1(item, level - 1)}" for label, item in shown]
            return f"{name}({', '.join(pairs + ['...'] * (len(x) > len(pairs)))})"
        if cls is collections.OrderedDict:
            if sys.version_info < (3, 12):  # pragma: no cover: Python 3.11
                return f"OrderedDict({self.repr_list(list(x.items()), level) if x else ''})"
            return f"OrderedDict({self.repr_dict(x, level) if x else ''})"
        if cls is _FROZEN_DICT:  # pragma: no cover: Python 3.15
            return f"frozendict({self.repr_dict(x, level) if x else ''})"
        if cls is collections.defaultdict:
            factory = self.repr1(x.default_factory, level - 1)
            return f"defaultdict({factory}, {self.repr_dict(x, level)})"
        if (foreign := _FOREIGN_SPECS.get(f"{module_of(cls)}.{cls.__qualname__}")) is not None:
            return foreign
        is_brief = module_of(cls).partition(".")[0] in LIBRARIES
        if is_brief and (array := outline(x)) is not None:
            return array
        has_default = getattr(cls, "__repr__", None) is object.__repr__
        if x is None or isinstance(x, (*_BRIEF, type)) or is_brief or has_default:
            return self.repr_instance(x, level)
        return f"<{module_of(cls)}.{cls.__qualname__}>"

    def repr_instance(self, x: Any, level: int) -> str:
        """The object without its address, which means nothing to a reader."""
        try:
            text = repr(x)
        except Exception:
            text = f"<{module_of(type(x))}.{type(x).__qualname__}>"
        return self.shortened(_ADDRESS.sub("", text))

    @staticmethod
    def _names(cls: type) -> "tuple[str, ...] | None":
        """The names of the items of a namedtuple or struct sequence."""
        fields = getattr(cls, "_fields", None)
        if isinstance(fields, tuple):
            return fields
        core = sys.modules.get("pydag._core")
        if core is None or not core.is_structseq_class(cls):
            return None
        names = enumerate(core.structseq_fields(cls))
        return tuple(f"<unnamed@{i}>" if name == _UNNAMED else name for i, name in names)

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """The dict in its own order."""
        if level <= 0 and x:
            return "{...}"
        shown = list(itertools.islice(x.items(), self.maxdict))
        pairs = [f"{self.repr1(k, level - 1)}: {self.repr1(v, level - 1)}" for k, v in shown]
        return "{" + ", ".join(pairs + ["..."] * (len(x) > len(pairs))) + "}"

    def repr_deque(self, x: collections.deque[Any], level: int) -> str:
        """The deque with its `maxlen`, if it has one."""
        text = super().repr_deque(x, level)
        return text if x.maxlen is None else f"{text[:-1]}, maxlen={x.maxlen})"


def short_repr(x: object) -> str:
    """`repr(x)` if that is short; else an outline of it."""
    return _ShortRepr().repr(x)


_MOST_WRITTEN = 10_000
# Objects of these classes are written by name, whatever they refer to.
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)


def _is_bearable(x: object) -> bool:
    """Whether `repr(x)` writes few enough objects, judged by the objects that `x` refers to.

    An object within itself is written as `...`.
    """
    left = _MOST_WRITTEN
    within: list[object] = []  # the objects whose parts are being counted, outermost first
    addresses: set[int] = set()  # of these objects
    pending = [iter([x])]
    while pending:
        for y in pending[-1]:
            has_default = getattr(type(y), "__repr__", None) is object.__repr__
            if has_default or isinstance(y, _NAMED) or id(y) in addresses:
                continue
            parts = gc.get_referents(y)
            left -= len(parts)
            if left < 0:
                return False
            if parts:
                within.append(y)
                addresses.add(id(y))
                pending.append(iter(parts))
                break
        else:
            pending.pop()
            if within:
                addresses.discard(id(within.pop()))
    return True


def bounded_repr(x: object) -> str:
    """`repr(x)`, or an outline if that could be exponentially long."""
    return repr(x) if _is_bearable(x) else short_repr(x)


def fields_repr(x: Any) -> str:
    """The `__repr__` of a dataclass whose values may be shared many times."""
    shown = (f"{name}={bounded_repr(getattr(x, name))}" for name in x.__dataclass_fields__)
    return f"{type(x).__qualname__}({', '.join(shown)})"


def unopened_hint(leaf: object) -> str | None:
    """What to do about an object that is a leaf, though it has attributes; None for other leaves.

    Args:
        leaf: Only its attributes are looked at.
    """
    try:
        attributes = object.__getattribute__(leaf, "__dict__")
    except (AttributeError, TypeError):
        return None
    if type(attributes) is not dict or array_outline(leaf) is not None:
        return None
    if not attributes or "__wrapped__" in attributes:  # a function that stands for another one
        return None
    held = [name for name, value in attributes.items() if array_outline(value) is not None]
    arrays = f", and holds arrays, as in its attribute {held[0]!r}" if held else ""
    cls = type(leaf)
    return (
        f"The leaf is an object of the class {cls.__qualname__}, which is not registered{arrays}: "
        f"pydag.register_fields({cls.__name__}) makes such objects nodes."
    )
