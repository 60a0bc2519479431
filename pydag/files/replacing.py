# SPDX-License-Identifier: Apache-2.0
"""New files that take the place of old ones at once, so that a crash leaves one or the other."""

import contextlib
import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any

from .path import check_regular

fcntl: Any
try:
    import fcntl
except ImportError:  # pragma: no cover: Windows
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
    """A file, or a folder of files, that isn't in its place yet.

    It is locked while its writer lives, where the system has such locks. So the next writer knows
    what a writer that was killed has left. It is in a folder, and called unlike `name`. There is
    nothing before `make`, so that an interrupt leaves nothing either.

    Attributes:
        handle: The file, open for writing, or the folder; None where the system opens no folders.
    """

    def __init__(self, folder: str, name: str, is_folder: bool = False) -> None:
        self._prefix = os.path.join(folder, f".{_beginning(name)}.pydag-")
        self._is_folder = is_folder
        self.handle: int | None = None
        self.path = ""

    def make(self) -> None:
        """Makes it, empty."""
        is_folder = self._is_folder
        while self.handle is None:
            self.path = self._prefix + os.urandom(8).hex()
            if is_folder:
                os.mkdir(self.path)
                if fcntl is None:  # Windows opens no folder
                    return
            # So that the umask decides on the mode.
            flags = os.O_RDONLY if is_folder else os.O_CREAT | os.O_EXCL | os.O_WRONLY
            self.handle = os.open(self.path, flags, 0o666)
            if fcntl is not None and _is_taken(self.handle, self.path):  # by who removes leftovers
                self.close()

    @property
    def to_write(self) -> int | str:
        """What its content is written to: the handle, which stays open; or the path."""
        return self.path if self.handle is None else self.handle

    def __fspath__(self) -> str:
        return self.path

    def replace(self, target: str, old: str | None = None) -> None:
        """Moves it to `target`.

        It takes the mode of the file that is there, or of `old`, which it replaces under another
        name.
        """
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(target if old is None else old).st_mode
            if self.handle is None or os.fstat(self.handle).st_mode != mode:
                os.chmod(self.path, stat.S_IMODE(mode))
        if self._is_folder:
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(target)  # it must be empty; Windows replaces no folder
        if fcntl is None:  # Windows moves no file that is open
            self.close()
        os.replace(self.path, target)
        self.path = ""
        self.close()

    def remove(self) -> None:
        """Deletes it, if it is still there."""
        if fcntl is None:
            self.close()
        if self.path:
            with contextlib.suppress(OSError):
                (shutil.rmtree if self._is_folder else os.unlink)(self.path)
        self.close()

    def close(self) -> None:
        """Ends the lock."""
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


def put(source: str, target: str) -> None:
    """Gives a file a further name, which nothing has.

    Raises:
        FileExistsError: Something has that name.
    """
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
            raise OSError(error.errno, os.strerror(error.errno), target) from None
        # A file system without hard links.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(source, target)


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
        os.stat(path)
    except FileNotFoundError:  # it was removed before it was locked
        return True
    return False


def remove_leftovers(
    folder: str, is_ours: Callable[[str], bool], are_folders: bool = False
) -> None:
    """Deletes the new files of writers that were killed.

    Files of living writers, and files with other names, are kept. If the system has no locks, every
    file is kept.

    Args:
        is_ours: Whether files are written under a name: the beginning of it.
        are_folders: Whether folders are written under it instead.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(folder) if fcntl is not None else ():
            found = _NEW.fullmatch(name) if ".pydag-" in name else None
            if found is not None and is_ours(found[1]):
                _remove_if_unlocked(os.path.join(folder, name), are_folders)


def _remove_if_unlocked(path: str, is_folder: bool) -> None:
    with contextlib.suppress(OSError):
        is_right = stat.S_ISDIR if is_folder else stat.S_ISREG
        if not is_right(os.lstat(path).st_mode):
            return  # of somebody else; to open a pipe could wait for ever
        access = os.O_RDONLY if is_folder else os.O_WRONLY
        handle = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (shutil.rmtree if is_folder else os.unlink)(path)
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


def flush(path: str, access: int = os.O_WRONLY) -> None:
    """Waits until a file is on the disk; Windows wants a handle that may write."""
    handle = os.open(path, access)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_folder(folder: str) -> None:
    """The same for a folder, if the system can do it."""
    with contextlib.suppress(OSError):
        flush(folder, os.O_RDONLY)


def _target(path: str | os.PathLike[str], is_folder: bool) -> str:
    """The path of the file that is replaced: not a link to it, and independent of the cwd."""
    with contextlib.suppress(OSError):
        target = os.fspath(path) if os.path.isabs(path) else os.path.join(os.getcwd(), path)
        if stat.S_ISREG(os.lstat(target).st_mode):  # mostly, and quicker than `realpath`
            return target
    target = os.path.realpath(path)
    with contextlib.suppress(FileNotFoundError):
        if not is_folder:
            check_regular(target)  # before much is written: a pipe or a device isn't replaced
    return target


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], is_new: bool = False, is_folder: bool = False
) -> Iterator[NewFile]:
    """Gives a new file beside `path`, which replaces it at the end. What writes to it flushes it.

    Args:
        is_new: Nothing may be there: it replaces nothing.
        is_folder: It is a folder, and replaces nothing but an empty folder.
    """
    target = _target(path, is_folder)
    folder, name = os.path.split(target)
    remove_leftovers(folder, _beginning(name).__eq__, is_folder)
    new = NewFile(folder, name, is_folder)
    try:
        try:
            new.make()
        except FileNotFoundError as error:
            error.add_note(
                f"there is no folder {os.path.dirname(os.fspath(path))!r} to write {name!r} to\n"
                "  Make it first: os.makedirs(folder, exist_ok=True)."
            )
            raise
        yield new
        if is_folder:
            flush_folder(new.path)
        if is_new and not is_folder:
            put(new.path, os.fspath(path))
        else:
            new.replace(target)
    finally:
        new.remove()
    flush_folder(folder)


def progress_bar(total: int, shown: bool) -> Any:
    """A bar that counts bytes, if `shown`."""
    if not shown:
        return contextlib.nullcontext()
    import tqdm

    return tqdm.tqdm(total=total, unit="B", unit_scale=True)
