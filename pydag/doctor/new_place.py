# SPDX-License-Identifier: Apache-2.0
"""A new file or folder, which never takes the place of something that is there."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator

from pydag.files.index import is_index
from pydag.files.path import check_local
from pydag.files.replacing import flush_folder


def check_free(out: str) -> None:
    """Checks that nothing is at a path, or an empty folder.

    Raises:
        ValueError: Something else is there: a file, a device, a link, a folder with files; or the
            path is an address.
        OSError: The folder above isn't there, or can't be read.
    """
    check_local(out)
    if os.path.lexists(out):
        if os.path.islink(out) or not os.path.isdir(out) or os.listdir(out):
            raise ValueError(f"{out!r} exists and is no empty directory: write to another place")
    elif not os.path.isdir(above := os.path.dirname(os.path.abspath(out))):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to write to", above)


@contextlib.contextmanager
def creating(out: str, is_folder: bool) -> Iterator[str]:
    """Gives a new folder, whose files are put in place at the end, an index last.

    They become the files of the folder `out`; else the only one becomes `out`. Where another
    program has put something there meanwhile, that stays. If anything fails, all that was made here
    is removed, and nothing else.

    Raises:
        ValueError, OSError: See `check_free`.
        FileExistsError: Something came there meanwhile.
    """
    check_free(out)
    is_new = is_folder and not os.path.isdir(out)
    if is_new:
        os.mkdir(out)
    folder = out if is_folder else os.path.dirname(out) or "."
    try:
        with tempfile.TemporaryDirectory(
            prefix=".pydag-", dir=folder, ignore_cleanup_errors=True
        ) as new:
            yield new
            _put_all(new, out, is_folder)
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):  # another program has put something there
                os.rmdir(out)
        raise
    flush_folder(folder)


def _put_all(new: str, out: str, is_folder: bool) -> None:
    with contextlib.ExitStack() as undo:
        for name in sorted(os.listdir(new), key=is_index):
            target = os.path.join(out, name) if is_folder else out
            source = os.path.join(new, name)
            identity = os.stat(source)
            _put(source, target)
            undo.callback(_remove, target, identity)
        undo.pop_all()


def _remove(target: str, identity: os.stat_result) -> None:
    """Removes a file, if it is still the same."""
    with contextlib.suppress(OSError):
        if os.path.samestat(os.lstat(target), identity):
            os.unlink(target)


def _put(source: str, target: str) -> None:
    """Gives a file a name that nothing has."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
            raise OSError(error.errno, os.strerror(error.errno), target) from None
        # A file system without hard links.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(source, target)
