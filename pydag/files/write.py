# SPDX-License-Identifier: Apache-2.0
"""Writes a DAG to one file, or to several."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pydag._core import PyDagSpec
from pydag.typing import Identity, Leaf

from .package import STRUCTURE
from .path import check_local
from .plan import Plan
from .replacing import progress_bar, replacing
from .shards import number_of_bytes, write_shards


def write(
    path: str | os.PathLike[str],
    leaves: Sequence[Leaf],
    spec: PyDagSpec,
    identity: Identity,
    structure: bool,
    shard_size: int | str | None,
    progress: bool,
    kinds: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Writes a DAG that was flattened already, as `save` does.

    Args:
        kinds: What kind of leaf an array stands for, by the number of the leaf.
    """
    check_local(path)
    largest = None if shard_size is None else number_of_bytes(shard_size)
    plan = Plan(leaves, spec, identity, structure, kinds)
    with progress_bar(plan.size() if progress else 0, progress) as bar:
        if largest is not None:
            write_shards(path, plan, largest, bar)
            return
        metadata = plan.aliases
        if plan.structure is not None:
            metadata = metadata | {STRUCTURE: plan.structure}
        with replacing(path) as temporary:
            plan.write(temporary, plan.names(), metadata, path, bar)
