# SPDX-License-Identifier: Apache-2.0
"""The index of a directory of safetensors files: which array is in which file."""

import os
import re
from collections.abc import Collection
from typing import NamedTuple

from pydag.structure.document import parse

from .header import LARGEST
from .package import STRUCTURE
from .path import check_regular

INDEX = "model.safetensors.index.json"
_ENDING = ".safetensors.index.json"
# What `save` calls the files of a model.
SHARD = re.compile(r"model((-[0-9a-f]{8})?-\d{5}-of-\d{5})?\.safetensors")


class Index(NamedTuple):
    """The content of an index."""

    path: str
    folder: str
    files: dict[str, str]  # the file of each array: a name in the folder
    structure: str | None  # as pydag writes it; None: it wrote no structure

    def path_of(self, file: str) -> str:
        """The path of a file that it names."""
        return os.path.join(self.folder, file)


def is_index(path: str) -> bool:
    """Whether a path is that of an index, by its name."""
    return path.endswith(_ENDING)


def indices_among(names: Collection[str]) -> list[str]:
    """Those of the names in a folder that are indices: the usual one, else all that there are."""
    return [INDEX] if INDEX in names else sorted(filter(is_index, names))


def read_index(path: str) -> Index:
    """Reads an index, and checks it.

    Raises:
        ValueError: It is malformed, or it names a file outside of its folder.
        OSError: It can't be read.
    """
    check_regular(path)
    with open(path, "rb") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise ValueError(f"{path!r} is no index: it has more than {LARGEST} bytes")
    return parsed_index(path, text)


def parsed_index(path: str, text: bytes) -> Index:
    """The same of an index that was read."""
    try:
        whole = parse(text.decode())
    except ValueError as error:
        raise ValueError(f"{path!r} is no index of safetensors files: {error}") from None
    files = whole.get("weight_map") if type(whole) is dict else None
    if type(files) is not dict or set(map(type, files.values())) - {str}:
        raise ValueError(
            f"{path!r} is no index of safetensors files: `weight_map` must name a file for each "
            "array"
        )
    for file in set(files.values()):
        # It must name a file of the folder itself, on any system.
        is_plain = file not in ("", ".", "..") and not any(c in file for c in "/\\:\0")
        if not is_plain or file == os.path.basename(path):
            name = next(name for name in files if files[name] == file)
            raise ValueError(
                f"{path!r}: {name!r} is said to be in {file[:200]!r}, and only a file beside the "
                "index may be named"
            )
    found = whole.get("metadata")
    metadata = found if type(found) is dict else {}
    structure = metadata.get(STRUCTURE)
    if not files and structure is None and metadata.get("total_size") != 0:
        raise ValueError(f"{path!r} is no index of safetensors files: `weight_map` names no array")
    structure = structure if type(structure) is str else None
    return Index(path, os.path.dirname(path), files, structure)
