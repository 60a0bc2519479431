# SPDX-License-Identifier: Apache-2.0
"""The data for all views: the records of a structure, and infos about its leaves."""

import bisect
import functools
import itertools
import operator
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydag.structure.calls import Call, call_of
from pydag.structure.listing import DETAILS, Listing, Record, named_details, shorten, step_text

from .leaves import Infos, LeafInfo, brief, cut, printable

_NO_OBJECTS = ("alias", "None")
_DEEPEST_CALL = 8  # calls within calls that are shown in one line


def _named(record: Record) -> Sequence[tuple[str, Any]] | None:
    """The parts of aux_data that have names; None where it is of one piece."""
    if DETAILS.get(record.kind) != "aux_data":
        return None
    found = (names_in(record.type, record.detail) for names_in in named_details)
    return next((x for x in found if x is not None), None)


class Counts(NamedTuple):
    """The size of a DAG. `objects` are containers and leaves."""

    objects: int
    leaves: int
    parameters: int
    bytes: int

    def __str__(self) -> str:
        words = ("objects", "leaves", "parameters", "bytes")
        return ", ".join(f"{number} {word}" for number, word in zip(self, words, strict=True))


class Totals(NamedTuple):
    """The size of a DAG, and the size that it would have without sharing."""

    objects: int
    leaves: int
    parameters: int
    bytes: int
    unfolded: Counts

    def __str__(self) -> str:
        own = Counts(self.objects, self.leaves, self.parameters, self.bytes)
        return str(own) if own == self.unfolded else f"{own}; unfolded: {self.unfolded}"


class Row(NamedTuple):
    """A node that is shown."""

    position: int
    level: int
    is_last: bool  # of its parent's children
    hidden: str  # how many objects below it are not shown, in words
    has_rows: bool  # whether rows of its children follow


