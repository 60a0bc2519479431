# SPDX-License-Identifier: Apache-2.0
"""Reads files of other programs, which have no structure, as a flat dict of their names."""

import itertools
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.ops.select import select
from pydag.typing import Where

from .loaded import Loaded, chosen_by_path, selected
from .source import Source


class _Unread:
    """A placeholder for an array that isn't read yet."""

    def __init__(self, name: str) -> None:
        self.name = name


def _unread(source: Source) -> tuple[list[Any], PyDagSpec]:
    """A flat dict of the names in a source, as its leaves and structure."""
    arrays = {name: _Unread(name) for name in source.entries}
    return _core.flatten({name: arrays[kept] for name, kept in source.names().items()})


def read_flat(source: Source, only: Where | None) -> Loaded:
    """Reads a file that another program wrote: a flat dict of its names."""
    patterns = _patterns(only)
    if patterns is None:
        source.open_for(None)
    else:
        leaves, spec = _unread(source)
        for pattern in patterns:
            chosen = select(pattern, spec, leaves)
            found = [leaf.name for leaf in itertools.compress(leaves, chosen)]
            source.open_for(found or None)  # it may mean an alias, in any of the files
    leaves, spec = _unread(source)
    chosen = chosen_by_path(only, spec, leaves)
    arrays = source.arrays([leaf.name for leaf in itertools.compress(leaves, chosen)])
    read = [arrays.get(leaf.name) for leaf in leaves]
    are_arrays = set(itertools.compress(range(len(leaves)), chosen))
    return selected(Loaded(source, spec, read, are_arrays), only)


def _patterns(only: Where | None) -> list[str] | None:
    """The patterns of a selection that consists of patterns; else None."""
    listed = only if type(only) is list else [only]
    texts = [item for item in listed if isinstance(item, str)]
    return texts if len(texts) == len(listed) else None
