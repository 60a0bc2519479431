# SPDX-License-Identifier: Apache-2.0
"""Reads torch's zip files: which tensors there are, and which storage each of them is a part of."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pydag.files.collector import collector_paused
from pydag.files.header import bits_of

from .finding import Damage, Finding, limited, listed, shown, size_text
from .pickle_code import PickleError
from .pickle_names import Walk
from .pickle_objects import Tensor
from .pickle_values import read_pickle
from .raw import RawFile
from .stored import MOST_BYTES, Container, Stored
from .zip_records import Entry, check_names, place_of

_LARGEST_PICKLE = 64 << 20  # bytes
_MOST_AXES = 64  # that NumPy can have
_MOST_FINDINGS = 100
_MOST_TIMES = 4  # that a byte is written, on the average


class _Record(NamedTuple):
    begin: int
    size: int


def prefix_of(entries: Sequence[Entry]) -> str | None:
    """The folder of torch's records in a zip file, with a slash; None where there is none."""
    for entry in entries:
        folder, _, last = entry.name.rpartition("/")
        if last.lower() == "data.pkl" and folder and "/" not in folder:
            return entries[0].name.partition("/")[0] + "/"
    return None


def is_cut_short(file: RawFile) -> bool:
    """Whether a file begins as torch's do, which is a zip file only as a whole."""
    start = file.read(0, min(file.size, 400))
    return start.startswith(b"PK\x03\x04") and (b"/data.pkl" in start or b"/.format_ver" in start)


@collector_paused()
def read_torch(file: RawFile, entries: Sequence[Entry], prefix: str) -> Container:
    """The content of one of torch's zip files.

    Raises:
        ValueError: It can't be read: it is a program, is from a machine of another kind, or two
            readers might see different tensors in it.
    """
    check_names((entry.name for entry in entries), prefix.removesuffix("/"))
    found = Container("torch", file)
    records: dict[str, _Record] = {}
    bad: set[str] = set()
    for entry in entries:
        name = entry.name.removeprefix(prefix)
        if name == "constants.pkl":
            raise ValueError("it is a TorchScript program, which isn't read: it has code")
        place = place_of(file, entry)
        if isinstance(place, str):
            bad.add(name)
            found.error((name,), f"the record {shown(name)} {place}")
        else:
            records[name] = _Record(place, entry.size)
    order = records.get("byteorder")
    if order is not None and file.read(order.begin, min(order.size, 7)) != b"little":
        raise ValueError("it was written on a big-endian machine")
    places = {name: (begin, begin + size) for name, (begin, size) in records.items()}
    found.check_places(places, file.size, is_dense=False)
    if "data.pkl" in records:
        _read_pickle(found, records, bad)
    elif "data.pkl" not in bad:
        raise ValueError("its first record isn't in the folder of its data.pkl")
    found.findings = list(limited(found.findings, _MOST_FINDINGS))
    return found


def _read_pickle(found: Container, records: Mapping[str, _Record], bad: AbstractSet[str]) -> None:
    if records["data.pkl"].size > _LARGEST_PICKLE:
        raise ValueError(f"its pickle has more than {_LARGEST_PICKLE} bytes")
    try:
        pickled = read_pickle(found.file.read(*records["data.pkl"]))
        named = Walk(pickled)
    except PickleError as error:
        found.error(("data.pkl",), f"data.pkl: {error}")
        return
    found.named = set(named.tensors)
    found.has_values, found.unwritable = named.has_values, named.unwritable
    texts = []
    if pickled.foreign:
        texts.append(
            f"the file names {listed(pickled.foreign)}: no tensor, storage or builtin container; "
            "nothing of it is run, and loading it may run anything"
        )
    if named.hidden:
        texts.append(f"tensors in {listed(named.hidden)} are neither checked nor written")
    if texts:
        kind = Damage if named.hidden else Finding
        names = pickled.foreign or tuple(named.hidden)
        found.findings.append(kind("error", names, "; ".join(texts)))
    _add_tensors(found, named.tensors, records, bad)


def _add_tensors(
    found: Container,
    tensors: Mapping[str, Tensor],
    records: Mapping[str, _Record],
    bad: AbstractSet[str],
) -> None:
    for name, tensor in tensors.items():
        key = f"data/{tensor.storage.key}"
        if (record := records.get(key)) is None:
            if key not in bad:
                found.error((name,), f"the storage of {shown(name)} isn't in the file")
        elif isinstance(stored := _stored(found.file, name, tensor, record), str):
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


def _stored(file: RawFile, name: str, tensor: Tensor, record: _Record) -> Stored | str:
    shape, strides = tensor.shape, tensor.strides
    itemsize = (bits_of(tensor.dtype) or 8) // 8
    if len(shape) > _MOST_AXES:
        return f"has {len(shape)} axes, and arrays have at most {_MOST_AXES}"
    count = math.prod(shape)
    if count * itemsize > MOST_BYTES:
        return "has more elements than there can be"
    is_empty = 0 in shape
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    begin = tensor.offset * itemsize
    end = begin if is_empty else begin + (last + 1) * itemsize
    if end > record.size:
        return f"needs bytes {begin} to {end} of a storage that has {record.size}"
    is_plain, expected = True, 1
    for n, step in zip(reversed(shape), reversed(strides), strict=True):
        is_plain &= n == 1 or step == expected
        expected *= n
    strides = tuple(0 if n == 1 else step for n, step in zip(shape, strides, strict=True))
    view = View(
        *(record.begin, record.size, begin, end, itemsize, shape, strides, tensor.dtype),
        tensor.reading,
    )
    return Stored(
        name,
        tensor.dtype,
        shape,
        file,
        record.begin + begin,
        count * itemsize,
        itemsize,
        (is_plain and not tensor.reading) or is_empty,
        (file.path, view) if count else (file.path, view, name),
    )


class View(NamedTuple):
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
