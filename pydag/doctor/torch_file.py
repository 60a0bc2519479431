# SPDX-License-Identifier: Apache-2.0
"""Reads torch's zip files: which tensors there are, and which storage each of them is a part of."""

import itertools
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydag.arrays.bytes import numpy_dtype
from pydag.files.header import ITEM_SIZES
from pydag.files.source import collector_paused

from .finding import Finding, limited, listed, shown, size_text
from .pickle_names import NameWalk
from .pickle_objects import PickleError, Tensor
from .pickle_values import read_pickle
from .raw import RawFile, expect
from .stored import MOST_BYTES, Container, Stored
from .zip_records import ZipEntry, check_names, place_of

_LARGEST_PICKLE = 64 << 20  # bytes
_MOST_AXES = 64  # that NumPy can have
_MOST_FINDINGS = 100
_MOST_TIMES = 4  # that a byte is written, on the average
_WIDTHS: dict[Any, int] = {**ITEM_SIZES, "C128": 16, None: 1}  # bytes of an element
# Records that say how all others are read: their contents, and what any other means.
_MARKS = (
    ("byteorder", [b"little"], "it was written on a big-endian machine"),
    ("version", [b"%d" % n for n in range(1, 11)], "it has an unknown version of torch's format"),
)
_Records = dict[str, tuple[int, int] | None]  # begin and end; None: it can't be read


def prefix_of(entries: Sequence[ZipEntry]) -> str | None:
    """The folder of torch's records in a zip file, with a slash; None where there is none."""
    is_torch = any(re.fullmatch("[^/]+/data[.]pkl", entry.name.lower()) for entry in entries)
    return entries[0].name.partition("/")[0] + "/" if is_torch else None


def is_cut_short(file: RawFile) -> bool:
    """Whether a file begins as torch's do, which is a zip file only as a whole."""
    start = file.read(0, min(file.size, 400))
    return start.startswith(b"PK\x03\x04") and (b"/data.pkl" in start or b"/.format_ver" in start)


@collector_paused
def read_torch(file: RawFile, entries: Sequence[ZipEntry], prefix: str) -> Container:
    """The content of one of torch's zip files.

    Raises:
        ValueError: It can't be read: it is a program, is from a machine of another kind, or two
            readers might see different tensors in it.
    """
    names = [entry.name for entry in entries]
    check_names(names, prefix.removesuffix("/"))
    if f"{prefix}data.pkl" not in names:  # as readers that don't ignore case look for it
        raise ValueError("its first record isn't in the folder of its data.pkl")
    found = Container("torch", file)
    records: _Records = {}
    expect(entry.header_in(file) for entry in entries)
    for entry in entries:
        name = entry.name.removeprefix(prefix).lower()  # torch ignores case
        if name == "constants.pkl":
            raise ValueError("it is a TorchScript program, which isn't read: it has code")
        place = place_of(file, entry)
        records[name] = None if isinstance(place, str) else (place, place + entry.size)
        if isinstance(place, str):
            found.error((name,), f"the record {shown(name)} {place}")
    places = {name: place for name, place in records.items() if place is not None}
    for name, known, why in _MARKS:
        begin, end = places.get(name, (0, 0))
        if name in places and file.read(begin, min(end - begin, 7)).strip() not in known:
            raise ValueError(why)
    found.check_places(places, file.size, is_dense=False)
    if "data.pkl" in places:
        _read_pickle(found, *places["data.pkl"], records)
    if not found.findings and records.keys().isdisjoint(("version", ".data/version")):
        found.error((), "it has no record of its version, without which torch reads nothing")
    found.findings = list(limited(found.findings, _MOST_FINDINGS))
    return found


def _read_pickle(found: Container, begin: int, end: int, records: _Records) -> None:
    if end - begin > _LARGEST_PICKLE:
        raise ValueError(f"its pickle has more than {_LARGEST_PICKLE} bytes")
    try:
        pickled = read_pickle(found.file.read(begin, end - begin))
        named = NameWalk(pickled)
    except PickleError as error:
        found.error(("data.pkl",), f"data.pkl: {error}")
        return
    found.named = set(named.tensors)
    found.has_values, found.unwritable = named.has_values, named.unwritable
    text = (
        f"the file names {listed(pickled.foreign)}: no tensor, storage or builtin container; "
        "nothing of it is run, and loading it may run anything"
    )
    if named.hidden:
        hidden = f"tensors in {listed(named.hidden)} are neither checked nor written"
        text = f"{text}; {hidden}" if pickled.foreign else hidden
        found.error(pickled.foreign or tuple(named.hidden), text)
    elif pickled.foreign:
        found.findings.append(Finding("error", pickled.foreign, text))
    _add_tensors(found, named.tensors, records)


