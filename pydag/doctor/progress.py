# SPDX-License-Identifier: Apache-2.0
"""A line on the terminal that shows the progress of comparing arrays."""

import sys
import time

from .finding import size_text

_AFTER = 1.0  # seconds, before which nothing is shown
_EVERY = 0.2


class Bar:
    """Counts bytes.

    Args:
        is_shown: Whether it writes anything: to a terminal, by default to none.
    """

    def __init__(self, is_shown: bool = False) -> None:
        self._is_shown = is_shown and sys.stderr is not None and sys.stderr.isatty()
        self._next = time.monotonic() + _AFTER
        self._done = self._total = 0
        self._is_written = False

    def expect(self, nbytes: int) -> None:
        """So many bytes more may have to be read."""
        self._total += nbytes

    def update(self, nbytes: int) -> None:
        """So many bytes more were read."""
        self._done += nbytes
        if self._is_shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            part = min(1.0, self._done / max(self._total, 1))
            filled = round(30 * part)
            bar = "#" * filled + "." * (30 - filled)
            sys.stderr.write(f"\rcomparing [{bar}] {part:4.0%} of {size_text(self._total)} ")
            sys.stderr.flush()
            self._is_written = True

    def close(self) -> None:
        """Takes the line away."""
        if self._is_written:
            sys.stderr.write("\r" + " " * 70 + "\r")
            sys.stderr.flush()
            self._is_written = False
