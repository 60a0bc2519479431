# SPDX-License-Identifier: Apache-2.0
"""Reads torch's zip files: which tensors there are, and which storage each of them is a part of."""

import struct
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

from pydag.files.header import LARGEST

from .finding import Finding, listed, shown
from .pickle_names import named_tensors
from .pickle_values import NoValues, PickleError, Sparse, Tensor, read_pickle
from .ranges import Range, check_ranges
from .raw import RawFile
from .stored import Container, Stored, bits_of

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_MOST_RECORDS = 1_000_000


class _Record(NamedTuple):
    begin: int
    size: int


def zip_of(file: RawFile) -> zipfile.ZipFile | None:
    """The file as a zip file; None where it is none."""
    try:
        return zipfile.ZipFile(file.stream)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError):
        return None


def prefix_of(archive: zipfile.ZipFile) -> str | None:
    """The folder of torch's records in a zip file; None where there is none."""
    for name in archive.namelist():
        folder, _, last = name.rpartition("/")
        if last == "data.pkl" and "/" not in folder:
            return name.removesuffix("data.pkl")
    return None


def is_cut_short(file: RawFile) -> bool:
    """Whether a file begins as torch's do, which is a zip file only as a whole."""
    start = file.read(0, min(file.size, 400))
    return start.startswith(b"PK\x03\x04") and (b"/data.pkl" in start or b"/.format_ver" in start)


def read_torch(file: RawFile, archive: zipfile.ZipFile, prefix: str) -> Container:
    """What one of torch's zip files holds.

    Raises:
        ValueError: It can't be read: it is a program, or from a machine of another kind.
    """
    found = Container("torch", file)
    infos = {
        info.filename.removeprefix(prefix): info
        for info in archive.infolist()
        if info.filename.startswith(prefix)
    }
    if "constants.pkl" in infos:
        raise ValueError("it is a TorchScript program, which isn't read: it has code")
    if len(infos) > _MOST_RECORDS:
        raise ValueError(f"it has more than {_MOST_RECORDS} records")
    records: dict[str, _Record] = {}
    for name, info in infos.items():
        problem = _problem(file, info)
        if isinstance(problem, str):
            found.error((name,), f"the record {shown(name)} {problem}")
        else:
            records[name] = problem
    order = records.get("byteorder")
    if order is not None and file.read(order.begin, min(order.size, 6)) == b"big":
        raise ValueError("it was written on a big-endian machine")
    if "data.pkl" not in records:
        return found
    if records["data.pkl"].size > LARGEST:
        raise ValueError(f"its pickle has more than {LARGEST} bytes")
    places = [Range(name, place.begin, place.begin + place.size) for name, place in records.items()]
    found.findings.extend(check_ranges(places, file.size, is_dense=False))
    try:
        pickled = read_pickle(file.read(*records["data.pkl"]))
        tensors, others = named_tensors(pickled.root)
    except PickleError as error:
        found.error(("data.pkl",), f"data.pkl: {error}")
        return found
    found.named = set(tensors)
    found.has_values = bool(others - {Sparse, NoValues})
    if Sparse in others or any("quantized" in tensor.reading for tensor in tensors.values()):
        found.unwritable = "it has tensors that are sparse or quantized"
    if pickled.foreign:
        text = (
            f"the file names {listed(pickled.foreign)}: no tensor, storage or builtin container; "
            "nothing of it is run, and loading it may run anything"
        )
        found.findings.append(Finding("error", pickled.foreign, text))
    _add_tensors(found, tensors, records)
    return found


def _problem(file: RawFile, info: zipfile.ZipInfo) -> _Record | str:
    if info.flag_bits & 1:
        return "is encrypted"
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        return "is compressed, which torch's never are"
    if info.header_offset < 0 or info.header_offset + _LOCAL_HEADER.size > file.size:
        return "is outside of the file"
    magic, name, extra = _LOCAL_HEADER.unpack(file.read(info.header_offset, _LOCAL_HEADER.size))
    begin = info.header_offset + _LOCAL_HEADER.size + name + extra
    if magic != b"PK\x03\x04" or begin + info.file_size > file.size:
        return "is outside of the file"
    return _Record(begin, info.file_size)


def _add_tensors(found: Container, tensors: dict[str, Tensor], records: dict[str, _Record]) -> None:
    for name, tensor in tensors.items():
        record = records.get(f"data/{tensor.storage.key}")
        itemsize = (bits_of(tensor.dtype) or 8) // 8
        if record is None:
            if f"data/{tensor.storage.key}" not in _told(found):
                found.error((name,), f"the storage of {shown(name)} isn't in the file")
            continue
        stored = _stored(found.file, name, tensor, record, itemsize)
        if isinstance(stored, str):
            found.error((name,), f"{shown(name)} {stored}")
        else:
            found.arrays[name] = stored


def _told(found: Container) -> Iterator[str]:
    """The records that an error was noted for."""
    return (name for finding in found.findings for name in finding.names)


def _stored(
    file: RawFile, name: str, tensor: Tensor, record: _Record, itemsize: int
) -> Stored | str:
    shape, strides = tensor.shape, tensor.strides
    is_empty = 0 in shape
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    begin = tensor.offset * itemsize
    end = begin if is_empty else begin + (last + 1) * itemsize
    if end > record.size:
        return f"needs bytes {begin} to {end} of a storage that has {record.size}"
    count = 0 if is_empty else 1
    is_plain, expected = True, 1
    for n, step in zip(reversed(shape), reversed(strides), strict=True):
        is_plain &= n == 1 or step == expected
        expected *= n
    for n in shape:
        count *= n
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