class ViewModel:
    """A structure with its leaves, to be shown.

    Args:
        listing: The structure.
        infos: The info of each of its distinct leaves.
        notes: What is said of some nodes, by position.
        remarks: Lines below the totals.
    """

    def __init__(
        self,
        listing: Listing,
        infos: Infos,
        notes: Mapping[int, str] | None = None,
        remarks: Sequence[str] = (),
    ) -> None:
        self.listing, self._infos = listing, infos
        self._notes, self._remarks = notes or {}, remarks
        kinds = map(operator.itemgetter(0), listing.records)
        self._is_object = [kind not in _NO_OBJECTS for kind in kinds]
        self.totals = self._totals()

    def _totals(self) -> Totals:
        parameters, sizes = self._infos.sizes()
        own = Counts(sum(self._is_object), len(self._infos), sum(parameters), sum(sizes))
        if not self.listing.slots:
            return Totals(*own, own)
        ways = self.listing.num_ways()
        ways_to_leaves = [ways[position] for position in self.listing.leaves]
        unfolded = Counts(
            sum(itertools.compress(ways, self._is_object)),
            sum(ways_to_leaves),
            sum(map(operator.mul, ways_to_leaves, parameters)),
            sum(map(operator.mul, ways_to_leaves, sizes)),
        )
        return Totals(*own, unfolded)

    def leaf(self, position: int) -> LeafInfo:
        """The info of a leaf."""
        return self._infos[bisect.bisect_left(self.listing.leaves, position)]

    def step(self, position: int) -> str:
        """The step to a node: `.name`, `['key']`, `[0]`; empty for the root."""
        if position == 0:
            return ""
        return printable(cut(step_text(self.listing.records[position]), 80))

    def path(self, position: int) -> str:
        """The whole path to a node, as Python text without the root."""
        return printable(shorten(self.listing.path_text(position).removeprefix("."), 200))

    def note(self, position: int) -> str:
        """What is said of a node, with a dash before it; else nothing."""
        note = self._notes.get(position)
        return f" — {printable(note)}" if note else ""

    def foot(self) -> str:
        """The totals, and the remarks."""
        return "\n".join([str(self.totals), *map(printable, self._remarks)])

    def mark(self, position: int) -> str:
        """`&0` for an anchor, `*0` for an alias, else nothing."""
        record = self.listing.records[position]
        if record.number < 0:
            return ""
        return f"{'*' if record.is_alias else '&'}{record.number}"

    def name(self, position: int) -> str:
        """The class of a node, or the leaf."""
        record = self.listing.records[position]
        if record.is_leaf:
            return self.leaf(position).text
        if record.is_alias:
            return ""
        if record.kind == "None":
            return "None"
        if (call := self._call(position)) is not None:
            text = self.call_text(position)
            return printable(call.text(["…"]) if text is None else text)
        name = printable(cut(str(getattr(record.type, "__qualname__", record.type)), 80))
        return name if record.num_children else f"{name} (empty)"

    def configuration(self, position: int) -> str:
        """The content of a node besides its children, in brackets; empty if there is none."""
        record = self.listing.records[position]
        if self._call(position) is not None:
            return ""
        detail, role = record.detail, DETAILS.get(record.kind)
        named = detail if role == "meta" else _named(record)
        if named is not None:
            parts = [
                f"{printable(cut(name, 40))}={brief(value)}" if name else brief(value)
                for name, value in named
            ]
        elif detail is None:
            parts = []
        else:
            parts = [brief(detail) if role == "aux_data" else f"{role}={brief(detail)}"]
        if not parts:
            return ""
        return f"[{cut(', '.join(parts), 200)}]"

    def _call(self, position: int) -> Call | None:
        """The call that a node represents; None for other nodes."""
        record = self.listing.records[position]
        return call_of(record.type, record.detail) if record.kind == "fields" else None

    def call_text(self, position: int, deepest: int = _DEEPEST_CALL) -> str | None:
        """A node that represents a call, with its arguments, in one line.

        None for other nodes; and if an argument is a container, or has a note, which rows show.
        """
        call = self._call(position)
        holders = [] if call is None or deepest == 0 else self.listing.children(position)
        if call is None or len(holders) != 1 or self._notes:
            return None
        shown = []
        for child in self.listing.children(holders[0]):
            text = None
            if self.listing.records[child].num_children == 0:
                text = self.label(child)
            elif (inner := self.call_text(child, deepest - 1)) is not None:
                text = f"{self.mark(child)} {inner}".strip()
            if text is None:
                return None
            shown.append(text)
        return call.text(shown)

    def label(self, position: int) -> str:
        """Mark, class and configuration of a node."""
        parts = [self.mark(position), self.name(position), self.configuration(position)]
        return " ".join(filter(None, parts))

    def anchor(self, position: int, shown: Container[int]) -> str:
        """The path of an alias's anchor in parentheses; empty for others, and if it is shown."""
        if not self.listing.records[position].is_alias:
            return ""
        target = self.listing.target(position)
        return "" if target in shown else f"({self.path(target)})"

    def rows(self, depth: int | None, limit: int | None, *, boxes: bool = False) -> Iterator[Row]:
        """The rows that are shown, in order, at most `limit`.

        Args:
            boxes: Whether each object has a row, even if the row of a call would show it.
        """
        listing = self.listing
        pending = [0]  # how many children of each open node are still to come
        position = given = 0
        while position < len(listing.records) and (limit is None or given < limit):
            record, level = listing.records[position], len(pending) - 1
            if position in self._left_out:
                position += 1
                continue
            is_whole = not boxes and self.call_text(position) is not None
            num_rows = record.num_children
            if self._left_out:
                num_rows -= len(self._left_out.intersection(listing.children(position)))
            has_children = num_rows > 0 and not is_whole
            has_rows = has_children and (depth is None or level < depth)
            hidden = ""
            if has_children and not has_rows:
                hidden = f"… {self._objects(position + 1, listing.ends[position])} more objects"
            yield Row(position, level, level == 0 or pending[-1] == 1, hidden, has_rows)
            given += 1
            pending[-1] -= 1
            if has_rows:
                pending.append(num_rows)
                position += 1
            else:
                position = listing.ends[position]
            while len(pending) > 1 and pending[-1] == 0:
                pending.pop()

    @functools.cached_property
    def _left_out(self) -> frozenset[int]:
        """The nodes without a row: parts of a library's objects in which nothing has a name."""
        return frozenset(
            i
            for i, record in enumerate(self.listing.records)
            if i > 0 and record.num_children == 0 and record.number < 0
            if _named(record) == [] and i not in self._notes
        )

    def _objects(self, start: int, end: int) -> int:
        return sum(self._is_object[start:end])

    def more(self, shown: Sequence[Row]) -> str:
        """How many objects come after the last row, in words; empty if it is the last of all."""
        last, end = shown[-1], len(self.listing.records)
        after = last.position + 1 if last.has_rows else self.listing.ends[last.position]
        left_out = len(self._left_out.intersection(range(after, end)))
        objects = self._objects(after, end) - left_out
        return f"... and {objects} more objects" if after + left_out < end else ""
