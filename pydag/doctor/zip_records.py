# SPDX-License-Identifier: Apache-2.0
"""The records of a zip file, where every reader must find the same ones.

Readers of zip files differ: in where they begin to read, in which of two records of one name they
take, in whether they ignore case. So a file is refused if two readers may see different content.
PyTorch recognizes a zip file by its first bytes, finds its records by the table at the end, ignores
case, and looks in the folder of the first record.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .finding import shown
from .raw import RawFile

_LOCAL, _ENTRY, _END, _WIDE_END, _LOCATOR = (
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"PK\x05\x06",
    b"PK\x06\x06",
    b"PK\x06\x07",
)
_LOCAL_HEADER = struct.Struct("<4s2xH18xHH")  # mark, flags, lengths of the name and the extra part
_ENTRY_HEADER = struct.Struct("<4s4xHH8xIIHHH8xI")
_END_HEADER = struct.Struct("<4sHHHHIIH")
_WIDE_END_HEADER = struct.Struct("<4sQ4xIIQQQQ")
_LOCATOR_HEADER = struct.Struct("<4sIQI")
_SMALL, _LARGE = 0xFFFF, 0xFFFFFFFF  # said where the number is in the wide part
_MOST_RECORDS = 300_000
_LARGEST_TABLE = 64 << 20  # bytes


class Entry(NamedTuple):
    """A record, as the table says."""

    name: str
    offset: int  # of its own header
    size: int  # in bytes
    problem: str | None  # why it can't be read


def is_zip(file: RawFile) -> bool:
    """Whether a file ends as zip files do."""
    return _end_of(file) is not None


def entries(file: RawFile) -> list[Entry]:
    """The records of a zip file.

    Raises:
        ValueError: Readers of zip files might find others.
    """
    if file.read(0, 4) != _LOCAL:
        raise ValueError(
            "it is a zip file with something before it, which torch reads instead: as a pickle"
        )
    begin, size, count = _table_of(file)
    if count > _MOST_RECORDS or size > _LARGEST_TABLE:
        raise ValueError(f"it has more than {_MOST_RECORDS} records")
    return list(_rows(file.read(begin, size), count))


def check_names(names: Iterable[str], folder: str) -> None:
    """Checks that each record has one name, in one folder.

    Raises:
        ValueError: Readers of zip files might take one record for another.
    """
    known: dict[str, str] = {}
    for name in names:
        parts = name.removesuffix("/").split("/")
        if parts[0] != folder or (len(parts) == 1 and not name.endswith("/")):
            raise ValueError(f"the record {shown(name)} isn't in the folder {shown(folder)}")
        if "\\" in name or "\0" in name or not {"", ".", ".."}.isdisjoint(parts):
            raise ValueError(f"the record {shown(name)} has a name that readers read differently")
        other = known.setdefault(name.lower(), name)
        if other is not name:
            both = f"{shown(other)} and {shown(name)}"
            raise ValueError(f"{both} are two records of one name: torch ignores case")


def _end_of(file: RawFile) -> int | None:
    """Where the end record begins."""
    size = min(file.size, _END_HEADER.size + _SMALL)
    if size < _END_HEADER.size:
        return None
    tail = file.read(file.size - size, size)
    at = tail.rfind(_END, 0, size - _END_HEADER.size + 4)
    return None if at < 0 else file.size - size + at


def _table_of(file: RawFile) -> tuple[int, int, int]:
    """Where the table of records begins, its bytes, and the number of records."""
    end = _end_of(file)
    if end is None or end != file.size - _END_HEADER.size:
        raise ValueError("it has something behind its end")
    _, *disks, count, size, begin, comment = _END_HEADER.unpack(file.read(end, _END_HEADER.size))
    if (wide := end - _LOCATOR_HEADER.size) >= 0:
        mark, _, at, _ = _LOCATOR_HEADER.unpack(file.read(wide, _LOCATOR_HEADER.size))
        if mark == _LOCATOR:
            end = wide - _WIDE_END_HEADER.size
            if at != end:
                raise ValueError("its end isn't where it is said to be")
            narrow = zip((count, size, begin), (_SMALL, _LARGE, _LARGE), strict=True)
            mark, *_, count, size, begin = _WIDE_END_HEADER.unpack(
                file.read(end, _WIDE_END_HEADER.size)
            )
            pairs = zip(narrow, (count, size, begin), strict=True)
            if mark != _WIDE_END or any(old not in (most, new) for (old, most), new in pairs):
                raise ValueError("its two ends differ")
    if begin + size != end or comment or any(disks[:2]):
        raise ValueError("its table of records isn't where it is said to be")
    return begin, size, count


def _rows(table: bytes, count: int) -> Iterator[Entry]:
    at = 0
    for _ in range(count):
        if len(table) - at < _ENTRY_HEADER.size:
            raise ValueError("its table of records is cut short")
        mark, flags, method, packed, size, *lengths, offset = _ENTRY_HEADER.unpack_from(table, at)
        begin = at + _ENTRY_HEADER.size
        name_end = begin + lengths[0]
        at = begin + sum(lengths)
        if mark != _ENTRY or at > len(table):
            raise ValueError("its table of records is damaged")
        name = table[begin:name_end].decode("utf-8", "surrogateescape")
        extra = table[name_end : name_end + lengths[1]]
        size, packed, offset = _wide(extra, size, packed, offset)
        problem = None
        if flags & 1:
            problem = "is encrypted"
        elif method or packed != size:
            problem = "is compressed, which torch's never are"
        yield Entry(name, offset, size, problem)
    if at != len(table):
        raise ValueError("its table has more records than it says")


def _wide(extra: bytes, *numbers: int) -> Iterator[int]:
    """The numbers of a record; those that need eight bytes are in its extra part."""
    at, part = 0, b""
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        at += 4 + size
        if kind == 1:
            part = extra[at - size : at]
            break
    for number in numbers:
        if number == _LARGE:
            if len(part) < 8:
                raise ValueError("its table of records is damaged")
            yield int.from_bytes(part[:8], "little")
            part = part[8:]
        else:
            yield number


def place_of(file: RawFile, entry: Entry) -> int | str:
    """Where the bytes of a record begin; text says why they can't be read."""
    if entry.problem is not None:
        return entry.problem
    name = entry.name.encode("utf-8", "surrogateescape")
    names_end = entry.offset + _LOCAL_HEADER.size + len(name)
    if names_end > file.size:
        return "is outside of the file"
    header = file.read(entry.offset, names_end - entry.offset)
    mark, flags, length, extra = _LOCAL_HEADER.unpack_from(header)
    begin: int = entry.offset + _LOCAL_HEADER.size + length + extra
    if mark != _LOCAL or begin + entry.size > file.size:
        return "is outside of the file"
    own = header[_LOCAL_HEADER.size :]
    if own != name or length != len(name) or flags & 1:
        return f"is called {shown(own.decode('utf-8', 'replace'))} where its bytes are"
    return begin
