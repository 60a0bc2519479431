# SPDX-License-Identifier: Apache-2.0
"""The listing of a structure that was read, with names in the place of classes."""

from collections.abc import Iterable, Iterator
from typing import Any

from .listing import NODE_KINDS, Record
from .values import decode

# A node in the core's form: the name of its kind, is_anchor, the number of children (for an alias
# the number of its anchor), the index of each reference.
NodeRow = tuple[Any, ...]
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


def records_of(rows: Iterable[NodeRow], refs: list[Any]) -> list[Record]:
    """A record for each node, as in the core's listing, of a structure with these references."""
    records: list[Record] = []
    open_nodes: list[tuple[dict[str, Any], Iterator[int]]] = []  # with the numbers of next children
    number = 0
    for kind, is_anchor, count, *indices in rows:
        parts = {role: refs[i] for role, i in zip(_ROLES[kind], indices, strict=True)}
        entry, attribute = None, None
        while open_nodes:
            child = next(open_nodes[-1][1], None)
            if child is not None:
                entry, attribute = _entry(open_nodes[-1][0], child)
                break
            open_nodes.pop()
        own = count if kind == "alias" else number if is_anchor else -1
        count = 0 if kind == "alias" else count
        number += is_anchor
        type_, detail = _type(kind, parts), _detail(parts)
        records.append(Record(kind, own, count, entry, attribute, type_, detail))
        open_nodes.append((parts, iter(range(count))))
    return records


def _entry(parent: dict[str, Any], child: int) -> tuple[Any, str | None]:
    if "names" in parent:
        name = parent["names"][child]
        return name, name if isinstance(name, str) else None
    entries = parent.get("keys", parent.get("entries"))
    if isinstance(entries, (list, tuple)) and child < len(entries):
        return entries[child], None
    return child, None


def _type(kind: str, parts: dict[str, Any]) -> str | None:
    name = parts.get("registration", parts.get("class"))
    if name is not None:
        return str(name).rpartition(".")[2]
    return {"leaf": None, "alias": None, "None": "NoneType"}.get(kind, kind)


def _detail(parts: dict[str, Any]) -> Any:
    if "meta" in parts:
        values = parts["meta"]
        return tuple(("", value) for value in values) if isinstance(values, tuple) else ()
    return next((parts[r] for r in ("aux_data", "default_factory", "maxlen") if r in parts), None)
