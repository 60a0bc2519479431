# SPDX-License-Identifier: Apache-2.0
"""New files that take the place of old ones at once, so that a crash leaves one or the other."""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any

from .path import check_regular

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_MOST = 100  # bytes of a name, of the 255 that most systems allow
_PATIENCE = 60  # seconds
_NEW = re.compile(r"\.(.+)\.pydag-[0-9a-f]{16}", re.DOTALL)


class ReplacedError(OSError):
    """Another program replaces the file that is being read."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EBUSY, "it is being replaced while it is read", path)


def version_of(path: str) -> tuple[int, ...] | None:
    """A value that changes when the file is replaced; None: there is no file."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class NewFile:
    """A file that isn't in its place yet.

    It is locked while its writer lives, where the system has such locks. So the next writer knows
    what a writer that was killed has left. It is made in a folder, empty, and called unlike `name`.
    """

    def __init__(self, folder: str, name: str) -> None:
        self._lock: int | None = None
        while self._lock is None:
            self.path = os.path.join(folder, f".{_beginning(name)}.pydag-{os.urandom(8).hex()}")
            # So that the umask decides on the mode.
            handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            self._mode = os.fstat(handle).st_mode
            self._lock = handle
            if fcntl is None:
                self._unlock()
                return
            if _is_taken(handle, self.path):  # by a writer that removes leftovers
                self._unlock()

    def replace(self, target: str, old: str | None = None) -> None:
        """Moves it to `target`.

        It takes the mode of the file that is there, or of `old`, which it replaces under another
        name.
        """
        mode = self._mode
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(target if old is None else old).st_mode
        os.chmod(self.path, stat.S_IMODE(mode))
        os.replace(self.path, target)
        self._unlock()

    def remove(self) -> None:
        """Deletes it, if it is still there."""
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _beginning(name: str) -> str:
    """The first characters of a name, as many as surely fit into another one."""
    return name.encode(errors="replace")[:_MOST].decode(errors="ignore")


def _is_taken(handle: int, path: str) -> bool:
    """Locks a new file; True if another one locked it first. Where nobody can lock, nobody has."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    try:
        return not os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return True


def remove_leftovers(folder: str, is_ours: Callable[[str], bool]) -> None:
    """Deletes the new files of writers that were killed.

    Files of living writers, and files with other names, are kept. If the system has no locks, every
    file is kept.

    Args:
        is_ours: Whether files are written under a name: the beginning of it.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(folder) if fcntl is not None else ():
            found = _NEW.fullmatch(name)
            if found is not None and is_ours(found[1]):
                _remove_if_unlocked(os.path.join(folder, name))


def _remove_if_unlocked(path: str) -> None:
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return  # of somebody else; to open a pipe could wait for ever
        handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(handle)


@contextlib.contextmanager
def folder_locked(folder: str) -> Iterator[bool]:
    """Waits until no other writer puts files into their places in a folder, and keeps others out.

    Gives False where the system has no such locks.

    Raises:
        OSError: Another writer is there all the time.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            handle = _lock(folder, is_alone=True)
            break
        except BlockingIOError:
            if time.monotonic() > end:
                why = f"for {_PATIENCE} seconds another save has been putting its files there"
                raise OSError(errno.EBUSY, why, folder) from None
        time.sleep(0.01)
    try:
        yield handle is not None
    finally:
        _unlock(handle)


def is_folder_locked(folder: str) -> bool:
    """Whether a writer puts files into their places there just now."""
    try:
        _unlock(_lock(folder, is_alone=False))
    except BlockingIOError:
        return True
    return False


def _lock(folder: str, is_alone: bool) -> int | None:
    """A handle of a folder that is locked, for one alone or for several; None: there are no locks.

    Raises:
        BlockingIOError: Another one has locked it.
    """
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return handle


def _unlock(handle: int | None) -> None:
    if handle is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)  # a process that was forked meanwhile has it as well
        os.close(handle)


def flush(path: str) -> None:
    """Waits until a file, or a folder, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_folder(folder: str) -> None:
    """The same for a folder, if the system can do it."""
    with contextlib.suppress(OSError):
        flush(folder)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Gives the name of a new file beside `path`, which replaces it at the end."""
    target = os.path.realpath(path)
    with contextlib.suppress(FileNotFoundError):
        check_regular(target)  # before much is written: a pipe or a device isn't replaced
    folder, name = os.path.split(target)
    remove_leftovers(folder, _beginning(name).__eq__)
    try:
        new = NewFile(folder, name)
    except FileNotFoundError as error:
        error.add_note(
            f"there is no folder {os.path.dirname(os.fspath(path))!r} to write {name!r} to\n"
            "  Make it first: os.makedirs(folder, exist_ok=True)."
        )
        raise
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
