# SPDX-License-Identifier: Apache-2.0
"""A warning about numbers that are compiled in and are other ones at each call."""

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL, shortened, with_roots
from pydag.jaxinterop.prefixes.arguments import argument_text
from pydag.jaxinterop.static.leaves import Static, is_number
from pydag.jaxinterop.static.untraced import Untraced
from pydag.structure.listing import Listing, Record, step_text
from pydag.structure.text import short_repr
from pydag.typing import Leaf

CALLS = 3  # compilations after which it is told

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"


def warn_of_changes(source: Source, parts: Sequence[Untraced]) -> bool:
    """Warns if a static number was another one each time. Returns whether it did.

    Args:
        parts: Of the last compilations for one structure.
    """
    if len(parts) < CALLS:
        return False
    for statics in zip(*(part.statics for part in parts), strict=True):
        if not _changes(statics):
            continue
        place = next(i for i, static in enumerate(parts[-1].statics) if static is statics[-1])
        accessor = parts[-1].spec.accessors()[parts[-1].positions[place]]
        values = [static.value for static in statics]
        _tell(source, "static number", argument_text(accessor), values, _LEAF_ADVICE)
        return True
    return False


def warn_of_changed_fields(source: Source, specs: Sequence[PyDagSpec]) -> bool:
    """The same for a number in a static field, which is a part of the structure.

    Args:
        specs: Of the last compilations.
    """
    if len(specs) < CALLS or len({(spec.num_leaves, spec.num_shared) for spec in specs}) > 1:
        return False
    listings = [Listing.of(spec) for spec in specs]
    if len({len(listing.records) for listing in listings}) > 1:
        return False
    rows = list(zip(*(listing.records for listing in listings), strict=True))
    if not all(_is_alike(row[0], other) for row in rows for other in row[1:]):
        return False
    for position, row in enumerate(rows):
        for fields in zip(*map(_fields, row), strict=False):
            if len({field.step for field in fields}) > 1:
                break
            values = [field.value for field in fields]
            if _changes(list(map(Static, values))):
                way = "".join(
                    step_text(listings[-1].records[i]) for i in listings[-1].way(position)
                )
                place = shortened(with_roots(f"tree{way}", CALL)) + fields[0].step
                _tell(source, "number in a static field", place, values, _FIELD_ADVICE)
                return True
    return False


_LEAF_ADVICE = """\
  Numbers that a module holds are configuration, and a function is compiled for them. What changes \
from call to call is data: make it an array, such as jnp.asarray(0.5), or hold it in a record \
(pydag.register_fields)."""

_FIELD_ADVICE = """\
  Static fields are configuration, and a function is compiled for them. What changes from call to \
call is data: let it be a field that isn't static, and an array, such as jnp.asarray(0.5)."""


class _Field(NamedTuple):
    """What a node holds beside its children, and how it is got from the node."""

    step: str
    value: Any


def _fields(record: Record) -> Iterator[_Field]:
    """The meta fields of a node; of a class with functions of its own the items of its aux_data."""
    if record.kind == "fields":
        for name, value in record.detail:
            yield _Field(f".{name}", value)
    elif record.kind == "custom type":
        items = record.detail if type(record.detail) is tuple else (record.detail,)
        yield from (_Field(" (in its aux_data)", item) for item in items)


def _is_alike(one: Record, other: Record) -> bool:
    """Whether two nodes differ in their fields at most. No `==` of the user's is asked."""
    if type(one.entry) is not type(other.entry) or one.type is not other.type:
        return False
    is_same_entry = one.entry is other.entry
    if type(one.entry) in (str, int, float, bool, bytes):
        is_same_entry = one.entry == other.entry
    return is_same_entry and (one.kind, *one[1:3]) == (other.kind, *other[1:3])


def _changes(statics: Sequence[Static]) -> bool:
    """Whether these are numbers, no two of which are the same. A flag has only two values."""
    values = [static.value for static in statics]
    if not all(is_number(value) and not isinstance(value, bool) for value in values):
        return False
    return len(set(statics)) == len(statics)


def _tell(source: Source, what: str, place: str, values: Sequence[Leaf], advice: str) -> None:
    """Warns at the place of the user's call."""
    before, now = map(short_repr, values[-2:])
    text = (
        f"{source.text} was compiled {CALLS} times because a {what} was another one each time: "
        f"{place} was {before}, and is {now}\n{advice}"
    )
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
