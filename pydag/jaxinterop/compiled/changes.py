# SPDX-License-Identifier: Apache-2.0
"""A warning about numbers that are compiled in and are other ones at each call."""

import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from pydag._repr import short_repr
from pydag.jaxinterop.boundary.arguments import argument_text
from pydag.jaxinterop.boundary.naming import Source
from pydag.jaxinterop.boundary.static import Static, is_number
from pydag.jaxinterop.boundary.static_part import StaticPart

CALLS = 3  # compilations for one structure, after which it is told

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"


def warn_of_changes(source: Source, parts: Sequence[StaticPart]) -> bool:
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
        before, now = (short_repr(static.value) for static in statics[-2:])
        _warn(
            f"{source.text} was compiled {CALLS} times because a static number was another one "
            f"each time: {argument_text(accessor)} was {before}, and is {now}\n"
            "  Numbers that a module holds are configuration, and a function is compiled for them. "
            "What changes from call to call is data: make it an array, such as jnp.asarray(0.5), "
            "or hold it in a record (pydag.register_fields)."
        )
        return True
    return False


def _changes(statics: Sequence[Static]) -> bool:
    """Whether these are numbers, no two of which are the same. A flag has only two values."""
    values = [static.value for static in statics]
    if not all(is_number(value) and not isinstance(value, bool) for value in values):
        return False
    return len(set(statics)) == len(statics)


def _warn(text: str) -> None:
    """Warns at the place of the user's call."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
