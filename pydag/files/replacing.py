# SPDX-License-Identifier: Apache-2.0
"""New files that take the place of old ones at once, so that a crash leaves one or the other."""

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple


class NewFile(NamedTuple):
    """A file that isn't in its place yet."""

    path: str
    mode: int  # that the umask gives it

    @classmethod
    def beside(cls, folder: str, name: str) -> "NewFile":
        """A new, empty file in a folder, with another name than `name`."""
        path = os.path.join(folder, f".{name[:100]}.{os.urandom(8).hex()}")
        # So that the umask decides on the mode: safetensors sets one of its own.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        return cls(path, os.stat(path).st_mode)

    def replace(self, target: str) -> None:
        """Makes it the file at `target`, whose mode it takes if there is one."""
        mode = self.mode
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(target).st_mode
        os.chmod(self.path, stat.S_IMODE(mode))
        os.replace(self.path, target)

    def remove(self) -> None:
        """Deletes it, if it is still there."""
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def flush(path: str) -> None:
    """Waits until a file, or a folder, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_folder(folder: str) -> None:
    """The same of a folder, where the system can do it."""
    with contextlib.suppress(OSError):
        flush(folder)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Gives the name of a new file beside `path`, which replaces it at the end."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    new = NewFile.beside(folder, name)
    try:
        yield new.path
        flush(new.path)
        new.replace(target)
    except BaseException:
        new.remove()
        raise
    flush_folder(folder)


def progress_bar(total: int, shown: bool) -> Any:
    """A bar that counts bytes, if `shown`."""
    if not shown:
        return contextlib.nullcontext()
    import tqdm

    return tqdm.tqdm(total=total, unit="B", unit_scale=True)
