# SPDX-License-Identifier: Apache-2.0
"""The content of a file for a DAG: arrays by name, other names, the structure."""

import functools
import itertools
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydag._core import PyDagSpec
from pydag.registry.names import ClassNames
from pydag.structure.json import document_of
from pydag.structure.listing import Listing, shorten
from pydag.structure.values import UnwritableError, encode_leaf
from pydag.typing import Identity, Leaf

from .arrays import (
    DTYPES,
    dtype_name,
    is_array_class,
    is_scalar_class,
    of_class,
    signature_text,
    storable,
    to_numpy,
)
from .header import ITEM_SIZES
from .memory import one_each
from .names import leaf_names, other_ways
from .one_file import Content, check_size, write_file
from .package import KINDS
from .tensors import check_no_modules


class Plan:
    """The content of a file that will be written.

    Args:
        identity: "nodes": leaves that are one memory are written for each of their places.
        structure: Whether the structure is written, and the leaves that are no arrays.
        kinds: What kind of leaf an array stands for, by the number of the leaf.

    Raises:
        TypeError: A leaf, or the structure, can't be written.
        ValueError: Two arrays overlap; two registered classes have one name.
    """

    def __init__(
        self,
        leaves: Sequence[Leaf],
        spec: PyDagSpec,
        identity: Identity,
        structure: bool,
        kinds: Mapping[int, str],
    ) -> None:
        self.leaves, overlap = list(leaves), None
        kept: Sequence[int] = range(len(leaves))
        if identity == "all":
            self.leaves, spec, kept, overlap = one_each(leaves, spec)
        self._listing = Listing.of(spec)
        check_no_modules(self.leaves, self._listing)
        namer, names = leaf_names(self._listing)
        if overlap is not None:
            raise _overlap_error([(names[i], self.leaves[i]) for i in overlap])
        are_arrays = of_class(self.leaves, is_array_class)
        arrays = list(itertools.compress(range(len(self.leaves)), are_arrays))
        self.numbers = {names[i]: i for i in arrays}  # of the leaf that each array is
        self.structure = None  # as JSON
        if structure:
            described = self._described(names, are_arrays, ClassNames(spec.namespace))
            whole = {"pydag": 1, "structure": document_of(spec), "leaves": described}
            if kinds:
                new = {i: number for number, i in enumerate(kept)}
                whole[KINDS] = {names[new[i]]: kind for i, kind in kinds.items()}
            self.structure = json.dumps(whole, separators=(",", ":"), allow_nan=False)
        ways = other_ways(self._listing, arrays)
        self.aliases = {namer.name(way): names[leaf] for leaf, way in ways}
        if not structure and (other := self.aliases.get("format")) is not None:
            # Readers take this alias for the name of a program: it becomes the array's own name.
            self.numbers = {"format" if k == other else k: i for k, i in self.numbers.items()}
            self.aliases = {k: "format" if v == other else v for k, v in self.aliases.items()}
            self.aliases[other] = self.aliases.pop("format")

    def _described(
        self, names: Sequence[str], are_arrays: Sequence[bool], classes: ClassNames
    ) -> list[Any]:
        """The description of each leaf."""
        described: list[Any] = []
        are_scalars = of_class(self.leaves, is_scalar_class)
        for i, (leaf, name) in enumerate(zip(self.leaves, names, strict=True)):
            if are_arrays[i]:
                described.append({"scalar": name} if are_scalars[i] else name)
                continue
            try:
                described.append({"value": encode_leaf(leaf, classes)})
            except UnwritableError as error:
                raise TypeError(self._refusal(i, error)) from None
        return described

    @functools.cached_property
    def sizes(self) -> Mapping[str, int]:
        """The bytes of each array; 0 of one that can't be written."""
        return {name: int(getattr(self.leaves[i], "nbytes", 0)) for name, i in self.numbers.items()}

    def _content(self, name: str) -> Content:
        """An array as it is written, copied to the host when its turn comes."""
        i = self.numbers[name]
        try:
            dtype, shape = storable(self.leaves[i])
        except Exception as error:  # a class's own attributes may raise anything
            raise TypeError(self._refusal(i, error)) from error
        size = math.prod(shape) * ITEM_SIZES[dtype]
        return Content(dtype, shape, size, functools.partial(self._bytes, i, dtype, shape))

    def _bytes(self, i: int, dtype: str, shape: tuple[int, ...]) -> tuple[Any]:
        """The bytes of an array, in one piece."""
        try:
            array = to_numpy(self.leaves[i])
        except Exception as error:  # `__array__` may raise anything
            raise TypeError(self._refusal(i, error)) from error
        if array.shape != shape or DTYPES.get(dtype_name(array.dtype)) != dtype:
            wrong = TypeError(f"its numbers are {signature_text(array)}")
            raise TypeError(self._refusal(i, wrong))
        plain = array.reshape(-1).view("u1")  # Python's buffers don't know each type
        if dtype == "BOOL" and plain.size and plain.max() > 1:
            plain = (plain != 0).view("u1")  # as NumPy and torch take any byte
        return (plain.data,)

    def write(
        self,
        temporary: str,
        names: Iterable[str],
        metadata: Mapping[str, str],
        path: str | os.PathLike[str],
        bar: Any,
    ) -> None:
        """Writes some arrays to one file: see `shards.Writable`."""
        arrays = {name: self._content(name) for name in names}
        check_size(metadata, arrays)
        write_file(temporary, arrays, metadata, path, bar)

    def _refusal(self, leaf: int, error: Exception) -> str:
        where = shorten(self._listing.path_text(self._listing.leaves[leaf], "tree"))
        return (
            f"a leaf can't be written to a safetensors file\n  at {where}: {error}\n"
            "  Leaves may be arrays and values: numbers, text, bytes, None. Register the class of "
            "what holds arrays (pydag.register_fields). save(..., structure=False) writes arrays "
            "alone, for load(..., like=)."
        )


def _overlap_error(arrays: Sequence[tuple[str, Any]]) -> ValueError:
    return ValueError(
        "two arrays share a part of their memory, and aren't one array: no file can keep that\n"
        + "".join(f"  {shorten(name)!r}: {signature_text(array)}\n" for name, array in arrays)
        + "  Save a copy of one of them: array.copy(), tensor.clone()."
    )
