# SPDX-License-Identifier: Apache-2.0
"""The names of leaves in a file, written as in a state dict: `layers.0.weight`.

A name is the path of the leaf: indices, attributes, and keys that are text, joined by dots. A key
may contain dots, as the keys of a state dict do. Three kinds of paths are written as in Python,
`[(1, 2)][3]`: those with any other step, the second of two that would get the same name, and those
whose name is reserved. (Older files have every path with a dotted key in this form.)
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydag.structure.listing import NAMED, Listing, Record, step_text

from .header import STRUCTURE

RESERVED = frozenset({"__metadata__", STRUCTURE})
# Characters of a name on which longer ones are built. In a deep structure all names are long.
_LONGEST = 500


def is_writable(text: str) -> bool:
    """Whether text can be written as UTF-8."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


class _Steps:
    """Looks children up by the text of the step to them. Tables are made on demand, per node."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._dotted: dict[int, dict[str, int]] = {}
        self._longest: dict[int, int] = {}  # parts of the longest key in such a table
        self._python: dict[int, dict[str, int]] = {}

    def part(self, position: int) -> str | None:
        """The step to a node as part of a dotted name; None if it can't be one."""
        _, _, _, entry, text, _, _ = self._listing.records[position]
        if type(text) is str and "." in text:
            return None
        if text is None:
            text = entry
        if type(text) is str:
            return text if text and is_writable(text) else None
        above = self._listing.records[self._listing.parents[position]]
        return str(text) if type(text) is int and above.kind not in NAMED else None

    def dotted(self, position: int) -> dict[str, int]:
        """The children of a node by their part of a dotted name; the first one wins."""
        found = self._dotted.get(position)
        if found is None:
            found = self._dotted[position] = {}
            children = self._listing.children(position)
            for child in children:
                if (part := self.part(child)) is not None:
                    found.setdefault(part, child)
            # Other programs write a namedtuple as a list, and a key 3 as "3".
            for child in children:
                entry = self._listing.records[child].entry
                if type(entry) is int:
                    found.setdefault(str(entry), child)
            self._longest[position] = 1 + max((part.count(".") for part in found), default=0)
        return found

    def longest(self, position: int) -> int:
        """Of how many parts, joined by dots, a step from a node to a child may consist."""
        self.dotted(position)
        return self._longest[position]

    def python(self, position: int) -> dict[str, int]:
        """The children of a node by the step as Python text."""
        found = self._python.get(position)
        if found is None:
            found = self._python[position] = {}
            for child in self._listing.children(position):
                found.setdefault(step_text(self._listing.records[child]), child)
        return found


_STEP = re.compile(
    r"""\.[^.\[\]]+|\[(?:[^\[\]'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*\]""", re.DOTALL
)


# Attributes that lead from a wrapper to its content: those of a Dag, of the state of an
# optimizer, of a Variable of NNX. A path to the content may contain this step or omit it.
_STANDS_FOR = frozenset({"tree", "inner", "value"})


