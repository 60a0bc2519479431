# SPDX-License-Identifier: Apache-2.0
"""Shows the content of a model's file: structure, sharing and sizes, without the arrays."""

import os

import pydag._core as _core
from pydag.arrays.bytes import NUMPY_NAMES
from pydag.doctor.model import Model as Found
from pydag.doctor.opening import open_model
from pydag.files.directory import open_source, read_again
from pydag.files.header import Entry
from pydag.files.source import ArraySource
from pydag.structure.listing import Listing
from pydag.structure.values import decode_leaf

from .leaves import Infos, LeafInfo, array_info, leaf_info
from .model import ViewModel
from .view import View


def _info(entry: Entry) -> LeafInfo:
    dtype = NUMPY_NAMES.get(entry["dtype"], entry["dtype"])
    start, end = entry["data_offsets"]
    return array_info(dtype, tuple(entry["shape"]), end - start)


class _Stub:
    """A placeholder for an array that isn't read."""

    def __init__(self, info: LeafInfo) -> None:
        self.info = info


def _flat(tree: dict[str, _Stub]) -> ViewModel:
    leaves, spec = _core.flatten(tree)
    return ViewModel(Listing.of(spec), Infos([stub.info for stub in leaves]))


def _of_another_format(found: Found) -> ViewModel:
    """A flat dict of all names; names of one array lead to one leaf."""
    tree = {}
    for names in found.groups():
        array = next(found.arrays[name] for name in names if name in found.arrays)
        dtype = NUMPY_NAMES.get(array.dtype, array.dtype.lower())
        stub = _Stub(array_info(dtype, array.shape, array.nbytes))
        tree.update(dict.fromkeys(names, stub))
    return _flat(tree)


def _model(file: ArraySource) -> ViewModel:
    file.open_for(None)
    structure = file.structure()
    if structure is None:
        stubs = {name: _Stub(_info(entry)) for name, entry in file.entries.items()}
        return _flat({name: stubs[kept] for name, kept in file.names().items()})
    document, described = structure
    infos = []
    for kind, content in zip(described.kinds, described.contents, strict=True):
        if kind == "value":
            infos.append(leaf_info(decode_leaf(content, None)))
        else:
            infos.append(_info(file.entries[content]))
    return ViewModel(document.listing(), Infos(infos))


def file_view(
    path: str | os.PathLike[str],
    depth: int | None = None,
    width: int | None = 100,
    limit: int | None = 200,
) -> View:
    """The content of a model's file, or of a directory of them.

    No class has to be registered, and no array is read. A file from another program is shown as a
    flat dict of its names, with the aliases in its metadata.

    Args:
        path: A safetensors file, one of torch's zip files, a GGUF file; a directory, or an index.

    Raises:
        ValueError: The file is damaged, or of no known format.
        OSError: The file can't be read.
    """
    found = open_model(os.fspath(path))
    found.close()
    if found.kind != "safetensors":
        if not found.is_known:
            raise ValueError(f"{found.path!r}: {found.findings[0].text}")
        return View(_of_another_format(found), depth, width, limit)
    return View(read_again(lambda: _model(open_source(path))), depth, width, limit)
