# SPDX-License-Identifier: Apache-2.0
"""Fills a given structure with arrays that are known by name."""

import functools
import itertools
import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from pydag.arrays.bytes import same_bytes
from pydag.arrays.kinds import (
    have_one_signature,
    is_array,
    is_array_class,
    of_class,
    signature_text,
)
from pydag.structure.listing import Listing, Record
from pydag.structure.text import short_repr
from pydag.typing import Leaf

from .configuration import Difference, are_whole_arrays, differences_text, is_other
from .names import leaf_names, listed

_SHOWN = 8
_NUMBERS = (bool, int, float, complex)


class Filler:
    """Collects a new value for each leaf of `like`.

    Args:
        source: Where the names come from, for error messages.
        configuration: Which leaves stay as they are.
        cure: The advice for an array that doesn't fit.
    """

    def __init__(
        self,
        listing: Listing,
        leaves: Sequence[Leaf],
        source: str,
        selected: Sequence[bool],
        configuration: Collection[int] = (),
        cure: str = "or leave it out (only=)",
    ) -> None:
        self._cure = cure
        self._configuration, self._listing = configuration, listing
        self.differences: list[Difference] = []
        self._leaves, self._source, self._selected = leaves, source, selected
        self._names, self.leaf_names = leaf_names(listing)
        self._positions = listing.leaves
        self._are_arrays = of_class(leaves, is_array_class)
        self._found: dict[int, tuple[str, Any]] = {}
        self._values: dict[int, Any] = {}
        self.surplus: list[str] = []

    @functools.cached_property
    def _of_position(self) -> dict[int | None, int]:
        return {position: i for i, position in enumerate(self._positions)}

    @functools.cached_property
    def _of_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.leaf_names)}

    def find(self, name: str) -> int | None:
        """The leaf that has this name, by any of its paths."""
        if (known := self._of_name.get(name)) is not None:
            return known
        return self._of_position.get(self._names.find(name))

    def find_way(self, way: Iterable[Record]) -> int | None:
        """The leaf at the path that leads to a node of another tree."""
        return self._of_position.get(self._names.find_way(way))

    def put_at(self, leaf: int | None, name: str, array: Any) -> None:
        """Gives an array to one leaf. Where `leaf` is None, the name is surplus."""
        if leaf is None:
            self.surplus.append(name)
        elif self._selected[leaf]:
            self._put(leaf, name, array)

    def wants(self, name: str) -> bool:
        """Whether a leaf has this name, is to be filled, and was given no array yet."""
        leaf = self.find(name)
        return leaf is not None and self._selected[leaf] and leaf not in self._found

    def has_all(self, leaves: Collection[int]) -> bool:
        """Whether each array that is to be filled is one of these leaves."""
        wanted = map(operator.and_, self._selected, self._are_arrays)
        return set(itertools.compress(itertools.count(), wanted)) <= set(leaves)

    def put_value(self, name: str, value: Any) -> None:
        """Gives a number, a text or another value to the leaf of this name, which `wants` it."""
        leaf = self.find(name)
        assert leaf is not None
        self._put_value(leaf, name, value)

    def _put_value(self, leaf: int, name: str, value: Any) -> None:
        wanted = self._leaves[leaf]
        if leaf in self._configuration:
            self._compare(leaf, value)
            return
        if not (_describes(wanted, value) if is_array(wanted) else type(value) is type(wanted)):
            raise self._misfit(name, _value_text(value), wanted)
        first = self._values.setdefault(leaf, value)
        if repr(first) != repr(value):  # numbers, of one array that is described
            raise self._misfit(name, f"{_value_text(value)}, and elsewhere {first!r}", wanted)

    def put(self, name: str, aliases: Sequence[str], read: Callable[[str], Any]) -> None:
        """Gives an array to every leaf that has one of its names.

        Args:
            read: Reads the array of a name. Called only if a leaf needs it.
        """
        found: dict[int, str] = {}
        for known in (name, *aliases):
            leaf = self.find(known)
            if leaf is not None:
                found.setdefault(leaf, known)
        if not found:
            self.surplus.append(name)
        for leaf, known in found.items():
            if self._selected[leaf]:
                self._put(leaf, known, read(name))

    def _put(self, leaf: int, name: str, array: Any) -> None:
        if leaf in self._found:
            other, first = self._found[leaf]
            if not same_bytes(first, array):
                raise ValueError(
                    f"{self._source}: {other!r} and {name!r} are one object in `like`, but differ\n"
                    f"  {other}: {signature_text(first)}\n  {name}: {signature_text(array)}\n"
                    "  Read it without `like`, and decide which of them counts."
                )
            return
        wanted = self._leaves[leaf]
        if leaf in self._configuration and getattr(array, "shape", None) == ():
            self._compare(leaf, array[()])
            self._found[leaf] = name, wanted
            return
        if self._are_arrays[leaf]:
            fits = have_one_signature(wanted, array)
        else:
            fits = type(_value(array, wanted)) is type(wanted)
        if not fits:
            raise self._misfit(name, signature_text(array), wanted)
        self._found[leaf] = name, array

    def _misfit(self, name: str, found: str, wanted: Any) -> ValueError:
        own = signature_text(wanted) if is_array(wanted) else _value_text(wanted)
        return ValueError(
            f"{self._source}: {name!r} doesn't fit `like`\n"
            f"  {self._source}: {found}\n  like: {own}\n"
            f"  No value is changed to fit: put into `like` what was saved, {self._cure}."
        )

    def check(self, strict: bool, surplus: Sequence[str], hints: dict[str, str]) -> str:
        """What was left out, in words; empty if nothing was.

        Args:
            strict: Whether that is an error.
            surplus: The names without a leaf that count.
            hints: Added to a missing name in the message.

        Raises:
            ValueError: Something is left out, and `strict`; or none of the arrays was found.
        """
        wanted = [
            (i, name)
            for i, name in enumerate(self.leaf_names)
            if self._selected[i] and (self._are_arrays[i] or name in hints)
        ]
        known = self._found.keys() | self._values
        missing = [name + hints.get(name, "") for i, name in wanted if i not in known]
        both = ("missing", missing), ("surplus", surplus)
        parts = "".join(f"\n  {what}: {listed(names, _SHOWN)}" for what, names in both if names)
        if not parts:
            return ""
        fitting = len(wanted) - len(missing)
        nothing_fits = not fitting and bool(wanted or not known)
        if not strict and not nothing_fits:
            return (
                f"strict=False: {self._source} has {fitting} of the {len(wanted)} arrays of "
                f"`like`; {len(missing)} are missing and stay as they are, {len(surplus)} are "
                f"surplus{parts}"
            )
        advice = "takes what fits, and keeps the rest of `like`."
        if nothing_fits:
            advice = "is no help: no array fits. Is one side a level deeper, or another model?"
        raise ValueError(
            f"{self._source} doesn't have the names of `like`{parts}\n  strict=False {advice}"
        )

    def in_order(
        self, contents: list[Any], are_arrays: Sequence[bool]
    ) -> tuple[list[Leaf], set[int]]:
        """`result` and `replaced`, of contents that come in the order of the leaves."""
        whole = are_whole_arrays(self._leaves)
        if all(whole) and all(are_arrays) and _are_alike(self._leaves, contents):
            return contents, set(range(len(contents)))
        for i, name in enumerate(self.leaf_names):
            (self._put if are_arrays[i] else self._put_value)(i, name, contents[i])
        return self.result(), self.replaced()

    def _compare(self, leaf: int, value: Any) -> None:
        """Notes a value of configuration in the source that differs from the leaf."""
        wanted = self._leaves[leaf]
        if is_other(value, wanted):
            path = self._listing.path_text(self._positions[leaf], "tree")
            self.differences.append(Difference(path, value, wanted))

    def differences_text(self) -> str:
        """A warning of other configuration; empty if it is the same."""
        return differences_text(self._source, self.differences)

    def result(self) -> list[Leaf]:
        """The leaves, filled where something was found."""
        filled = list(self._leaves)
        for i, value in self._values.items():
            filled[i] = value
        are_whole = are_whole_arrays(self._leaves)
        for i, (_, array) in self._found.items():
            leaf = self._leaves[i]
            filled[i] = array if are_whole[i] or array is leaf else _value(array, leaf)
        return filled

    def replaced(self) -> set[int]:
        """The array leaves that got a new value."""
        return {i for i in self._found if self._are_arrays[i] and i not in self._configuration}


