# SPDX-License-Identifier: Apache-2.0
"""What a safetensors file holds, as a view: structure, sharing and sizes, without the arrays."""

import os

import pydag._core as _core
from pydag.files.arrays import NUMPY_NAMES
from pydag.files.directory import opened
from pydag.files.header import Entry
from pydag.files.source import Source
from pydag.structure.listing import Listing
from pydag.structure.values import decode_leaf

from .leaves import Infos, LeafInfo, array_info, leaf_info, short_dtype
from .model import Model
from .view import View


def _info(entry: Entry) -> LeafInfo:
    dtype = short_dtype(NUMPY_NAMES.get(entry["dtype"], entry["dtype"]))
    start, end = entry["data_offsets"]
    return array_info(dtype, tuple(entry["shape"]), end - start)


class _Stub:
    """Stands for an array that isn't read."""

    def __init__(self, entry: Entry) -> None:
        self.info = _info(entry)


def _model(file: Source) -> Model:
    structure = file.structure()
    if structure is None:
        stubs = {name: _Stub(entry) for name, entry in file.entries.items()}
        tree = {name: stubs[kept] for name, kept in file.names().items()}
        leaves, spec = _core.flatten(tree)
        return Model(Listing.of(spec), Infos([stub.info for stub in leaves]))
    document, described = structure
    infos = []
    for kind, content in zip(described.kinds, described.contents, strict=True):
        if kind == "value":
            infos.append(leaf_info(decode_leaf(content, None)))
        else:
            infos.append(_info(file.entries[content]))
    return Model(document.listing(), Infos(infos))


def file_view(
    path: str | os.PathLike[str],
    depth: int | None = None,
    width: int | None = 100,
    limit: int | None = 200,
) -> View:
    """What a safetensors file, or a directory of them, holds.

    No class has to be registered, and no array is read.
    A file that somebody else wrote is shown as a flat dict of its names, with the aliases of its
    table.

    Args:
        path: A safetensors file, a directory of them, or its index.
        depth: How many levels below the root are shown; None: all.
        width: The longest line, in characters; None: any length.
        limit: The most lines, and rows of the table; None: all of them.

    Raises:
        ValueError: The file is damaged.
        OSError: The file can't be read.
    """
    file = opened(path)
    file.open_for(None)
    return View(_model(file), depth, width, limit)
