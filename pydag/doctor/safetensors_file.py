# SPDX-License-Identifier: Apache-2.0
"""Reads the header of a safetensors file, also of one in which something is wrong.

`reading.File` refuses such a file; here each array that can be read is, and the rest is reported.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from pydag.files.header import ITEM_SIZES, LARGEST, STRUCTURE, aliases_in, bits_of, checked, parsed

from .finding import shown
from .raw import RawFile
from .stored import MOST_BYTES, Container, Stored

_MOST_DIMENSIONS = 64
_KEYS = ("dtype", "shape", "data_offsets")


def looks_like_safetensors(file: RawFile) -> bool:
    """Whether a file begins as one does: a length, and the brace of a JSON object."""
    return file.size > 8 and file.read(8, 1) == b"{"


def read_safetensors(file: RawFile) -> Container:
    """The content of a safetensors file. ValueError: its header can't be read."""
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
    text, start = file.read(8, length), 8 + length
    try:
        entries, metadata, runs = checked(text, file.size - start) or parsed(text.decode())
        "".join(entries).encode()  # raises for half a surrogate pair
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise ValueError(f"malformed header of a safetensors file: {error}") from None
    found.named = set(entries)
    if runs is None or any(len(run.shape) > _MOST_DIMENSIONS for run in runs):
        _add_checked(found, entries, start)
    else:
        for dtype, shape, begin, size, names in runs:
            form, more = tuple(shape), (size, ITEM_SIZES[dtype], True)
            for i, name in enumerate(names):
                place = start + begin + i * size
                found.arrays[name] = Stored(name, dtype, form, file, place, *more, name)
    _add_metadata(found, metadata, entries)
    return found


def _add_checked(found: Container, entries: Mapping[str, Any], start: int) -> None:
    """Adds each array that can be read, and says what is wrong with the others."""
    room = found.file.size - start
    places = {}
    for name, entry in entries.items():
        if why := _why_malformed(entry):
            found.error((name,), f"{shown(name)}: {why}")
            continue
        dtype, shape, (begin, end) = map(entry.get, _KEYS)
        places[name] = begin, end
        bits = bits_of(dtype)
        if bits is None:
            found.error((name,), f"{shown(name)} has a type that is unknown, {shown(dtype)}")
            continue
        needed, rest = divmod(bits * math.prod(shape), 8)
        if needed != end - begin or rest:
            what = f"its type and shape, {shown(dtype)}{shape}, {needed}"
            what += f" and {rest} bits" if rest else ""
            found.error((name,), f"{shown(name)} has {end - begin} bytes, and by {what}")
        elif end <= room:
            width = 0 if bits % 8 else bits // 8
            found.add(name, dtype, tuple(shape), start + begin, needed, width)
    found.check_places(places, room, is_dense=True)


def _why_malformed(entry: Any) -> str | None:
    """Why the entry of an array has no type, shape and offsets; None: it has."""
    if type(entry) is not dict:
        return "its entry in the header is no object"
    dtype, shape, offsets = map(entry.get, _KEYS)
    if type(dtype) is not str:
        return "its type is missing"
    if not _are_sizes(shape) or math.prod(shape) > MOST_BYTES:
        return "its shape is no list of sizes"
    if not _are_sizes(offsets) or len(offsets) != 2:
        return "its offsets are no two numbers"
    if offsets[1] < offsets[0]:
        return f"it is said to end at byte {offsets[1]}, before it begins, at {offsets[0]}"
    return None


def _are_sizes(numbers: Any) -> TypeGuard[list[int]]:
    return (
        type(numbers) is list
        and len(numbers) <= _MOST_DIMENSIONS
        and all(type(number) is int and 0 <= number <= MOST_BYTES for number in numbers)
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
    yield from aliases_in(metadata, entries, is_ours).items()
    if not metadata.keys() - {"format"}:
        return
    last = {name.rpartition(".")[2] for name in entries}
    for key, value in metadata.items():
        is_alias = is_ours or (_is_like(key, last) and _is_like(value, last))
        if is_alias and value not in entries and key not in (value, "format"):
            yield key, value


def _is_like(text: str, last: set[str]) -> bool:
    match = re.fullmatch(r"[\w.\-]+\.(\w+)", text)
    return match is not None and (match[1] in last or match[1] in ("weight", "bias", "kernel"))
