# SPDX-License-Identifier: Apache-2.0
"""How the structure in a file describes each of its leaves.

An array is described by its name, a text. Any other leaf is an object with one field:
`{"scalar": name}` for one of NumPy's numbers, which is an array without dimensions, or
`{"value": ...}`, which values.py explains. `{"array": name}` is read as an array, too.
"""

from collections.abc import Mapping
from typing import Any

from pydag.structure.document import MalformedError

from .header import Entry


class Described:
    """The descriptions of all leaves, checked.

    Args:
        leaves: The descriptions from a file.
        number: The number of leaves of the structure.
        entries: The arrays of the file, by name.

    Raises:
        MalformedError: A description is malformed, or names no array of the file.
    """

    def __init__(self, leaves: Any, number: int, entries: Mapping[str, Entry]) -> None:
        if type(leaves) is not list or len(leaves) != number:
            raise MalformedError("leaves", "there must be one for each leaf of the structure")
        self.contents: list[Any] = leaves  # the name or value of each leaf
        self.kinds = ["array"] * number  # what each is: "array", "scalar" or "value"
        names = leaves
        if set(map(type, leaves)) != {str} or not all(map(entries.__contains__, leaves)):
            fields = [_field(i, leaf, entries) for i, leaf in enumerate(leaves)]
            self.kinds = [kind for kind, _ in fields]
            self.contents = [content for _, content in fields]
            names = [content for kind, content in fields if kind != "value"]
        self.names = dict.fromkeys(names)  # of the arrays, each once, in the order of the leaves

    @property
    def has_values(self) -> bool:
        """Whether a leaf is no array."""
        return "value" in self.kinds


def _field(leaf: int, found: Any, entries: Mapping[str, Entry]) -> tuple[str, Any]:
    kind, content = "array", found
    if type(found) is not str:
        if type(found) is not dict or len(found) != 1:
            raise _wrong(leaf, "expected a name, or an object with one field")
        ((kind, content),) = found.items()
    if kind != "value":
        if (kind != "array" and kind != "scalar") or type(content) is not str:
            raise _wrong(leaf, f"unknown kind {kind[:40]!r}")
        if content not in entries:
            raise _wrong(leaf, f"there is no array {content[:200]!r}")
        if kind == "scalar" and entries[content]["shape"]:
            raise _wrong(leaf, f"the array {content[:200]!r} is no single number")
    return kind, content


def _wrong(leaf: int, why: str) -> MalformedError:
    return MalformedError(f"leaves[{leaf}]", why)
