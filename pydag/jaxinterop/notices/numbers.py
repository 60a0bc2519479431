# SPDX-License-Identifier: Apache-2.0
"""A warning about a number of a module that compiles the function anew each time."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import pydag._core as _core
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.leaves import is_number
from pydag.jaxinterop.content.paths import CALL, path_texts
from pydag.structure.text import short_repr

from .source import Source

_TRACES = 4


def _is_count(value: Any) -> bool:
    """Whether it is a number. A flag, which has two values, doesn't compile again and again."""
    return is_number(value) and not isinstance(value, bool | np.bool_)


class ChangingNumbers:
    """Warns of a function once."""

    def __init__(self, source: Source) -> None:
        self._source, self._has_warned = source, False

    def check(self, contents: Sequence[Content]) -> None:
        """Warns if a number was another one in each of the last three traces.

        Args:
            contents: Of the arguments of the last traces.
        """
        last, content = contents[-_TRACES:], contents[-1]
        alike = all(c.key == content.key and c.positions == content.positions for c in last)
        if self._has_warned or len(last) < _TRACES or not alike:
            return
        for i, position in enumerate(content.positions):
            values = [c.values[i] for c in last]
            changes = not any(itertools.starmap(_core.is_same_value, itertools.pairwise(values)))
            if changes and all(map(_is_count, values)):
                self._has_warned = True
                self._source.warn(
                    f"{self._source.text} is compiled anew for each value of "
                    f"{path_texts(content.spec, CALL)[position]}, a number of a module: "
                    f"{', '.join(map(short_repr, values))}\n  A module's numbers are static. Make "
                    "it an array: jnp.asarray(value).",
                    UserWarning,
                )
                return
