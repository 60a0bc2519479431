# SPDX-License-Identifier: Apache-2.0
"""Warnings that point at the user's call of a function of ours."""

import os
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"


class Place(NamedTuple):
    """A line of the user's."""

    file: str
    line: int
    module: str

    def warn(self, text: str, category: type[Warning] = UserWarning) -> None:
        """Warns there, perhaps later on."""
        warnings.warn_explicit(text, category, *self)


def place_of_call() -> Place:
    """The innermost line of the user's that runs."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    name = frame.f_globals.get("__name__")
    return Place(frame.f_code.co_filename, frame.f_lineno, name if type(name) is str else "?")


def warn_at_call(text: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the innermost line of the user's."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
