# SPDX-License-Identifier: Apache-2.0
"""safetensors files with JAX's arrays."""

import os
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from pydag.files.load import Loaded, read
from pydag.files.save import progress_bar
from pydag.jaxinterop.prefixes.treatments import Question, shortened, treatments
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Dag as AnyDag
from pydag.typing import Where


def _describe(sharding: Any) -> str:
    return "left to JAX" if sharding is None else f"given {shortened(str(sharding), 200)}"


_QUESTION = Question(
    "load shardings", _describe, "Give both places one sharding: one array has one."
)


def load(
    path: str | os.PathLike[str],
    like: AnyDag = None,
    only: Where | None = None,
    strict: bool = True,
    *,
    shardings: Any = None,
    namespace: str | None = None,
    classes: type | Iterable[type] = (),
    progress: bool = False,
) -> AnyDag:
    """As `pydag.files.load`, with JAX's arrays, placed.

    Of an array that is sharded each device reads its part of the file, and no more.

    Args:
        path: A safetensors file.
        like: A DAG with arrays, or with `jax.ShapeDtypeStruct`s, in the places of arrays.
        only: Which leaves are read (see `pydag.dag_mask`); elsewhere stands None, or the leaf of
            `like`.
        strict: False: names that are missing keep the leaf of `like`, surplus ones are passed over.
        shardings: A sharding or device, or a tree prefix of them. None: those of the arrays in
            `like`, elsewhere JAX's default device.
        namespace: In which classes are looked up; None: the one that the file names.
        classes: A class, or several, that the file may use although they have code of their own:
            those of JAX's registry, equinox modules (see `pydag.files.load`).
        progress: Shows a bar, with tqdm.

    Raises:
        ValueError: As `pydag.files.load`; or an array has 64 bits, and JAX only 32.
        SharingError: Two paths to one array are given two shardings.
    """
    loaded = read(path, like, only, strict, namespace, classes)
    given = _shardings(loaded, shardings)
    paths = loaded.spec.accessors()
    total = sum(loaded.leaves[i].nbytes for i in loaded.from_file)
    with progress_bar(total, progress) as bar:
        for i in sorted(loaded.from_file):
            array = loaded.leaves[i]
            loaded.leaves[i] = _placed(array, given[i], paths[i].codify("tree"))
            if bar is not None:
                bar.update(array.nbytes)
    return loaded.tree()


def _shardings(loaded: Loaded, shardings: Any) -> list[Any]:
    if shardings is None:
        return [getattr(leaf, "sharding", None) for leaf in loaded.wanted]
    options = Options(loaded.spec.namespace)
    return treatments({"tree": loaded.tree()}, {"tree": shardings}, _QUESTION, options)


def _placed(array: Any, sharding: Any, where: str) -> jax.Array:
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    if dtype != array.dtype:
        raise ValueError(
            f"{where} is {array.dtype}, which JAX would cut down to {dtype}\n"
            "  Set jax_enable_x64, or load NumPy's arrays with pydag.files.load."
        )
    if isinstance(sharding, jax.sharding.Sharding):
        # A copy: what is mapped may change with the file.
        parts = lambda index: np.array(array[index])  # noqa: E731 (a name for what JAX calls)
        placed: jax.Array = jax.make_array_from_callback(array.shape, sharding, parts)
    else:
        placed = jax.device_put(np.array(array), sharding)
    return placed