class StoredNames:
    """Gives names to the nodes of a structure, and finds nodes by name."""

    def __init__(self, listing: Listing) -> None:
        self._listing, self._steps = listing, _Steps(listing)
        self._taken: dict[str, int] = {}

    def name(self, way: Iterable[int]) -> str:
        """A new name for the node at the end of a way, unlike all names given before.

        The same ways in the same order always get the same names.
        """
        steps = list(way)
        parts = [self._steps.part(step) for step in steps]
        dotted = ".".join(part for part in parts if part is not None)
        if None in parts or not self._is_free(dotted, steps):
            text = "".join(step_text(self._listing.records[step]) for step in steps)
            text = text.encode("utf-8", "backslashreplace").decode()
            number = 1
            dotted = text
            while dotted in self._taken:  # two children with one entry
                number += 1
                dotted = f"{text}#{number}"
        self._taken[dotted] = steps[-1] if steps else 0
        return dotted

    def _is_free(self, dotted: str, way: Sequence[int]) -> bool:
        """Whether a dotted name leads to the node at the end of this way, and to no other."""
        if dotted in self._taken or dotted in RESERVED:
            return False
        if all("." not in (self._steps.part(step) or "") for step in way):
            return True
        found = self._find_dotted(dotted)
        return found is not None and self._listing.target(found) == self._listing.target(way[-1])

    def of_leaves(self) -> list[str]:
        """The name of each distinct leaf, as `name` gives it for the path of its anchor."""
        dotted = self._dotted()
        anchors = self._listing.leaves
        given = list(map(dotted.__getitem__, anchors))
        taken = {name: leaf for name, leaf in zip(given, anchors, strict=True) if name is not None}
        if len(taken) == len(anchors) and RESERVED.isdisjoint(taken):
            self._taken = taken
            return list(taken)
        names = []
        for leaf, name in zip(anchors, given, strict=True):
            if name is None or name in self._taken or name in RESERVED:
                name = self.name(self._listing.way(leaf))
            self._taken[name] = leaf
            names.append(name)
        return names

    def _dotted(self) -> list[str | None]:
        """The dotted name of each node, as far as it can be the name of one."""
        records, parents = self._listing.records, self._listing.parents
        attributes: dict[Any, str | None] = {}  # most nodes have one seen before
        dotted: list[str | None] = [""]
        for position in range(1, len(records)):
            parent = parents[position]
            above = dotted[parent]
            if above is None or len(above) > _LONGEST:
                dotted.append(None)
                continue
            _, _, _, entry, attribute, _, _ = records[position]
            part: str | None
            if attribute is None:
                is_plain = type(entry) is str and entry and entry.isascii()
                part = entry if is_plain else self._steps.part(position)
            elif attribute in attributes:
                part = attributes[attribute]
            else:
                part = attributes[attribute] = self._steps.part(position)
            if part is None:
                dotted.append(None)
            else:
                dotted.append(f"{above}.{part}" if parent > 0 else part)
        return dotted

    def find(self, name: str) -> int | None:
        """The position of the node that has this name in a file, by any path to it."""
        position = self._taken.get(name)
        if position is None:
            position = self._find_dotted(name)
        if position is None:
            position = self._find_python(name)
        if position is None and name.endswith(".value"):
            return self.find(name.removesuffix(".value"))
        return None if position is None else self._position_of(position)

    def _position_of(self, position: int) -> int:
        """The node, or its content, if that is its only child `.value`."""
        target = self._listing.target(position)
        children = self._listing.children(target)
        if len(children) == 1 and self._listing.records[children[0]].attribute == "value":
            return self._listing.target(children[0])
        return target

    def find_way(self, way: Iterable[Record]) -> int | None:
        """The position of the node that a way through another tree leads to here.

        A key of that tree may be a whole path: `a.b`, `("a", "b")`, `tree['a'].b` of a `Dag`.
        """
        position: int | None = 0
        for record in way:
            start = self._listing.target(position or 0)
            key = record.entry if record.attribute is None else record.attribute
            position = self._steps.dotted(start).get(str(key))
            if position is None:
                position = self._steps.python(start).get(step_text(record))
            if position is None and type(key) is tuple:  # as in flat dicts of flax
                position = self._find_dotted(".".join(map(str, key)), start)
            if position is None and type(key) is str:
                position = self._find_python(key.removeprefix("tree"), start)
                if position is None:
                    position = self._find_dotted(key, start)
                if position is None and key in _STANDS_FOR:
                    position = start
            if position is None:
                return None
        return None if position is None else self._position_of(position)

    def _find_dotted(self, name: str, start: int = 0) -> int | None:
        parts = name.split(".") if name else []
        pending = [(start, 0)]  # a node, and the parts that led to it; the last one is next
        visited = set()
        while pending:
            position, used = pending.pop()
            if used == len(parts):
                return position
            target = self._listing.target(position)
            if (target, used) in visited:
                continue
            visited.add((target, used))
            steps = self._steps.dotted(target)
            # Of a key `a` and a key `a.b` the shorter one is tried first.
            for end in range(min(used + self._steps.longest(target), len(parts)), used, -1):
                child = steps.get(".".join(parts[used:end]))
                if child is not None:
                    pending.append((child, end))
        return None

    def _find_python(self, name: str, start: int = 0) -> int | None:
        position, at = start, 0
        if name[:1] not in (".", "["):
            return None
        while at < len(name):
            step = _STEP.match(name, at)
            found = step and self._child(self._listing.target(position), step[0])
            if step is None or found is None:
                return None
            position, at = found, step.end()
        return position

    def _child(self, position: int, step: str) -> int | None:
        """The child to which a step as Python text leads; an attribute is found as a key."""
        found = self._steps.python(position).get(step)
        if found is None:
            text = step[1:] if step[0] == "." else step[1:-1].strip("'\"")
            found = self._steps.dotted(position).get(text)
            if found is None and step[0] == "." and text in _STANDS_FOR:
                return position
        return found


def leaf_names(listing: Listing) -> tuple[StoredNames, list[str]]:
    """The name of each distinct leaf: the path of its anchor."""
    names = StoredNames(listing)
    return names, names.of_leaves()


def other_ways(listing: Listing, leaves: list[int]) -> Iterator[tuple[int, list[int]]]:
    """The further ways to leaves, for a table of aliases.

    All of them if there are at most four times as many as leaves. Else one for each slot.

    Args:
        leaves: Indices of leaves.

    Yields:
        The index of the leaf, and the way.
    """
    if not listing.slots:
        return
    numbers = listing.num_ways()
    positions = [listing.leaves[leaf] for leaf in leaves]
    total = sum(numbers[position] for position in positions)
    for leaf, position in zip(leaves, positions, strict=True):
        if total <= 4 * len(leaves):
            ways = iter(listing.ways(position))
            next(ways)
            for way in ways:
                yield leaf, way
        else:
            for slot in listing.slots_of(position)[1:]:
                yield leaf, listing.way(slot)


def listed(names: Sequence[str], most: int) -> str:
    """Several names, the first few of them."""
    shown = ", ".join(name[:120] for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
