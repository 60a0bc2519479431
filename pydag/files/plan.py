# SPDX-License-Identifier: Apache-2.0
"""The content of a file for a DAG, arrays by name, other names, the structure; and its writing."""

import errno
import functools
import itertools
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from pydag._core import PyDagSpec
from pydag.arrays.bytes import DTYPES, storable, stored_as_they_are, to_numpy
from pydag.arrays.kinds import (
    dtype_name,
    is_array_class,
    is_class_of,
    is_scalar_class,
    signature_text,
)
from pydag.registry.names import ClassNames
from pydag.structure.json import compact, compact_list, to_json
from pydag.structure.listing import Listing, shorten
from pydag.structure.reshared import one_each
from pydag.structure.values import UnwritableError, encode_leaf
from pydag.typing import Identity, Leaf

from .header import ITEM_SIZES, KINDS, LARGEST
from .names import leaf_names, other_ways

_BUFFER = 1 << 16  # bytes: small arrays are written together
_quoted = json.JSONEncoder(ensure_ascii=False).encode  # a text

# An array that is to be written: its type as the format calls it, its shape, how many bytes it has,
# and these, in order, in pieces that are made when they are written.
ArrayToWrite = tuple[str, tuple[int, ...], int, Iterable[Any]]
# The order of types in a file: those with the longest numbers first, so that each array begins at a
# multiple of its number's size. The safetensors package orders them like this, too.
_RANKS = {
    short: rank
    for rank, short in enumerate(sorted(ITEM_SIZES, key=lambda short: (-ITEM_SIZES[short], short)))
}


def _header(contents: Mapping[str, ArrayToWrite], metadata: Mapping[str, str]) -> tuple[bytes, int]:
    """The header of a file, and how many bytes come after it."""
    texts = [f"{_quoted(name)}:{_quoted(value)}" for name, value in metadata.items()]
    entries = [f'"__metadata__":{{{",".join(texts)}}}'] if texts else []
    known: dict[Any, str] = {}  # most arrays are like one before
    end = 0
    for name, (dtype, shape, nbytes, _) in contents.items():
        like = known.get((dtype, shape))
        if like is None:
            sizes = ",".join(map(str, shape))
            like = f':{{"dtype":"{dtype}","shape":[{sizes}],"data_offsets":['
            known[dtype, shape] = like
        begin, end = end, end + nbytes
        entries.append(f"{_quoted(name)}{like}{begin},{end}]}}")
    text = f"{{{','.join(entries)}}}".encode()
    return text + b" " * (-len(text) % 8), end


