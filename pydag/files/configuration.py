# SPDX-License-Identifier: Apache-2.0
"""Configuration: the content of modules besides arrays, and meta fields.

If a file is read into `like`, data comes from the file and configuration from the code: a number
that was changed in the code wins. One warning lists the differences.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.arrays.kinds import is_array_class, is_scalar_class, of_class
from pydag.structure.calls import FunctionName, as_in_file, is_function_of_file
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr
from pydag.typing import Leaf

_SHOWN = 12


class Difference(NamedTuple):
    """A difference between a file and the code."""

    path: str
    in_file: Any
    in_code: Any


def are_whole_arrays(leaves: Sequence[Leaf]) -> list[bool]:
    """Which leaves are arrays, and not NumPy's numbers."""
    return of_class(leaves, lambda cls: is_array_class(cls) and not is_scalar_class(cls))


def configuration_in(leaves: Sequence[Leaf], spec: PyDagSpec) -> frozenset[int]:
    """Which leaves are configuration, by their numbers."""
    owned, _ = _core.module_leaves(spec)
    are_arrays = are_whole_arrays(leaves) if owned else ()
    return frozenset(i for i in owned if not are_arrays[i])


def is_other(in_file: Any, in_code: Any) -> bool:
    """Whether two values of configuration differ."""
    if is_function_of_file(in_file):
        in_code = as_in_file(in_code)
    return type(in_file) is not type(in_code) or repr(in_file) != repr(in_code)


def has_meta_fields(listing: Listing) -> bool:
    """Whether an object of a structure has meta fields."""
    return any(record.kind == "fields" and record.detail for record in listing.records)


def meta_differences(file: Listing, code: Listing) -> Iterator[Difference]:
    """The meta fields that differ between objects at the same path with the same field names."""
    waiting, visited = [(0, 0)], set[tuple[int, int]]()
    while waiting:
        one, other = waiting.pop()
        pair = file.target(one), code.target(other)
        if pair in visited:
            continue
        visited.add(pair)
        ours, theirs = code.records[pair[1]], file.records[pair[0]]
        if ours.kind == theirs.kind == "fields":
            # A file has the values alone, in the order of the class's fields.
            rows = zip(theirs.detail or (), ours.detail or (), strict=False)
            for (_, noted), (name, value) in rows:
                if is_other(noted, value):
                    path = f"{code.path_text(pair[1], 'tree')}.{name}"
                    is_name = type(noted) is FunctionName
                    yield Difference(path, str(noted) if is_name else noted, value)
        entries = {repr(code.records[child].entry): child for child in code.children(pair[1])}
        pairs = [
            (child, entries[entry])
            for child in file.children(pair[0])
            if (entry := repr(file.records[child].entry)) in entries
        ]
        waiting.extend(reversed(pairs))


def differences_text(source: str, differences: Sequence[Difference]) -> str:
    """The warning; empty if there are none."""
    if not differences:
        return ""
    lines = [
        f"  {path}: {short_repr(in_file)} in the file, {short_repr(in_code)} in the code"
        for path, in_file, in_code in differences[:_SHOWN]
    ]
    if len(differences) > _SHOWN:
        lines.append(f"  and {len(differences) - _SHOWN} more")
    return (
        f"{source} was saved with other configuration than `like` has\n"
        + "\n".join(lines)
        + "\n  That of the code counts. Set in `like` what should be as it was saved."
    )
