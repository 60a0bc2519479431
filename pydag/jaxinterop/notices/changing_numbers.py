# SPDX-License-Identifier: Apache-2.0
"""A warning about a number of a module that a function is compiled for again and again."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pydag.jaxinterop.foreign.flax_private import static_attributes
from pydag.jaxinterop.messages.at_call import warn_at_call
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL, position_text
from pydag.jaxinterop.static.leaves import Static, is_number
from pydag.jaxinterop.static.untraced import Untraced
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr

_TRACES = 4
"""A number that was another one in each of so many traces is no configuration."""

_Place = tuple[int, str]  # a position in the listing, and how the number is got from it


class ChangingNumbers:
    """Notices a number that was another one in each of the last traces of a function.

    Asked when a call needs a new key, so a call that was compiled before costs nothing here.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._last: list[Untraced] = []
        self._has_warned = False

    def forget(self) -> None:
        """Forgets all earlier calls."""
        self._last.clear()

    def add(self, untraced: Untraced) -> None:
        """Notes the untraced part of a call that needs a compilation; warns once."""
        if self._has_warned:
            return
        last = self._last = [*self._last[1 - _TRACES :], untraced]
        if len(last) < _TRACES:
            return
        listings = [Listing.of(each.spec) for each in last]
        if len({tuple((r.kind, r.type) for r in listing.records) for listing in listings}) > 1:
            return  # calls for several models
        found = [dict(_numbers(*pair)) for pair in zip(last, listings, strict=True)]
        for place, now in found[-1].items():
            values = [numbers[place] for numbers in found if place in numbers]
            if len(set(map(Static, values))) == _TRACES:
                path = position_text(listings[-1], place[0], CALL) + place[1]
                self._has_warned = True
                warn_at_call(
                    f"{self._source.text} was compiled {_TRACES} times because a number of a "
                    f"module was another one each time: {path} was {short_repr(values[-2])}, and "
                    f"is {short_repr(now)}\n  {_ADVICE}"
                )
                return


def _numbers(untraced: Untraced, listing: Listing) -> Iterator[tuple[_Place, Any]]:
    """The static numbers of modules, those of NNX among them; flags have two values alone."""
    found = [
        ((listing.leaves[position], ""), static.value)
        for position, static in zip(untraced.positions, untraced.statics, strict=True)
    ]
    for position, record in enumerate(listing.records):
        attributes = static_attributes(record.detail) if record.kind == "custom type" else None
        found += [((position, f".{name}"), value) for name, value in (attributes or {}).items()]
    for place, value in found:
        if is_number(value) and not isinstance(value, bool | np.bool_):
            yield place, value


_ADVICE = """\
Numbers that a module holds are configuration, and a function is compiled for them. What changes \
from call to call is data: make it an array, such as jnp.asarray(0.5), or hold it in a record \
(pydag.register_fields)."""