def _are_alike(wanted: Sequence[Any], arrays: Sequence[Any]) -> bool:
    """Whether all surely agree in type and shape; if not, each must be compared."""
    dtypes, shapes = map(operator.attrgetter, ("dtype", "shape"))
    return all(map(operator.is_, map(dtypes, wanted), map(dtypes, arrays))) and all(
        map(operator.eq, map(shapes, wanted), map(shapes, arrays))
    )


def _value(array: Any, wanted: Any) -> Any:
    """The content of an array without dimensions, as a Python number where `wanted` is one."""
    if not hasattr(type(array), "__array__"):
        return array  # it only describes an array
    is_number = type(wanted) in _NUMBERS and tuple(array.shape) == ()
    return array.item() if is_number and _is_numpy_type(array.dtype) else array[()]


def _is_numpy_type(dtype: Any) -> bool:
    """Whether NumPy knows a type: JAX has others, of random keys."""
    import numpy as np

    return isinstance(dtype, np.dtype)


def _describes(wanted: Any, value: Any) -> bool:
    """Whether `wanted` only describes an array, and this number would fit it."""
    import numpy as np

    if hasattr(type(wanted), "__array__") or tuple(wanted.shape) or type(value) not in _NUMBERS:
        return False
    return _is_numpy_type(wanted.dtype) and type(np.zeros((), wanted.dtype).item()) is type(value)


def _value_text(x: Any) -> str:
    return f"{short_repr(x)}, of {type(x)!r}"
