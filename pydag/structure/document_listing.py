# SPDX-License-Identifier: Apache-2.0
"""The listing of a structure that was read, with names in the place of classes."""

from collections.abc import Iterable
from typing import Any

from .kinds import NODE_KINDS
from .listing import Record
from .values import decode

# A node in the core's form: the name of its kind, is_anchor, the number of children (for an alias
# the number of its anchor), the index of each reference.
Row = tuple[Any, ...]
_ROLES = {kind.name: kind.roles for kind in NODE_KINDS}


def plain_ref(ref: dict[str, Any]) -> Any:
    """A reference with names in the place of classes."""
    if "keys" in ref:
        keys = [decode(key, None) for key in ref["keys"]]
        order = ref.get("order", range(len(keys)))
        if sorted(order) != list(range(len(keys))):
            raise ValueError("the order must be a permutation of the keys")
        return [key for _, key in sorted(zip(order, keys, strict=True), key=lambda pair: pair[0])]
    if "value" in ref:
        return decode(ref["value"], None)
    return ref.get("node", ref.get("class", ref.get("factory")))


class Records:
    """The records of a structure whose references are `refs`."""

    def __init__(self, rows: Iterable[Row], refs: list[Any]) -> None:
        self._rows, self._refs = rows, refs

    def make(self) -> list[Record]:
        """A record for each node, as in the core's listing."""
        records: list[Record] = []
        open_nodes: list[tuple[Row, int]] = []  # with the number of the next child
        number = 0
        for row in self._rows:
            entry, attribute = None, None
            if open_nodes:
                parent, child = open_nodes[-1]
                entry, attribute = self._entry(parent, child)
                open_nodes[-1] = (parent, child + 1)
            kind, is_anchor, count, *_ = row
            own = count if kind == "alias" else number if is_anchor else -1
            count = 0 if kind == "alias" else count
            number += is_anchor
            type_, detail = self._type(row), self._detail(row)
            records.append(Record(kind, own, count, entry, attribute, type_, detail))
            if count:
                open_nodes.append((row, 0))
            while open_nodes and open_nodes[-1][1] == open_nodes[-1][0][2]:
                open_nodes.pop()
        return records

    def _ref(self, row: Row, *roles: str) -> Any:
        """The reference that has one of these roles in the core; None without one."""
        known = _ROLES[row[0]]
        index = next(
            (index for role, index in zip(known, row[3:], strict=True) if role in roles), None
        )
        return None if index is None else self._refs[index]

    def _entry(self, parent: Row, child: int) -> tuple[Any, str | None]:
        if (names := self._ref(parent, "names")) is not None:
            return names[child], names[child] if isinstance(names[child], str) else None
        entries = self._ref(parent, "keys", "entries")
        has_one = isinstance(entries, (list, tuple)) and child < len(entries)
        return entries[child] if has_one else child, None

    def _type(self, row: Row) -> str | None:
        name = self._ref(row, "registration", "class")
        if name is not None:
            return str(name).rpartition(".")[2]
        return {"leaf": None, "alias": None, "None": "NoneType"}.get(row[0], row[0])

    def _detail(self, row: Row) -> Any:
        if "meta" in _ROLES[row[0]]:
            values = self._ref(row, "meta")
            return tuple(("", value) for value in values) if isinstance(values, tuple) else ()
        return self._ref(row, "aux_data", "default_factory", "maxlen")
