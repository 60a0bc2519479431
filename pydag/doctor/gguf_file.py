# SPDX-License-Identifier: Apache-2.0
"""Reads the header of a GGUF file."""

import math
from collections import Counter
from typing import NamedTuple

from .finding import Finding, shown
from .gguf_cursor import MOST_ROWS, TEXT, UNSIGNED, Cursor, CutShortError, malformed
from .ranges import Range, check_ranges
from .raw import RawFile
from .stored import Container, Stored

MAGIC = b"GGUF"
_MOST_DIMENSIONS = 8
_MOST_BYTES = 1 << 62


class _Type(NamedTuple):
    """A type of numbers: so many of them are stored together in so many bytes."""

    name: str
    block: int
    nbytes: int


_TYPES = {
    number: _Type(*row)
    for number, row in {
        0: ("F32", 1, 4),
        1: ("F16", 1, 2),
        2: ("Q4_0", 32, 18),
        3: ("Q4_1", 32, 20),
        6: ("Q5_0", 32, 22),
        7: ("Q5_1", 32, 24),
        8: ("Q8_0", 32, 34),
        9: ("Q8_1", 32, 36),
        10: ("Q2_K", 256, 84),
        11: ("Q3_K", 256, 110),
        12: ("Q4_K", 256, 144),
        13: ("Q5_K", 256, 176),
        14: ("Q6_K", 256, 210),
        15: ("Q8_K", 256, 292),
        16: ("IQ2_XXS", 256, 66),
        17: ("IQ2_XS", 256, 74),
        18: ("IQ3_XXS", 256, 98),
        19: ("IQ1_S", 256, 50),
        20: ("IQ4_NL", 32, 18),
        21: ("IQ3_S", 256, 110),
        22: ("IQ2_S", 256, 82),
        23: ("IQ4_XS", 256, 136),
        24: ("I8", 1, 1),
        25: ("I16", 1, 2),
        26: ("I32", 1, 4),
        27: ("I64", 1, 8),
        28: ("F64", 1, 8),
        29: ("IQ1_M", 256, 56),
        30: ("BF16", 1, 2),
        34: ("TQ1_0", 256, 54),
        35: ("TQ2_0", 256, 66),
        39: ("MXFP4", 32, 17),
    }.items()
}


def read_gguf(file: RawFile) -> Container:
    """The content of a GGUF file.

    Raises:
        ValueError: Its header can't be read.
    """
    found = Container("GGUF", file)
    try:
        _read(found, file, Cursor(file))
    except CutShortError:
        found.error((), "the file is cut short within its header")
    return found


def _read(found: Container, file: RawFile, cursor: Cursor) -> None:
    cursor.take(len(MAGIC))
    version = cursor.number("I")
    if version not in (2, 3):
        raise ValueError(f"it is a GGUF file of version {version}; versions 2 and 3 can be read")
    number = cursor.count("arrays", 24, MOST_ROWS)
    alignment = 32
    keys: Counter[str] = Counter()
    for _ in range(cursor.count("values", 13, MOST_ROWS)):
        key, kind = cursor.name(), cursor.number("I")
        keys[key] += 1
        if key == "general.alignment" and kind == UNSIGNED:
            alignment = cursor.number("I")
        elif key == "general.architecture" and kind == TEXT:
            found.metadata[key] = cursor.name()
        else:
            cursor.skip_value(kind)
    if not alignment:
        raise malformed("an alignment of 0 bytes")
    _note_twice(found, keys, "is a key twice")
    rows = [_info(cursor) for _ in range(number)]
    names = Counter(name for name, *_ in rows)
    _note_twice(found, names, "is stored twice")
    found.named = set(names)
    start = -(-cursor.position // alignment) * alignment
    ranges, seen = [], set()
    for name, shape, kind, offset in rows:
        if name in seen:
            continue
        seen.add(name)
        known = _TYPES.get(kind)
        if known is None:
            found.findings.append(
                Finding("doubt", (name,), f"{shown(name)} has the type {kind}, which is unknown")
            )
            continue
        size = math.prod(shape)
        if size > _MOST_BYTES or offset > _MOST_BYTES or (shape and shape[-1] % known.block):
            found.error((name,), f"{shown(name)} has no shape of whole blocks: {list(shape)[:8]}")
            continue
        nbytes = size // known.block * known.nbytes
        ranges.append(Range(name, offset, offset + nbytes))
        if start + offset + nbytes <= file.size:
            itemsize = known.nbytes if known.block == 1 else 0
            place = start + offset
            found.arrays[name] = Stored(
                name,
                known.name,
                shape,
                file,
                place,
                nbytes,
                itemsize,
                True,
                (file.path, place, name),
            )
    room = max(file.size - start, 0)
    found.findings.extend(check_ranges(ranges, room, is_dense=False))


def _info(cursor: Cursor) -> tuple[str, tuple[int, ...], int, int]:
    """Name, shape, type and offset of an array. The first length is that of the last axis."""
    name, dimensions = cursor.name(), cursor.number("I")
    if dimensions > _MOST_DIMENSIONS:
        raise malformed(f"{shown(name)} has {dimensions} dimensions")
    shape = tuple(cursor.number("Q") for _ in range(dimensions))[::-1]
    return name, shape, cursor.number("I"), cursor.number("Q")


def _note_twice(found: Container, names: Counter[str], what: str) -> None:
    for name, count in names.items():
        if count > 1:
            found.error((name,), f"{shown(name)} {what}")
