# SPDX-License-Identifier: Apache-2.0
"""The text of a leaf or of a value of the configuration, and the size of a leaf in bytes.

A leaf may be any object: its `repr` may be endless, raise, or hold control characters.
"""

import math
import types
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydag.arrays.kinds import array_text, short_dtype
from pydag.sharing.refs import is_ref
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr

_LONGEST = 60


class LeafInfo(NamedTuple):
    """A leaf as it is shown."""

    text: str
    dtype: str  # the class, if it is no array
    shape: tuple[int, ...] | None  # None: no array
    parameters: int
    bytes: int


def printable(text: str) -> str:
    """The text, with invisible characters and those that move others escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cut(text: str, longest: int) -> str:
    """The beginning of a text that is too long."""
    return text if len(text) <= longest else text[: max(longest - 1, 0)] + "…"


def brief(x: Any, longest: int = _LONGEST) -> str:
    """A value in a few words, whatever it is."""
    try:
        if type(x) in (str, bytes):
            text = repr(x[: longest + 1])
        elif type(x) is int and x.bit_length() > 400:
            text = f"<int of {x.bit_length()} bits>"
        elif isinstance(x, type):
            text = x.__qualname__
        elif isinstance(x, (types.FunctionType, types.BuiltinFunctionType)):
            text = f"<function {x.__qualname__}>"
        else:
            text = short_repr(x)
    except Exception:
        text = f"<{type(x).__qualname__}>"
    return printable(cut(text, longest))


def array_info(dtype: Any, shape: tuple[int, ...], size_in_bytes: int) -> LeafInfo:
    """An array of this type and shape."""
    name = printable(cut(short_dtype(dtype), 30))
    return LeafInfo(array_text(name, shape), name, shape, math.prod(shape), size_in_bytes)


def leaf_info(leaf: Any) -> LeafInfo:
    """The text of a leaf, and its size."""
    if hasattr(type(leaf), "shape") and hasattr(type(leaf), "dtype"):
        try:
            shape = tuple(int(n) for n in leaf.shape)
            size = getattr(leaf, "nbytes", None)
            if size is None:
                size = math.prod(shape) * int(leaf.dtype.itemsize)
            info = array_info(leaf.dtype, shape, int(size))
            return info._replace(text=f"Ref {info.text}") if is_ref(leaf) else info
        except Exception:
            pass  # it only looks like an array
    return LeafInfo(brief(leaf), printable(cut(type(leaf).__qualname__, 30)), None, 0, 0)


_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
_UNSIZED = LeafInfo("", "", None, 0, 0)


class Infos:
    """The text and size of each leaf of a DAG.

    Args:
        infos: An info for each leaf; or the leaf itself, if it is an immutable value, whose text is
            made at its first use.
    """

    def __init__(self, infos: list[Any]) -> None:
        self._infos = infos

    @classmethod
    def of(cls, leaves: Sequence[Any]) -> "Infos":
        """The leaves as they are now. Arrays of one shape and dtype have the same info."""
        arrays = set(filter(_is_array_class, set(map(type, leaves))))
        known: dict[Any, LeafInfo] = {}  # of arrays
        infos: list[Any] = []
        for leaf in leaves:
            leaf_class = type(leaf)
            if leaf_class in arrays:
                look = leaf.shape, leaf.dtype
                info = known.get(look)
                infos.append(info or known.setdefault(look, leaf_info(leaf)))
            else:
                infos.append(leaf if leaf_class in _PLAIN else leaf_info(leaf))
        return cls(infos)

    @classmethod
    def unknown(cls, listing: Listing) -> "Infos":
        """The infos of a structure without leaves."""
        return cls([LeafInfo("*", "", None, 0, 0)] * len(listing.leaves))

    def __getitem__(self, leaf: int) -> LeafInfo:
        info = self._infos[leaf]
        return info if type(info) is LeafInfo else leaf_info(info)

    def __len__(self) -> int:
        return len(self._infos)

    def sizes(self) -> tuple[list[int], list[int]]:
        """The parameters and the bytes of each leaf."""
        infos = [info if type(info) is LeafInfo else _UNSIZED for info in self._infos]
        return [info[3] for info in infos], [info[4] for info in infos]


def _is_array_class(cls: type) -> bool:
    """Whether shape and dtype describe an instance fully: true for NumPy's and JAX's arrays."""
    names = cls.__module__.partition(".")[0], cls.__qualname__
    return names in (("numpy", "ndarray"), ("jaxlib", "ArrayImpl"))
