# SPDX-License-Identifier: Apache-2.0
"""The header of a safetensors file: read, and checked where it is written as writers write it.

The safetensors package builds objects for each array to check a header, which takes as long as
reading it. So the header is checked here, and the package decides only about unusual headers. It
accepts every header that is accepted here, except for -0, which Python reads as the integer 0.
"""

import functools
import itertools
import math
import operator
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydag.arrays.bytes import NUMPY_NAMES
from pydag.structure.document import decoder

# An array as the header of a file has it: `dtype` in the format's words, `shape`, `data_offsets`.
Entry = Mapping[str, Any]

LARGEST = 100_000_000  # bytes; readers of the format refuse a longer header
_MOST_BYTES = 1 << 50  # of an array whose size is computed here
_METADATA = "__metadata__"


_ODD = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


@functools.cache
def bits_of(dtype: str) -> int | None:
    """How many bits an element of a type has; None for a type that the format hasn't."""
    if dtype in _ODD or dtype not in NUMPY_NAMES:
        return _ODD.get(dtype)
    return int(re.findall(r"\d+", dtype)[0])


def is_storable(dtype: str, shape: Iterable[int]) -> bool:
    """Whether the format has a type, and can have an array of it in this shape: whole bytes."""
    bits = bits_of(dtype)
    return bits is not None and bits * math.prod(shape) % 8 == 0


ITEM_SIZES = {short: (bits_of(short) or 0) // 8 for short in NUMPY_NAMES}  # bytes of one number


class Run(NamedTuple):
    """Arrays of one type and shape that lie one after the other in a file."""

    dtype: str
    shape: list[int]
    begin: int
    size: int  # bytes of one
    names: list[str]


class Header(NamedTuple):
    """The content of a header."""

    entries: dict[str, Entry]
    metadata: dict[str, str]
    runs: list[Run] | None = None  # all arrays, in their order; None: they lie in another order


def parsed(text: str) -> Header:
    """The header of this text. Raises ValueError if it isn't JSON, or has a name twice."""
    entries = decoder().decode(text)
    metadata = entries.pop(_METADATA, None)
    return Header(entries, {} if metadata is None else metadata)


def checked(text: bytes, room: int) -> Header | None:
    """The header if it is surely valid; None: the safetensors package must check it.

    Args:
        room: How many bytes come after it.
    """
    if len(text) > LARGEST or text[:1] != b"{":
        return None
    try:
        header = parsed(text.decode())  # as text, for of bytes Python guesses the encoding
        texts = *header.entries, *itertools.chain.from_iterable(header.metadata.items())
        "".join(texts).encode()  # raises for half a surrogate pair, and if one is no text
        runs = _runs(header.entries, room)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return None if runs is None else Header(header.entries, header.metadata, runs)


def _runs(entries: Mapping[str, Entry], room: int) -> list[Run] | None:
    runs: list[Run] = []
    last_dtype, last_shape, end, size = "", None, 0, 0
    for name, entry in entries.items():
        dtype, shape, (begin, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
        if len(entry) != 3 or begin != end or type(begin) is not int or type(stop) is not int:
            return None
        if not runs or shape != last_shape or dtype != last_dtype:
            if type(shape) is not list or min(shape, default=0) < 0:
                return None
            size = ITEM_SIZES[dtype] * math.prod(filter(None, shape))
            if size > _MOST_BYTES:
                return None
            size = size if all(shape) else 0
            names: list[str] = []
            runs.append(Run(dtype, shape, begin, size, names))
            last_dtype, last_shape = dtype, shape
        if stop - begin != size:
            return None
        names.append(name)
        end = stop
    shapes = map(operator.itemgetter("shape"), entries.values())
    numbers = itertools.chain.from_iterable(shapes)
    return runs if end == room and set(map(type, numbers)) <= {int} else None


def aliases_in(
    metadata: Mapping[str, str], arrays: Container[str], is_ours: bool
) -> dict[str, str]:
    """The array that each alias means, also of aliases that are stored as arrays themselves.

    Aliases are further names of arrays, in the form of `safetensors.torch.save_model`. Other
    programs put anything into the metadata: a text is an alias if its value is the name of an
    array.

    Args:
        arrays: The names of all arrays of the model.
        is_ours: Whether pydag wrote it. In other files `format` is the framework that did.
    """
    return {
        alias: name
        for alias, name in metadata.items()
        if name in arrays and alias not in (name, STRUCTURE) and (is_ours or alias != "format")
    }


def contradictions(tables: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, dict[str, str]]]:
    """The aliases that mean different arrays in several files.

    Yields:
        An alias, and a file for each array that it names.
    """
    claims: dict[str, dict[str, str]] = {}
    for file, aliases in tables.items():
        for alias, name in aliases.items():
            claims.setdefault(alias, {}).setdefault(name, file)
    return ((alias, files) for alias, files in claims.items() if len(files) > 1)


# No path gives this name: names.py keeps it free.
STRUCTURE = "pydag..structure"
# In the JSON of the structure: the kinds of leaves that were written as arrays.
KINDS = "kinds"


def package() -> Any:
    """The safetensors package."""
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            'pydag.files needs safetensors and NumPy: pip install "pydag-tree[files]"'
        ) from error
    _check_version(safetensors.__version__)
    return safetensors


@functools.cache
def _check_version(version: str) -> None:
    if tuple(map(int, version.split(".")[:2])) < (0, 8):
        raise ImportError(
            "pydag.files needs safetensors 0.8 or newer, and this is "
            f'{version}: pip install "safetensors>=0.8"'
        )
