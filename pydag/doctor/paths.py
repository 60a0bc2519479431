# SPDX-License-Identifier: Apache-2.0
"""Files and folders by their paths: those of this machine, and addresses such as `hf://org/name`.

Addresses need fsspec, which is imported for them alone.
"""

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any, TypeVar

from pydag.files.header import LARGEST
from pydag.files.path import OTHER_FORMATS, check_local, is_address
from pydag.files.replacing import is_folder_locked, version_of

from .raw import RawFile

# The endings of files that are read, in the order in which they are taken.
ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf")
INDEX_ENDINGS = (".safetensors.index.json", ".bin.index.json")
# What models are called: that one is taken where there are several files of one ending.
STEMS = ("model", "diffusion_pytorch_model", "pytorch_model", "adapter_model")

T = TypeVar("T")


def _far() -> Any:
    """The module for addresses, which is imported where there is one."""
    from . import remote

    return remote


def is_folder(path: str) -> bool:
    """Whether a path is that of a folder."""
    return bool(_far().is_folder(path) if is_address(path) else os.path.isdir(path or "."))


def names_in(folder: str) -> list[str]:
    """The names of the files and folders in a folder, in order. OSError: it can't be read."""
    return sorted(_far().names_in(folder) if is_address(folder) else os.listdir(folder or "."))


def open_file(path: str) -> RawFile:
    """A file, opened. OSError: it can't be read."""
    return _far().RemoteFile(path) if is_address(path) else RawFile(path)


def pinned(path: str) -> tuple[str, str | None]:
    """A path whose files stay the same, with the commit of a repository on a hub, if it is one."""
    return _far().pinned(path) if path.startswith("hf://") else (path, None)


def small_file(path: str) -> bytes:
    """The whole content of a configuration, or of an index. ValueError: it is too large."""
    with closing(open_file(path)) as file:
        if file.size > LARGEST:
            raise ValueError(f"{path!r} has more than {LARGEST} bytes")
        return file.read(0, file.size)


def read_each(read: Callable[[str], T], paths: Iterable[str]) -> list[T]:
    """What `read` makes of each path; of addresses several at once."""
    known = list(paths)
    if known and is_address(known[0]):
        return list(_far().at_once(read, known))
    return list(map(read, known))


def state_of(path: str) -> tuple[object, bool]:
    """What changes when a file of this machine is replaced, and whether its folder is locked."""
    if is_address(path):
        return None, False
    return version_of(path), is_folder_locked(os.path.dirname(path) or ".")


_ENDING = ".safetensors"


def is_for_folder(path: str, out: str = "") -> bool:
    """Whether what is written of the model at `path` is a folder, or goes into one."""
    return os.path.isdir(out) or path.endswith(".index.json") or is_folder(path)


def check_free(out: str, as_folder: bool) -> None:
    """Checks that nothing is at a path, or an empty folder, and that its name suits.

    Raises:
        ValueError: Something else is there: a file, a device, a link, a folder with files; or the
            path is an address, or says another format.
        OSError: The folder above isn't there, or can't be read.
    """
    check_local(out)
    begin, ending = os.path.splitext(out)
    if os.path.lexists(out):
        if os.path.islink(out) or not os.path.isdir(out) or os.listdir(out):
            raise ValueError(f"{out!r} exists and is no empty directory: write to another place")
        if os.path.ismount(out) or os.path.samefile(out, os.curdir):
            raise ValueError(f"{out!r} can't be replaced: write to a new directory in it")
    elif not os.path.isdir(above := os.path.dirname(os.path.abspath(out))):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to write to", above)
    elif ending.lower() in OTHER_FORMATS or (as_folder and ending == _ENDING):
        what, name = ("directory", begin) if as_folder else ("safetensors file", begin + _ENDING)
        raise ValueError(f"{out!r}: a {what} is written, not {ending}: call it {name!r}")