def _add_tensors(found: Container, tensors: Mapping[str, Tensor], records: _Records) -> None:
    for name, tensor in tensors.items():
        key = f"data/{tensor.storage.key}".lower()
        if key not in records:
            found.error((name,), f"the storage of {shown(name)} isn't in the file")
        elif (record := records[key]) is not None:
            stored = _stored(found.file, name, tensor, *record)
            if isinstance(stored, str):
                found.error((name,), f"{shown(name)} {stored}")
            else:
                found.arrays[name] = stored
    size = sum({array.storage: array.nbytes for array in found.arrays.values()}.values())
    if size > _MOST_TIMES * found.file.size:
        largest = max(found.arrays.values(), key=lambda array: array.nbytes)
        found.unwritable = (
            f"its tensors have {size_text(size)} by their shapes and strides, and the file "
            f"{size_text(found.file.size)}: {shown(largest.name)} is expanded, or overlaps others; "
            "save clones"
        )


def _stored(file: RawFile, name: str, tensor: Tensor, start: int, stop: int) -> Stored | str:
    shape, strides, storage, room = tensor.shape, tensor.strides, tensor.storage, stop - start
    if storage.size != room // _WIDTHS[storage.dtype]:
        return f"is in a storage of {storage.size} elements, which has {room} bytes"
    itemsize = _WIDTHS[tensor.dtype]
    if len(shape) > _MOST_AXES:
        return f"has {len(shape)} axes, and arrays have at most {_MOST_AXES}"
    count = math.prod(shape)
    if count * itemsize > MOST_BYTES:
        return "has more elements than there can be"
    begin = end = 0
    if count:
        last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        begin = tensor.offset * itemsize
        end = begin + (last + 1) * itemsize
    if end > room:
        return f"needs bytes {begin} to {end} of a storage that has {room}"
    sizes = itertools.accumulate(reversed(shape), operator.mul, initial=1)
    rows = zip(reversed(shape), reversed(strides), sizes, strict=False)  # `sizes` has one more
    is_plain = not count or (not tensor.reading and all(n == 1 or s == size for n, s, size in rows))
    strides = tuple(0 if n == 1 else step for n, step in zip(shape, strides, strict=True))
    view = TensorView(
        start, room, begin, end, itemsize, shape, strides, tensor.dtype, tensor.reading
    )
    owner = (file.path, view) if count else (file.path, view, name)
    place = start + begin, count * itemsize
    return Stored(name, tensor.dtype, shape, file, *place, itemsize, is_plain, owner)


class TensorView(NamedTuple):
    """Which part of a storage a tensor is."""

    place: int  # of the storage in the file
    size: int  # of the storage
    begin: int  # within it
    end: int
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements; 0 for an axis of one element
    dtype: str
    reading: tuple[str, ...]  # as of a `Tensor`


_PIECE = 1 << 20


def contents(array: Stored) -> Iterator[bytes]:
    """The bytes of the elements, in order."""
    if array.is_plain:
        for begin in range(0, array.nbytes, _PIECE):
            yield array.read(begin, min(_PIECE, array.nbytes - begin))
        return
    # They don't lie in order. Each piece is from everywhere: the file is mapped.
    import numpy as np

    assert isinstance(array.storage, tuple)  # only tensors of torch have strides
    view: TensorView = array.storage[1]
    dtype = numpy_dtype(array.dtype) if view.reading else np.dtype(f"V{view.itemsize}")
    size = view.end - view.begin
    flat = array.file.mapped(array.begin, size).view(dtype)
    strides = [step * view.itemsize for step in view.strides]
    strided = np.lib.stride_tricks.as_strided(flat, view.shape, strides, writeable=False)
    flags: Any = ["external_loop", "buffered", "zerosize_ok"]
    parts: Any = np.nditer(strided, flags, order="C", buffersize=_PIECE)
    for part in parts:
        for reading in view.reading:
            part = np.conj(part) if reading == "conj" else np.negative(part)
        yield part.tobytes()
