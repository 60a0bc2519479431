# SPDX-License-Identifier: Apache-2.0
"""Warnings that point at the user's call of a function of ours."""

import os
import sys
import warnings
from pathlib import Path

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"


def warn_at_call(text: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the innermost line of the user's."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
