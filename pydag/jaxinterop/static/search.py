# SPDX-License-Identifier: Apache-2.0
"""The search for something that a leaf leads to: an array, a tracer, a weak reference."""

from collections.abc import Callable
from typing import Any, NamedTuple

from pydag.structure.text import short_repr

from .parts import Readers


class Hidden(NamedTuple):
    """An array in a leaf."""

    path: str  # from the leaf on
    array: Any


def search(
    leaf: Any,
    reader: Callable[[Any], Readers],
    is_found: Callable[[Any], bool],
    most: int | None = None,
) -> Hidden | None:
    """The first part for which `is_found` is true, directly in a leaf or further below.

    Args:
        reader: Tells how the parts of an object are read.
        is_found: Asked of each part.
        most: The number of objects that are looked into.
    """
    seen = {id(leaf)}
    ways: list[tuple[int, str, Any]] = [(-1, "", None)]  # (the whole, how the part is got from it)
    waiting = [(0, leaf)]
    owned = [leaf]  # what the ids are of
    while waiting:
        way, whole = waiting.pop()
        if most is not None and len(owned) > most:
            break
        for form, name, part in reader(whole).parts(whole):
            if id(part) in seen:
                continue
            if is_found(part):
                return Hidden(_text([*ways, (way, form, name)]), part)
            if reader(part).is_blind():
                continue
            seen.add(id(part))
            owned.append(part)
            ways.append((way, form, name))
            waiting.append((len(ways) - 1, part))
    return None


def _text(ways: list[tuple[int, str, Any]]) -> str:
    steps = []
    index = len(ways) - 1
    while index > 0:
        index, form, name = ways[index]
        steps.append(form.format(short_repr(name) if form == "[{}]" else name))
    return "".join(reversed(steps))
