# SPDX-License-Identifier: Apache-2.0
"""Leaves told apart by what was found out about the last trees of the same structure.

Which leaves are static follows from the structure and the classes of the leaves, where these are
arrays of JAX's, arrays of NumPy's with numbers in them, numbers, text or None. So for a tree of a
structure that was seen before, with leaves of the same classes, nothing is asked of each leaf.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.roots import Roots
from pydag.structure.known import KnownOfStructures
from pydag.typing import Leaf

from .leaves import Static, have_common_dtypes, is_class_traced, is_of_jax
from .pick import picker
from .positions import are_data, static_positions

PLAIN = frozenset(map(id, (type(None), bool, int, float, complex, str, bytes)))
"""The classes of values that hold nothing, by id."""

_ARRAYS = frozenset({id(np.ndarray)})


class Parting:
    """Which leaves of a structure are static, where the leaves are of some classes.

    Args:
        static: Their positions.
    """

    __slots__ = ("_arrays_of", "_classes", "_data", "_data_of", "_last", "_static_of", "static")

    def __init__(
        self, leaves: Sequence[Leaf], static: tuple[int, ...], arrays: Sequence[int]
    ) -> None:
        size = len(leaves)
        self.static, self._data = static, tuple(compress(range(size), are_data(leaves, static)))
        self._classes = tuple(map(type, leaves))
        self._static_of, self._data_of = picker(static, size), picker(self._data, size)
        self._arrays_of = picker(arrays, size)
        # The static leaves that were seen last. The next tree mostly has the same objects, and then
        # nothing is made, hashed or compared for each.
        self._last: tuple[Sequence[Leaf], tuple[Static, ...]] = (), ()

    def fits(self, leaves: Sequence[Leaf]) -> bool:
        """Whether it is true of these leaves."""
        return _core.have_classes(leaves, self._classes) and have_common_dtypes(
            self._arrays_of(leaves)
        )

    def data(self, leaves: list[Leaf]) -> Sequence[Leaf]:
        """The leaves that aren't static; the list itself if that is all."""
        return self._data_of(leaves)

    def statics(self, leaves: list[Leaf]) -> tuple[Static, ...]:
        """The static leaves. They are numbers, text and None."""
        if not self.static:
            return ()
        values = self._static_of(leaves)
        last, statics = self._last
        if not _core.are_same_objects(values, last):
            statics = tuple(map(Static, values))
            self._last = values, statics
        return statics

    def with_data(self, leaves: list[Leaf], data: Sequence[Any]) -> Sequence[Any]:
        """All leaves, with other data."""
        if not self.static:
            return data
        for i, value in zip(self._data, data, strict=True):
            leaves[i] = value
        return leaves


# For a structure what is known of the trees that were seen last.
_partings: KnownOfStructures[tuple[Parting, ...]] = KnownOfStructures()
_MOST_FOR_ONE = 4
_MOST_LEAVES = 50_000


def parted(leaves: list[Leaf], spec: PyDagSpec, roots: Roots = "tree") -> Parting | None:
    """Which leaves of a tree are static; None where each leaf has to be asked.

    Raises:
        SharingError: As `static_positions`.
    """
    known = _partings.get(spec) or ()
    for parting in known:
        if parting.fits(leaves):
            return parting
    found = _parting(leaves, spec, roots)
    if found is not None and len(leaves) <= _MOST_LEAVES:
        _partings.set(spec, (found, *known[: _MOST_FOR_ONE - 1]))
    return found


def _parting(leaves: list[Leaf], spec: PyDagSpec, roots: Roots) -> Parting | None:
    examples = _core.one_of_each_class(leaves)
    if not all(key in PLAIN or key in _ARRAYS or _is_array(x) for key, x in examples.items()):
        return None
    arrays = _core.positions_of_classes(leaves, _ARRAYS) if examples.keys() >= _ARRAYS else []
    if not have_common_dtypes([leaves[i] for i in arrays]):
        return None
    return Parting(leaves, static_positions(leaves, spec, roots), arrays)


def _is_array(leaf: Leaf) -> bool:
    """Whether JAX takes each instance of this leaf's class for an array."""
    return is_of_jax(leaf) and is_class_traced(leaf) is True