def write_contents(
    to: int | str, contents: Mapping[str, ArrayToWrite], metadata: Mapping[str, str], bar: Any
) -> None:
    """Writes arrays to a file in this order, and waits until it is on the disk.

    A bar counts the bytes that were written.

    Args:
        to: The path of the file, or the empty file itself: a handle, which stays open.

    Raises:
        ValueError: The header would be too large.
        OSError: It can't be written, or isn't whole.
    """
    text, nbytes = _header(contents, metadata)
    if len(text) > LARGEST:
        raise ValueError(
            f"the names and the structure need {len(text)} bytes; the header of a safetensors file "
            f"has room for {LARGEST}"
        )
    with open(to, "wb", _BUFFER, closefd=not isinstance(to, int)) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        _write(file, contents.values(), bar)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    if size != 8 + len(text) + nbytes:  # an array was resized meanwhile
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def _write(file: IO[bytes], contents: Iterable[ArrayToWrite], bar: Any) -> None:
    for _, _, _, pieces in contents:
        for piece in pieces:
            written = file.write(piece)
            del piece  # before the next array is copied
            if bar is not None:
                bar.update(written)


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
        classes = set(map(type, self.leaves))
        check_no_modules(classes, self.leaves, self._listing)
        namer, names = leaf_names(self._listing)
        if overlap is not None:
            raise _overlap_error([(names[i], self.leaves[i]) for i in overlap])
        # Of each leaf: 0 for a value, 1 for an array, 2 for one of NumPy's numbers.
        ranks = {cls: is_array_class(cls) and 1 + is_scalar_class(cls) for cls in classes}
        are_arrays = list(map(ranks.__getitem__, map(type, self.leaves)))
        arrays = list(itertools.compress(range(len(self.leaves)), are_arrays))
        self.numbers = {names[i]: i for i in arrays}  # of the leaf that each array is
        self.structure = None  # as JSON
        if structure:
            described: list[Any] = names
            if any(rank != 1 for rank in ranks.values()):
                described = self._described(names, are_arrays, ClassNames(spec.namespace))
            parts = f'"structure":{to_json(spec)},"leaves":{compact_list(described)}'
            if kinds:
                new = {i: number for number, i in enumerate(kept)}
                parts += f',"{KINDS}":{compact({names[new[i]]: k for i, k in kinds.items()})}'
            self.structure = f'{{"pydag":1,{parts}}}'
        ways = other_ways(self._listing, arrays)
        self.aliases = {namer.name(way): names[leaf] for leaf, way in ways}
        if not structure and (other := self.aliases.get("format")) is not None:
            # Readers take this alias for the name of a program: it becomes the array's own name.
            self.numbers = {"format" if k == other else k: i for k, i in self.numbers.items()}
            self.aliases = {k: "format" if v == other else v for k, v in self.aliases.items()}
            self.aliases[other] = self.aliases.pop("format")

    def _described(
        self, names: Sequence[str], are_arrays: Sequence[int], classes: ClassNames
    ) -> list[Any]:
        """The description of each leaf."""
        described: list[Any] = list(names)
        for i, rank in enumerate(are_arrays):
            try:
                if rank == 2:
                    described[i] = {"scalar": names[i]}
                elif not rank:
                    described[i] = {"value": encode_leaf(self.leaves[i], classes)}
            except UnwritableError as error:
                raise TypeError(self._refusal(i, error)) from None
        return described

    @functools.cached_property
    def sizes(self) -> Mapping[str, int]:
        """The bytes of each array; 0 of one that can't be written."""
        return {name: int(getattr(self.leaves[i], "nbytes", 0)) for name, i in self.numbers.items()}

    def _contents(self, names: Iterable[str]) -> dict[str, ArrayToWrite]:
        """Arrays as they are written, copied to the host when their turn comes."""
        found: dict[str, ArrayToWrite] = {}
        leaves: Sequence[Any] = self.leaves
        plain, dtypes = stored_as_they_are()
        for name in names:
            array = leaves[self.numbers[name]]
            dtype = dtypes.get(array.dtype) if type(array) is plain else None
            if dtype is not None and array.flags.c_contiguous:  # mostly, and nothing to copy
                found[name] = dtype, array.shape, array.nbytes, (array,)
            else:
                found[name] = self._content(self.numbers[name])
        return found

    def _content(self, i: int) -> ArrayToWrite:
        try:
            dtype, shape = storable(self.leaves[i])
        except Exception as error:  # a class's own attributes may raise anything
            raise TypeError(self._refusal(i, error)) from error
        size = math.prod(shape) * ITEM_SIZES[dtype]
        return dtype, shape, size, map(self._bytes, [i], [dtype], [shape])

    def _bytes(self, i: int, dtype: str, shape: tuple[int, ...]) -> Any:
        """The bytes of an array."""
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
        return plain.data

    def write(
        self,
        to: int | str,
        names: Iterable[str],
        metadata: Mapping[str, str],
        path: str | os.PathLike[str],
        bar: Any,
    ) -> None:
        """Writes some arrays to a new file, which will be at `path`, as messages call it."""
        arrays = self._contents(names)
        order = sorted(sorted(arrays), key=lambda name: _RANKS[arrays[name][0]])
        try:
            write_contents(to, {name: arrays[name] for name in order}, metadata, bar)
        except OSError as error:
            if error.errno is None:
                raise
            raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error

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


def check_no_modules(classes: Iterable[type], leaves: Sequence[Leaf], listing: Listing) -> None:
    """Raises TypeError where a leaf is a module of torch: a file has its state dict."""
    modules = {cls for cls in classes if is_class_of(cls, "torch.nn", "Module")}
    for i, leaf in enumerate(leaves if modules else ()):
        if type(leaf) in modules:  # pragma: no cover: PyTorch, as by `make test-torch`
            where = shorten(listing.path_text(listing.leaves[i], "tree"))
            raise TypeError(
                f"{where} is a torch.nn.Module ({type(leaf).__qualname__})\n"
                "  Save its state dict: save(path, module.state_dict())."
            )
