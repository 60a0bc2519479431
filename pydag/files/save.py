# SPDX-License-Identifier: Apache-2.0
"""Writing a DAG to a safetensors file."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.public.compiled import MISSING
from pydag.public.tracebacks import short_tracebacks
from pydag.typing import Dag, Identity, Leaf

from .header import STRUCTURE as STRUCTURE
from .header import package
from .path import check_local, check_path
from .plan import Plan
from .replacing import progress_bar, replacing
from .shards import number_of_bytes, write_shards


@short_tracebacks
def save(
    path: str | os.PathLike[str],
    tree: Dag = MISSING,
    *,
    namespace: str = "",
    identity: Identity = "all",
    structure: bool = True,
    shard_size: int | str | None = None,
    progress: bool = False,
) -> None:
    """Write a DAG to a safetensors file, or a directory of them, each array once.

    Any reader of the format opens the file. An array is named by the path of its anchor, as in a
    state dict: `layers.0.weight`. The file's metadata hold its other names, and the structure as
    JSON, with the leaves that are numbers, text and other values. Arrays of NumPy and tensors of
    torch that are one memory (one address, type, shape and strides) are one array.

    The new file is written beside the old one and then replaces it, so a crash leaves the old one
    intact. A new file gets its mode from the umask, a replaced one keeps the old mode. Where `path`
    is a symbolic link, the file that it points to is replaced.

    Args:
        path: By convention it ends in `.safetensors`.
        tree: The DAG.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.
            An array is then written for each of its places, and memory isn't looked at.
        structure: False leaves out the structure and every leaf that isn't an array. That is enough
            for `load(path, like=)`, which takes them from `like`.
        shard_size: The bytes of one file, as a number or as text such as "5GB" (KB, MB, GB and TB
            are powers of 1000; KiB ... of 1024). `path` is then a directory, in which stand as many
            files as it takes and `model.safetensors.index.json`, as Hugging Face writes them. A
            larger array has a file of its own. The index is replaced last; then the files of the
            model that stood there before are deleted.
        progress: Shows a progress bar (tqdm) while the arrays are copied to the host.

    Raises:
        TypeError: A leaf is neither an array nor a value, or a key, aux_data or the value of a meta
            field can't be written; the path is named. So is a tensor on `meta`, and a module of
            torch: save its `state_dict()`.
        ValueError: Two arrays share a part of their memory, and aren't one; both are named. Two
            registered classes have one name, or the structure is too large for the format. Or the
            path is an address, such as `s3://...`.
        OSError: The file can't be written.
        ImportError: safetensors isn't installed: `pip install "pydag-tree[files]"`.

    >>> import numpy as np, os, tempfile
    >>> w = np.ones((2, 2))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save(path, {"encoder": w, "decoder": w})
    >>> model = pydag.files.load(path)
    >>> model["encoder"] is model["decoder"]
    True
    """
    check_path(path, tree, "save(path, tree)")
    package()
    leaves, spec = _core.flatten_at(tree, "tree", namespace=namespace, identity=identity)
    write(path, leaves, spec, identity, structure, shard_size, progress)


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
    """Writes a DAG that was flattened already, as `save` does."""
    check_local(path)
    largest = None if shard_size is None else number_of_bytes(shard_size)
    plan = Plan(leaves, spec, identity, structure, kinds)
    with progress_bar(sum(plan.sizes.values()) if progress else 0, progress) as bar:
        if largest is not None:
            write_shards(path, plan, largest, bar)
            return
        metadata = plan.aliases
        if plan.structure is not None:
            metadata = metadata | {STRUCTURE: plan.structure}
        with replacing(path) as new:
            plan.write(new.to_write, plan.numbers, metadata, path, bar)
