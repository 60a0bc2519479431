# SPDX-License-Identifier: Apache-2.0
"""Reads the header of a safetensors file, also of one in which something is wrong.

`reading.File` refuses such a file; here each array that can be read is, and the rest is reported.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydag.files.header import LARGEST, aliases_in, bits_of, parsed
from pydag.files.package import STRUCTURE

from .finding import shown
from .raw import RawFile
from .stored import MOST_BYTES, Container

_MOST_DIMENSIONS = 64


def looks_like_safetensors(file: RawFile) -> bool:
    """Whether a file begins as one does: a length, and the brace of a JSON object."""
    return file.size > 8 and file.read(8, 1) == b"{"


def read_safetensors(file: RawFile) -> Container:
    """The content of a safetensors file.

    Raises:
        ValueError: Its header can't be read.
    """
    found = Container("safetensors", file)
    length = int.from_bytes(file.read(0, 8), "little")
    if length > LARGEST:
        raise ValueError(
            f"the header is said to have {length} bytes, and readers of safetensors files refuse "
            f"one of more than {LARGEST}"
        )
    if 8 + length > file.size:
        missing = f"{8 + length - file.size} of its {length} bytes are missing"
        found.error((), f"the file is cut short within its header: {missing}")
        return found
    try:
        entries, metadata, _ = parsed(file.read(8, length).decode())
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise ValueError(f"malformed header of a safetensors file: {error}") from None
    found.named = set(entries)
    start = 8 + length
    room = file.size - start
    places = {}
    for name, entry in entries.items():
        checked = _entry(entry)
        if isinstance(checked, str):
            found.error((name,), f"{shown(name)}: {checked}")
            continue
        dtype, shape, begin, end = checked
        places[name] = begin, end
        bits = bits_of(dtype)
        if bits is None:
            found.error((name,), f"{shown(name)} has a type that is unknown, {shown(dtype)}")
            continue
        needed = bits * math.prod(shape) // 8
        if needed != end - begin:
            what = f"its type and shape, {shown(dtype)}{list(shape)}, {needed}"
            found.error((name,), f"{shown(name)} has {end - begin} bytes, and by {what}")
        elif end <= room:
            found.add(name, dtype, shape, start + begin, needed, 0 if bits % 8 else bits // 8)
    found.check_places(places, room, is_dense=True)
    _add_metadata(found, metadata, entries)
    return found


def _entry(entry: Any) -> tuple[str, tuple[int, ...], int, int] | str:
    """Type, shape and offsets of an array; a text says why there are none."""
    if type(entry) is not dict:
        return "its entry in the header is no object"
    dtype, shape, offsets = map(entry.get, ("dtype", "shape", "data_offsets"))
    if type(dtype) is not str:
        return "its type is missing"
    if type(shape) is not list or not _are_sizes(shape) or math.prod(shape) > MOST_BYTES:
        return "its shape is no list of sizes"
    if type(offsets) is not list or len(offsets) != 2 or not _are_sizes(offsets):
        return "its offsets are no two numbers"
    begin, end = offsets
    if end < begin:
        return f"it is said to end at byte {end}, before it begins, at {begin}"
    return dtype, tuple(shape), begin, end


def _are_sizes(numbers: list[Any]) -> bool:
    return len(numbers) <= _MOST_DIMENSIONS and all(
        type(number) is int and 0 <= number <= MOST_BYTES for number in numbers
    )


def _add_metadata(found: Container, metadata: Any, entries: Mapping[str, Any]) -> None:
    if type(metadata) is not dict or not all(type(text) is str for text in metadata.values()):
        found.error((), "the metadata are no object of texts")
        return
    found.structure = metadata.pop(STRUCTURE, None)
    found.aliases = dict(_aliases(metadata, entries, found.structure is not None))
    found.metadata = {k: v for k, v in metadata.items() if k not in found.aliases}


def _aliases(
    metadata: Mapping[str, str], entries: Mapping[str, Any], is_ours: bool
) -> Iterator[tuple[str, str]]:
    """The metadata that are further names of arrays, also of arrays that aren't in the file.

    In a file of another program both texts must look like a name then: end as the names of the
    arrays here do, after a dot.
    """
    last = {name.rpartition(".")[2] for name in entries}
    yield from aliases_in(metadata, entries, is_ours).items()
    for key, value in metadata.items():
        is_alias = is_ours or (_is_like(key, last) and _is_like(value, last))
        if is_alias and value not in entries and key not in (value, "format"):
            yield key, value


def _is_like(text: str, last: set[str]) -> bool:
    match = re.fullmatch(r"[\w.\-]+\.(\w+)", text)
    return match is not None and (match[1] in last or match[1] in ("weight", "bias", "kernel"))
