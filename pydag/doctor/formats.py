# SPDX-License-Identifier: Apache-2.0
"""Decides which format a file has: by its structure, not by its name or its first bytes.

The length of a safetensors header may look like the beginning of a zip file or of a pickle.
"""

import re

from .gguf_file import MAGIC, read_gguf
from .paths import open_file
from .raw import RawFile
from .safetensors_file import looks_like_safetensors, read_safetensors
from .stored import Container
from .torch_file import is_cut_short, prefix_of, read_torch
from .zip_records import entries, is_zip

READABLE = (
    "safetensors files, torch's zip files (.pt, .pth, .bin), GGUF files, and directories or "
    "indices of the first two"
)
_OLD = (
    "perhaps an old file of torch's: that isn't a format that can be read safely. Read it by "
    "torch.load, with weights_only=True unless you trust it, and write it with torch.save or "
    f"safetensors. Known are {READABLE}"
)


def read_file(path: str) -> Container:
    """The content of a file.

    Raises:
        ValueError: It is of no known format, or so damaged that nothing of it can be read.
        OSError: It can't be read.
    """
    file = open_file(path)
    try:
        return _read(file)
    except BaseException as error:
        file.close()
        if isinstance(error, ValueError):
            raise ValueError(f"{path!r}: {error}") from None
        raise


def _read(file: RawFile) -> Container:
    if looks_like_safetensors(file):
        try:
            return read_safetensors(file)
        except ValueError:
            if file.read(0, 4) != MAGIC and not is_zip(file):
                raise
    if is_zip(file):
        records = entries(file)
        if (prefix := prefix_of(records)) is not None:
            return read_torch(file, records, prefix)
        raise ValueError(f"it is a zip file, and none of torch's. Known are {READABLE}")
    if file.size > 4 and file.read(0, 4) == MAGIC:
        return read_gguf(file)
    if is_cut_short(file):
        found = Container("torch", file)
        found.error((), "the file is cut short: a zip file of torch's without its end")
        return found
    raise ValueError(_guess(file))


def _guess(file: RawFile) -> str:
    start = file.read(0, min(file.size, 512))
    if not start:
        return f"it is empty. Known are {READABLE}"
    if start.startswith(b"version https://git-lfs.github.com/spec/"):
        return "it is a Git LFS pointer, and the file itself isn't here: git lfs pull"
    if re.match(rb"\x80[\x02-\x05]", start):
        return f"it is a pickle, {_OLD}"
    if start[257:262] == b"ustar":
        return f"it is a tar archive, {_OLD}"
    return f"it is of no known format. Known are {READABLE}"
