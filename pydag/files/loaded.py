# SPDX-License-Identifier: Apache-2.0
"""The leaves that were read from a source, and the selection of some of them.

A file of another program has no structure: it is read as a flat dict of its names.
"""

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.ops.select import data, is_prefix, select, select_matching
from pydag.typing import Dag, Leaf, Where

from .source import ArraySource


class Loaded:
    """The leaves that were read, which of them are arrays of the file, and the structure.

    Args:
        wanted: The leaves of `like`; None if the structure comes from the source.
        warnings: What a caller should know: other configuration, what was left out. Some are empty.
    """

    def __init__(
        self,
        source: ArraySource,
        spec: PyDagSpec,
        leaves: list[Leaf],
        from_file: Collection[int],
        wanted: Sequence[Leaf] | None = None,
        warnings: Iterable[str] = (),
    ) -> None:
        self.source, self.spec, self.leaves, self.from_file = source, spec, leaves, from_file
        self.wanted = [None] * len(leaves) if wanted is None else wanted
        self._is_own = wanted is None
        self.warnings = list(filter(None, warnings))

    def tree(self) -> Dag:
        """The DAG."""
        try:
            return _core.unflatten(self.spec, self.leaves)
        except (TypeError, AttributeError) as error:
            ran = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if ran or not self._is_own:  # errors of the class's own function pass unchanged
                raise
            raise self.source.wrong(f"an object can't be built: {error}") from None


def chosen_by_path(only: Where | None, spec: PyDagSpec, names: Sequence[Any]) -> list[bool]:
    """Which leaves may be selected, as far as that doesn't depend on what they are."""
    if only is None or not _is_by_path(only, spec.namespace):
        return [True] * len(names)
    return select_matching(only, spec, names, spec.namespace)


def _is_by_path(only: Where, namespace: str) -> bool:
    """Whether a selection depends on neither a leaf nor its class."""
    if type(only) is list and not is_prefix(only, namespace):
        return all(_is_by_path(item, namespace) for item in only)
    return isinstance(only, str) or is_prefix(only, namespace)


def selected(loaded: Loaded, only: Where | None) -> Loaded:
    """The same, with None in the place of each leaf that isn't selected."""
    if only is None:
        return loaded
    chosen = select(only, loaded.spec, loaded.leaves, loaded.spec.namespace, asked=data)
    loaded.leaves = [
        leaf if keep else None for leaf, keep in zip(loaded.leaves, chosen, strict=True)
    ]
    loaded.from_file = {i for i in loaded.from_file if chosen[i]}
    return loaded


class _Unread:
    """A placeholder for an array that isn't read yet."""

    def __init__(self, name: str) -> None:
        self.name = name


def _unread(source: ArraySource) -> tuple[list[Any], PyDagSpec]:
    """A flat dict of the names in a source, as its leaves and structure."""
    arrays = {name: _Unread(name) for name in source.entries}
    return _core.flatten({name: arrays[kept] for name, kept in source.names().items()})


def read_flat(source: ArraySource, only: Where | None) -> Loaded:
    """Reads a file that another program wrote: a flat dict of its names."""
    patterns = only if type(only) is list else [only]
    if not all(isinstance(item, str) for item in patterns):
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
