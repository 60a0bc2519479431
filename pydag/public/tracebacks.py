# SPDX-License-Identifier: Apache-2.0
"""Shortens tracebacks of mistakes: they end where the user's code called pydag."""

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def short_tracebacks(function: F) -> F:
    """The function; tracebacks of errors about its arguments show no frames of pydag."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, OSError) as error:
            raise error.with_traceback(_of_others(error.__traceback__)) from error.__cause__

    return call  # type: ignore[return-value]  # it takes the same arguments


def _of_others(traceback: TracebackType | None) -> TracebackType | None:
    """The frames outside of pydag, such as those of functions that it called."""
    frames = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_FOLDER):
            frames.append(traceback)
        traceback = traceback.tb_next
    found = None
    for each in reversed(frames):
        found = TracebackType(found, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return found
