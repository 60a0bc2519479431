# SPDX-License-Identifier: Apache-2.0
"""Checks that the places of arrays are within their file, and don't overlap."""

import operator
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .finding import Finding, listed, shown


class Range(NamedTuple):
    """The place of an array by its header, counted from the first byte of all arrays."""

    name: str
    begin: int
    end: int


def check_ranges(ranges: Sequence[Range], room: int, is_dense: bool) -> Iterator[Finding]:
    """The problems with the places of arrays.

    Args:
        ranges: All of them, none with an end before its beginning.
        room: How many bytes the file has for them.
        is_dense: Whether the format allows no gaps.
    """
    rows = sorted((row for row in ranges if row.end > row.begin), key=operator.itemgetter(1, 2))
    end, last, is_tiled = 0, "", True
    for name, begin, stop in rows:
        if begin < end:
            is_tiled = False
            size = min(end, stop) - begin
            text = f"{shown(last)} and {shown(name)} overlap by {size} bytes"
            yield Finding("error", (last, name), text)
        elif begin > end and is_dense:
            is_tiled = False
            text = f"there are {begin - end} bytes of no array before {shown(name)}"
            yield Finding("error", (name,), text)
        if stop > end:
            end, last = stop, name
    beyond = [row for row in rows if row.end > room]
    if beyond and is_tiled:
        names = tuple(row.name for row in beyond)
        missing = f"the last {end - room} of {end} bytes are missing"
        yield Finding("error", names, f"the file is cut short: {missing}, of {listed(names)}")
    elif beyond:
        for name, begin, stop in beyond:
            text = f"{shown(name)} is said to be at bytes {begin} to {stop}, outside of the file"
            yield Finding("error", (name,), f"{text}, which has {room}")
    elif is_dense and end < room:
        yield Finding("error", (), f"there are {room - end} bytes of no array at the end")
