# SPDX-License-Identifier: Apache-2.0
"""A file that is read in pieces. Nothing of it is kept in memory."""

import errno
import os
from collections.abc import Iterable
from typing import Any

from pydag.files.path import check_regular

_SEEK_DATA = getattr(os, "SEEK_DATA", None)


def _seek_and_read(handle: int, size: int, begin: int) -> bytes:
    os.lseek(handle, begin, os.SEEK_SET)
    return os.read(handle, size)


_read = getattr(os, "pread", _seek_and_read)  # Windows has no `pread`


def expect(places: Iterable[tuple["RawFile", int, int]]) -> None:
    """Says which small parts of files will be read next: begin and size of each.

    Those of files elsewhere are fetched together, as each request takes its time.
    """
    if far := [place for place in places if place[0].is_far]:
        from . import remote

        remote.fetch(far)


class RawFile:
    """An open file. A pipe or a device is refused, since reading it might never end."""

    is_far = False  # whether it is on another machine

    def __init__(self, path: str) -> None:
        self.path = path
        check_regular(path)
        self._stream: Any = open(path, "rb", buffering=0)  # noqa: SIM115  # `close` closes it
        self._handle = self._stream.fileno()
        self.size = os.fstat(self._handle).st_size

    def read(self, begin: int, size: int) -> bytes:
        """The bytes from `begin` on. OSError: the file has become shorter."""
        found = _read(self._handle, size, begin)
        while len(found) < size:
            more = _read(self._handle, size - len(found), begin + len(found))
            if not more:
                raise self._shorter()
            found += more
        return found

    def _shorter(self) -> OSError:
        return OSError(errno.EIO, "it has become shorter while it was read", self.path)

    def mapped(self, begin: int, size: int) -> Any:
        """These bytes as an array of NumPy; they are read where they are used.

        OSError: the file has become shorter. (Later the system would end the process.)
        """
        import numpy as np

        if os.fstat(self._handle).st_size < begin + size:
            raise self._shorter()
        return np.memmap(self._stream, np.uint8, "r", begin, (size,))

    def is_hole(self, begin: int, end: int) -> bool:
        """Whether these bytes are zeros that take no space on the disk."""
        if _SEEK_DATA is None or self.is_far:
            return False
        try:
            return os.lseek(self._handle, begin, _SEEK_DATA) >= end
        except OSError as error:  # ENXIO: no data until the end of the file
            return error.errno == errno.ENXIO and end <= self.size

    def close(self) -> None:
        """Closes it."""
        self._stream.close()
