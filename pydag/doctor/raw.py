# SPDX-License-Identifier: Apache-2.0
"""A file that is read in pieces. Nothing of it is mapped or kept in memory."""

import errno
import os

from pydag.files.path import check_regular

_SEEK_DATA = getattr(os, "SEEK_DATA", None)


class RawFile:
    """An open file.

    Args:
        path: The file. A pipe or a device is refused, since reading it might never end.

    Raises:
        OSError: It can't be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        check_regular(path)
        self.stream = open(path, "rb", buffering=0)  # noqa: SIM115  # `close` closes it
        self.size = os.fstat(self.stream.fileno()).st_size

    def read(self, begin: int, size: int) -> bytes:
        """The bytes from `begin` on.

        Raises:
            OSError: They are not there, although the file was longer when it was opened.
        """
        self.stream.seek(begin)
        found = self.stream.read(size)
        while len(found) < size:
            more = self.stream.read(size - len(found))
            if not more:
                raise OSError(errno.EIO, "it has become shorter while it was read", self.path)
            found += more
        return found

    def is_hole(self, begin: int, end: int) -> bool:
        """Whether these bytes are zeros that take no space on the disk."""
        if _SEEK_DATA is None:
            return False
        try:
            return os.lseek(self.stream.fileno(), begin, _SEEK_DATA) >= end
        except OSError as error:  # ENXIO: no data until the end of the file
            return error.errno == errno.ENXIO and end <= self.size

    def close(self) -> None:
        """Closes it."""
        self.stream.close()
