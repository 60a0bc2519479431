# SPDX-License-Identifier: Apache-2.0
"""Writing models, and whole training runs, to safetensors files."""

import functools
import itertools
import os
from typing import Any

import jax
import numpy as np

import pydag._core as _core
from pydag.arrays.bytes import host_copies
from pydag.arrays.kinds import is_array, of_class
from pydag.files.path import check_path
from pydag.files.save import write
from pydag.jaxinterop.content.options import path_text, path_texts
from pydag.jaxinterop.content.refused import check_value
from pydag.jaxinterop.content.static import static_positions
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.public.compiled import MISSING
from pydag.public.tracebacks import short_tracebacks
from pydag.structure.text import short_repr
from pydag.typing import Dag, Identity, Leaf

from .kinds import Unwrapped, content, is_plain, kind_of


@short_tracebacks
@with_wrapper_options
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
    """As `pydag.files.save`, of a model or of a whole training run: each array once across all.

    Beside arrays, numbers and text there may be the states of optimizers, `Dag`s, typed random keys
    and refs. `load(path, like)` gives all of it back, and what goes on from there is bit for bit
    what would have gone on.

    In a program of several processes, arrays that all of them hold whole are written by process 0;
    the other processes write nothing, and wait for nobody. A tree in which no array spans
    processes is written by whoever calls this.

    Args:
        path: Usually ends in `.safetensors`.
        tree: The DAG, such as a dict of the model, the state of its optimizer, a key and a step.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't. An
            array is then written for each of its places.
        structure: False leaves out the structure and configuration: text, functions, the numbers of
            modules. `load(path, like)` takes them from `like`.
        shard_size: The bytes of one file, as a number or as text such as "5GB"; `path` is then a
            directory (see `pydag.files.save`).
        progress: Shows a bar, with tqdm, while the arrays are brought to the host.

    Raises:
        TypeError: A leaf can't be written, and the message has its path: a function where the
            structure is written, a number that is data where it isn't, an unregistered object that
            holds arrays, an array of which this process has a part only.
        ValueError: Two of NumPy's arrays share a part of their memory; the structure is too large
            for the format; the path is an address, such as `s3://...`.
        OSError: What the system says.
        ImportError: safetensors isn't installed: `pip install "pydag-tree[files]"`.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "run.safetensors")
    >>> save(path, {"w": jnp.ones(2), "key": jax.random.key(7), "step": 3})
    >>> run = pydag.jaxinterop.load(path, {"w": jnp.zeros(2), "key": jax.random.key(0), "step": 0})
    >>> run["w"].tolist(), jax.random.key_data(run["key"]).tolist(), run["step"]
    ([1.0, 1.0], [0, 7], 3)
    """
    check_path(path, tree, "save(path, tree)")
    holders = Unwrapped(tree, namespace, identity)
    leaves, spec = _core.flatten_at(holders.tree, "tree", namespace=namespace, identity=identity)
    are_traced = of_class(leaves, lambda cls: issubclass(cls, jax.core.Tracer))
    for i in itertools.compress(range(len(leaves)), are_traced):
        raise TypeError(
            f"{path_texts(spec, 'tree')[i]} is traced, and has no numbers: "
            f"{short_repr(leaves[i])}\n  Save what the transformed function returns, outside of it."
        )
    if _spans_processes(leaves, spec) and jax.process_index() != 0:
        return
    _check_rest(leaves, spec, structure)
    others = [i for i, leaf in enumerate(leaves) if not is_plain(leaf)]
    kinds = {i: kind for i in others if (kind := kind_of(leaves[i])) is not None}
    contents = leaves.copy()
    for i in others:
        contents[i] = content(leaves[i])
    write(path, contents, spec, identity, structure, shard_size, progress, kinds)


def _spans_processes(leaves: list[Leaf], spec: _core.PyDagSpec) -> bool:
    """Whether other processes hold some of the arrays, too; TypeError if this one lacks a part."""
    arrays = [(i, leaf) for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
    spanning = [(i, x) for i, x in arrays if jax.process_count() > 1 and not x.is_fully_addressable]
    for i, leaf in spanning:
        if not leaf.is_fully_replicated:
            raise TypeError(
                f"{path_texts(spec, 'tree')[i]} is divided over several processes, and this one "
                "has a part of it only\n  Save it with orbax, which takes a pj.Dag: each process "
                "writes its part. Or replicate it first, and process 0 writes it."
            )
    return bool(spanning)


def _check_rest(leaves: list[Leaf], spec: _core.PyDagSpec, structure: bool) -> None:
    """Checks that static leaves are values, and that leaves which aren't written are static."""
    static = frozenset(static_positions(leaves, spec, "tree"))
    for i in sorted(static):
        check_value(leaves[i], functools.partial(path_text, spec, "tree", i))
    for i, leaf in enumerate(() if structure else leaves):
        if i not in static and not is_array(leaf):
            raise TypeError(
                f"{path_texts(spec, 'tree')[i]} is data, the number {short_repr(leaf)}, and "
                "structure=False would leave it out\n  Make it an array, or save the structure, "
                "too. Only configuration is left out: text, functions, the numbers of modules."
            )


def host_copy(array: jax.Array) -> Any:
    """The numbers of an array; the array keeps no copy of them.

    JAX keeps what `numpy.asarray` copied with the array that was asked. So another array is asked,
    over the same memory of the devices.
    """
    parts = [shard.data for shard in array.addressable_shards]
    if len(parts) == 1 and parts[0].devices() == {jax.local_devices(backend="cpu")[0]}:
        return np.asarray(array)  # the host's own memory: nothing is copied
    over = jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)
    return np.asarray(over)


host_copies[jax_private.ArrayImpl] = host_copy
