# SPDX-License-Identifier: Apache-2.0
"""The place for what is written, where nothing else may be."""

import errno
import os

from pydag.files.path import OTHER_FORMATS, check_local

from .paths import is_folder

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
