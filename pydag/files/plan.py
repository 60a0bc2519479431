# SPDX-License-Identifier: Apache-2.0
"""The content of a file for a DAG, arrays by name, other names, the structure; and its writing."""

import functools
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, NamedTuple

from pydag._core import PyDagSpec
from pydag.arrays.bytes import DTYPES, storable, to_numpy
from pydag.arrays.kinds import (
    dtype_name,
    is_array_class,
    is_class_of,
    is_scalar_class,
    of_class,
    signature_text,
)
from pydag.registry.names import ClassNames
from pydag.structure.json import document_of
from pydag.structure.listing import Listing, shorten
from pydag.structure.reshared import one_each
from pydag.structure.values import UnwritableError, encode_leaf
from pydag.typing import Identity, Leaf

from .header import ITEM_SIZES, KINDS, LARGEST, package
from .names import leaf_names, other_ways


def check_size(metadata: Mapping[str, str], names: Iterable[str]) -> None:
    """Raises ValueError where a header would be too large."""
    size = sum(len(name) + 120 for name in names)
    most = 12 * sum(map(len, itertools.chain(*metadata.items())))  # a character may need as many
    if size + most > LARGEST:
        size += len(json.dumps(metadata))
    if size > LARGEST:
        raise ValueError(
            f"the names and the structure need some {size} bytes; the header of a safetensors "
            f"file has room for {LARGEST}"
        )


class ArrayToWrite(NamedTuple):
    """An array that is to be written."""

    dtype: str  # as the format calls it
    shape: tuple[int, ...]
    nbytes: int
    pieces: Callable[[], Iterable[Any]]  # makes its bytes, in order, when it is written


def write_contents(
    path: str, contents: Mapping[str, ArrayToWrite], metadata: Mapping[str, str], bar: Any
) -> None:
    """Writes arrays to a file in this order, and waits until it is on the disk.

    A bar counts the bytes that were written.

    Raises:
        ValueError: The header would be too large.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, (dtype, shape, nbytes, _) in contents.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": (end, end + nbytes)}
        end += nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST:
        raise ValueError(f"the header needs {len(text)} bytes, and may have {LARGEST}")
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for content in contents.values():
            _write(file, content, bar)
        file.flush()
        os.fsync(file.fileno())


def _write(file: IO[bytes], content: ArrayToWrite, bar: Any) -> None:
    # A function, so that the last piece is freed before the next array is copied.
    for piece in content.pieces():
        file.write(piece)
        if bar is not None:
            bar.update(len(piece))


def write_file(
    temporary: str,
    arrays: Mapping[str, ArrayToWrite],
    metadata: Mapping[str, str],
    path: str | os.PathLike[str],
    bar: Any,
) -> None:
    """Writes a file of arrays that NumPy has, and reads its header back.

    The arrays lie as the safetensors package would put them: those with the longest numbers first,
    so that each begins at a multiple of its number's size. Messages name the final `path`.
    """
    safetensors = package()

    def place(item: tuple[str, ArrayToWrite]) -> tuple[int, str, str]:
        return -ITEM_SIZES[item[1].dtype], item[1].dtype, item[0]

    try:
        write_contents(temporary, dict(sorted(arrays.items(), key=place)), metadata, bar)
        with safetensors.safe_open(temporary, framework="np"):
            pass  # reading it back proves that it is whole
    except safetensors.SafetensorError as error:
        raise ValueError(f"{os.fspath(path)!r} can't be written: {error}") from error
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error


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

    def _content(self, name: str) -> ArrayToWrite:
        """An array as it is written, copied to the host when its turn comes."""
        i = self.numbers[name]
        try:
            dtype, shape = storable(self.leaves[i])
        except Exception as error:  # a class's own attributes may raise anything
            raise TypeError(self._refusal(i, error)) from error
        size = math.prod(shape) * ITEM_SIZES[dtype]
        return ArrayToWrite(dtype, shape, size, functools.partial(self._bytes, i, dtype, shape))

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
        """Writes some arrays to the file `temporary`, which will be at `path`."""
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


def check_no_modules(leaves: Sequence[Leaf], listing: Listing) -> None:
    """Raises TypeError where a leaf is a module of torch: a file has its state dict."""
    modules = {cls for cls in set(map(type, leaves)) if is_class_of(cls, "torch.nn", "Module")}
    for i, leaf in enumerate(leaves if modules else ()):
        if type(leaf) in modules:  # pragma: no cover: PyTorch, as by `make test-torch`
            where = shorten(listing.path_text(listing.leaves[i], "tree"))
            raise TypeError(
                f"{where} is a torch.nn.Module ({type(leaf).__qualname__})\n"
                "  Save its state dict: save(path, module.state_dict())."
            )
