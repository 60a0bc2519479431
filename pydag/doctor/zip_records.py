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
    b"PK" + end for end in (b"\3\4", b"\1\2", b"\5\6", b"\6\6", b"\6\7")
)
# Mark, flags, method, packed size, size, lengths of the name and the extra part.
_LOCAL_HEADER = struct.Struct("<4s2xHH8xIIHH")
_ENTRY_HEADER = struct.Struct("<4s4xHH8xIIHHHH2xII")
_END_SIZE = 22
# The end, with what a large file has before it: the wide end, and the locator, which says where.
_ENDS = struct.Struct("<4s28xQQQ 4s4xQ4x 4sHH2xHIIH")
# Flags of a record: its sizes are behind it; it is encrypted, or changes another file.
_LATER, _ODD = 8, 1 | 32 | 64 | 8192
_FOLDER = 16  # the attribute of a folder, which torch doesn't read
_SMALL, _LARGE = 0xFFFF, 0xFFFFFFFF  # said where the number is in the wide part
_MOST_RECORDS = 300_000
_LARGEST_TABLE = 64 << 20  # bytes


class ZipEntry(NamedTuple):
    """A record, as the table says."""

    name: str
    raw_name: bytes
    offset: int  # of its own header
    size: int  # in bytes
    problem: str | None  # why it can't be read

    def header_in(self, file: RawFile) -> tuple[RawFile, int, int]:
        """Where its own header is."""
        size = _LOCAL_HEADER.size + len(self.raw_name)
        return file, self.offset, max(0, min(size, file.size - self.offset))


def is_zip(file: RawFile) -> bool:
    """Whether a file ends as zip files do."""
    size = min(file.size, _END_SIZE + _SMALL)
    return _END in file.read(file.size - size, size)[: 4 - _END_SIZE]


def entries(file: RawFile) -> list[ZipEntry]:
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


def _table_of(file: RawFile) -> tuple[int, int, int]:
    """Where the table of records begins, its bytes, and the number of records."""
    size = min(file.size, _ENDS.size)
    tail = file.read(file.size - size, size).rjust(_ENDS.size, b"\0")
    wide_mark, *rest = _ENDS.unpack(tail)
    wide, (locator, place, mark, disk, first_disk, *narrow, comment) = rest[:3], rest[3:]
    if mark != _END:
        raise ValueError("it has something behind its end")
    end, numbers = file.size - _END_SIZE, narrow
    if locator == _LOCATOR:
        end, numbers = file.size - _ENDS.size, wide
        rows = zip(narrow, wide, (_SMALL, _LARGE, _LARGE), strict=True)
        is_same = all(old in (new, most) for old, new, most in rows)
        if wide_mark != _WIDE_END or place != end or not is_same:
            raise ValueError("its two ends differ")
    count, size, begin = numbers
    if begin + size != end or comment or disk or first_disk:
        raise ValueError("its table of records isn't where it is said to be")
    return begin, size, count


def _rows(table: bytes, count: int) -> Iterator[ZipEntry]:
    at = 0
    for _ in range(count):
        if len(table) - at < _ENTRY_HEADER.size:
            raise ValueError("its table of records is cut short")
        row = _ENTRY_HEADER.unpack_from(table, at)
        mark, flags, method, packed, size, *lengths, disk, attributes, offset = row
        begin = at + _ENTRY_HEADER.size
        name_end = begin + lengths[0]
        at = begin + sum(lengths)
        if mark != _ENTRY or at > len(table):
            raise ValueError("its table of records is damaged")
        wide = _wide(table[name_end : name_end + lengths[1]])
        size, packed, offset = (
            next(wide, -1) if number == _LARGE else number for number in (size, packed, offset)
        )
        if min(size, packed, offset) < 0:
            raise ValueError("its table of records is damaged")
        problem = None
        name = table[begin:name_end]
        if flags & _ODD:
            problem = "is encrypted, or a patch"
        elif disk or (attributes & _FOLDER and name[-1:] != b"/"):
            problem = "is on another disk, or a folder"
        elif method or packed != size:
            problem = "is compressed, which torch's never are"
        yield ZipEntry(name.decode("utf-8", "surrogateescape"), name, offset, size, problem)
    if at != len(table):
        raise ValueError("its table has more records than it says")


def _wide(extra: bytes) -> Iterator[int]:
    """The numbers that need eight bytes: the first thing in the extra part of a row."""
    if extra[:2] == b"\1\0":
        part = extra[4 : 4 + int.from_bytes(extra[2:4], "little")]
        yield from struct.unpack_from(f"<{len(part) // 8}Q", part)


def place_of(file: RawFile, entry: ZipEntry) -> int | str:
    """Where the bytes of a record begin; text says why they can't be read."""
    if entry.problem is not None:
        return entry.problem
    name = entry.raw_name
    _, begin, size = entry.header_in(file)
    if size < _LOCAL_HEADER.size + len(name):
        return "is outside of the file"
    header = file.read(begin, size)
    mark, flags, method, *sizes, length, extra = _LOCAL_HEADER.unpack_from(header)
    data: int = entry.offset + _LOCAL_HEADER.size + length + extra
    if mark != _LOCAL or data + entry.size > file.size:
        return "is outside of the file"
    own = header[_LOCAL_HEADER.size :]
    if own != name or length != len(name):
        return f"is called {shown(own.decode('utf-8', 'replace'))} where its bytes are"
    # A writer that didn't know the sizes yet has zeros there.
    known = {entry.size, _LARGE, 0 if flags & _LATER else _LARGE}
    if method or flags & _ODD or not known.issuperset(sizes):
        return "is encrypted, compressed, or of another size where its bytes are"
    return data
