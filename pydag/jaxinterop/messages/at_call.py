# SPDX-License-Identifier: Apache-2.0
"""Warnings that point at the user's call of a function of ours."""

import os
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from pydag.jaxinterop.foreign import jax_private

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"


class CodeLine(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    module: str

    def warn(self, text: str, category: type[Warning] = UserWarning) -> None:
        """Warns at this line, perhaps after it has run."""
        warnings.warn_explicit(text, category, *self)


def is_of_pydag(frame: FrameType) -> bool:
    """Whether a frame runs code of this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def _is_between(frame: FrameType) -> bool:
    """Whether a frame is JAX's, around a function of this package."""
    return frame.f_code is jax_private.shortening_code


def user_frame() -> tuple[FrameType, int]:
    """The innermost frame of the user's, and the `stacklevel` of a warning that points at it.

    The `stacklevel` counts from the function that calls this one.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and (is_of_pydag(frame) or _is_between(frame)):
        frame, level = frame.f_back, level + 1
    return frame, level


def line_of_call() -> CodeLine:
    """The innermost line of the user's that runs."""
    frame, _ = user_frame()
    name = frame.f_globals.get("__name__")
    return CodeLine(frame.f_code.co_filename, frame.f_lineno, name if type(name) is str else "?")


def warn_at_call(text: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the innermost line of the user's."""
    _, level = user_frame()
    warnings.warn(text, category, stacklevel=level)
