# SPDX-License-Identifier: Apache-2.0
"""How the structure in a file describes each of its leaves.

It is an object with one field: `{"array": name}`, `{"scalar": name}` for one of NumPy's numbers,
which is an array without dimensions, or `{"value": ...}`, which values.py explains.
"""

from collections.abc import Mapping
from typing import Any

from pydag.structure.document import MalformedError

# An array as the header of a file has it: `dtype` in the format's words, `shape`, `data_offsets`.
Entry = Mapping[str, Any]


class Described:
    """The descriptions of all leaves, checked.

    Args:
        leaves: The descriptions as they stand in a file.
        number: How many leaves the structure has.
        entries: The arrays of the file, by name.

    Raises:
        MalformedError: A description is malformed, or names no array of the file.
    """

    def __init__(self, leaves: Any, number: int, entries: Mapping[str, Entry]) -> None:
        if type(leaves) is not list or len(leaves) != number:
            raise MalformedError("leaves", "there must be one for each leaf of the structure")
        self.leaves: list[tuple[str, Any]] = []  # the field of each, and what stands in it
        self.arrays: dict[str, Entry] = {}  # by name, in the order of the leaves
        add, arrays, find = self.leaves.append, self.arrays, entries.get
        for leaf in leaves:
            if type(leaf) is not dict or len(leaf) != 1:
                raise self._wrong("expected an object with one field")
            (field,) = leaf.items()
            kind, content = field
            if kind != "value":
                if (kind != "array" and kind != "scalar") or type(content) is not str:
                    raise self._wrong(f"unknown kind {kind[:40]!r}")
                entry = find(content)
                if entry is None:
                    raise self._wrong(f"there is no array {content[:200]!r}")
                if kind == "scalar" and entry["shape"]:
                    raise self._wrong(f"the array {content[:200]!r} is no single number")
                arrays[content] = entry
            add(field)

    def _wrong(self, why: str) -> MalformedError:
        return MalformedError(f"leaves[{len(self.leaves)}]", why)

    @property
    def has_values(self) -> bool:
        """Whether a leaf is no array."""
        return any(kind == "value" for kind, _ in self.leaves)
