# SPDX-License-Identifier: Apache-2.0
"""A line on the terminal that shows the progress of fetching and comparing arrays."""

import sys
import time
from typing import ClassVar

from .finding import size_text

_AFTER = 1.0  # seconds, before which nothing is shown
_EVERY = 0.2


class Bar:
    """Counts bytes; with `is_shown` also on the terminal, if there is one."""

    shown: ClassVar["Bar | None"] = None  # the one that is on the terminal

    def __init__(self, is_shown: bool = False) -> None:
        self._next = time.monotonic() + _AFTER
        self._done = self._total = self._fetched = 0
        self._width = 0  # of what is written
        if is_shown and sys.stderr is not None and sys.stderr.isatty():
            Bar.shown = self

    def expect(self, nbytes: int) -> None:
        """So many bytes more may have to be read."""
        self._total += nbytes

    def update(self, nbytes: int, fetched: int = 0) -> None:
        """So many bytes more were compared, or fetched from elsewhere."""
        self._done += nbytes
        self._fetched += fetched
        if Bar.shown is self and time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            texts = [f"{size_text(self._fetched)} fetched"] if self._fetched else []
            if self._total:
                part = min(1.0, self._done / self._total)
                bar = ("#" * round(30 * part)).ljust(30, ".")
                texts.insert(0, f"comparing [{bar}] {part:4.0%} of {size_text(self._total)}")
            self._write(", ".join(texts))

    def _write(self, text: str, end: str = "") -> None:
        sys.stderr.write("\r" + text.ljust(self._width) + end)
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        """Takes the line away."""
        if self._width:
            self._write("", "\r")
        if Bar.shown is self:
            Bar.shown = None
