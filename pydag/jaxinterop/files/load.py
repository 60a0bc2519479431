# SPDX-License-Identifier: Apache-2.0
"""safetensors files with JAX's arrays."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

import pydag._core as _core
from pydag.files.load import read
from pydag.files.loaded import Loaded
from pydag.files.names import leaf_names
from pydag.files.path import check_path
from pydag.files.replacing import progress_bar
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import path_texts
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.source import warn_at_call
from pydag.jaxinterop.treatments.treatments import Question, treatments
from pydag.jaxinterop.typed import T
from pydag.public.tracebacks import short_tracebacks
from pydag.structure.listing import Listing, shorten
from pydag.typing import Leaf, Where

from .opened import WEAK, Opened, is_key, kind_of, outline, restored

_SMALL = 1 << 16  # bytes
_AT_ONCE = 256


_QUESTION = Question(
    "load shardings",
    lambda given: "left to JAX" if given is None else f"given {shorten(str(given), 200)}",
    advice="Give both places one sharding: one array has one.",
)


@short_tracebacks
def load(
    path: str | os.PathLike[str],
    like: T | None = None,
    only: Where | None = None,
    strict: bool = True,
    *,
    shardings: Any = None,
    namespace: str | None = None,
    classes: type | Iterable[type] = (),
    functions: Callable[..., Any] | Iterable[Callable[..., Any]] = (),
    progress: bool = False,
) -> T:
    """As `pydag.files.load`, with JAX's arrays, placed.

    What `pydag.jaxinterop.save` wrote comes back: random keys as keys, refs as fresh refs; and with
    `like` the states of optimizers. Of an array that is sharded each device reads its part of the
    file, and no more.

    Args:
        path: A safetensors file, a directory of them, or its index.
        like: A DAG with arrays, or with `jax.ShapeDtypeStruct`s, in the places of arrays, such as a
            model and the state that its optimizer begins with.
        only: Which leaves are read (see `pydag.dag_mask`); elsewhere stands None, or the leaf of
            `like`.
        strict: False: names that are missing keep the leaf of `like`, surplus ones are passed over,
            and a warning says which. Where none of the arrays fits, it is an error all the same.
        shardings: A sharding or device, or a tree prefix of them. None: those of the arrays in
            `like`, elsewhere JAX's default device.
        namespace: In which classes are looked up; None: the one that the file names.
        classes: A class, or several, that the file may use although they have code of their own:
            those of JAX's registry, equinox modules (see `pydag.files.load`).
        functions: A function, or several, that the file may name in derived leaves, beside the
            array functions of JAX and NumPy.
        progress: Shows a bar, with tqdm.

    Raises:
        ValueError: As `pydag.files.load`; or an array has 64 bits, and JAX only 32; or a random key
            is one of another generator.
        SharingError: Two paths to one array are given two shardings.
    """
    check_path(path, like, "load(path, like)")
    opened = Opened(like, namespace or "")
    wanted, spec = _core.flatten_at(opened.tree, "tree", namespace=namespace or "")
    outlines = list(map(outline, wanted))
    outlined = None if like is None else (outlines, spec)
    loaded = read(path, outlined, only, strict, namespace, classes, functions)
    if like is not None:
        loaded.wanted = wanted
    for text in loaded.warnings:
        warn_at_call(text, UserWarning)
    given = _shardings(loaded, shardings)
    kinds = _kinds(loaded, wanted if like is not None else None)
    total = sum(loaded.leaves[i].nbytes for i in loaded.from_file)
    # A number in `like` has become one.
    arrays = [i for i in sorted(loaded.from_file) if hasattr(loaded.leaves[i], "shape")]
    for i in arrays:
        dtype = loaded.leaves[i].dtype
        narrow = jax.dtypes.canonicalize_dtype(dtype)
        if narrow != dtype:
            raise ValueError(
                f"{path_texts(loaded.spec, 'tree')[i]} is {dtype}, which JAX would cut down to "
                f"{narrow}\n  Set jax_enable_x64, or load NumPy's arrays with pydag.files.load."
            )
    small = _small_ones(loaded.leaves, [i for i in arrays if given[i] is None])
    with progress_bar(total, progress) as bar:
        for i in sorted(loaded.from_file):
            array = loaded.leaves[i]
            if hasattr(array, "shape"):
                placed = small[i] if i in small else _on_devices(array, given[i])
                loaded.leaves[i] = _alike(placed, loaded.wanted[i], kinds.get(i))
            if bar is not None:
                bar.update(array.nbytes)
    for i, leaf in enumerate(wanted):
        if loaded.leaves[i] is outlines[i]:
            loaded.leaves[i] = leaf  # nothing was found for it
    tree: T = opened.close(loaded.tree())
    return tree


def _kinds(loaded: Loaded, wanted: Sequence[Any] | None) -> dict[int, str]:
    """What each leaf is to be that is more than an array of its type, by its number."""
    file = loaded.source
    noted = file.kinds()
    names = leaf_names(Listing.of(loaded.spec))[1]
    if wanted is None:
        return {i: noted[name] for i, name in enumerate(names) if name in noted}
    kinds = {i: kind for i, kind in enumerate(map(kind_of, wanted)) if kind is not None}
    for i in loaded.from_file:
        kind, other = kinds.get(i), noted.get(names[i])
        if other == WEAK and kind is None:
            kinds[i] = WEAK
        elif kind == WEAK and other is None and file.text is not None and names[i] in file.entries:
            del kinds[i]  # it has become strongly typed since
        elif kind is not None and other is not None and _generator(kind) != _generator(other):
            raise ValueError(
                f"{file.path!r}: {names[i]!r} doesn't fit `like`\n"
                f"  {file.path!r}: {other}\n  like: {kind}"
            )
    return kinds


def _generator(kind: str) -> str:
    return kind.rpartition("key ")[2] if "key " in kind else ""


def _alike(array: jax.Array, wanted: Any, kind: str | None) -> Any:
    """The leaf that was written as an array."""
    leaf = array if kind is None else restored(kind, array)
    is_committed = is_key(wanted) and getattr(wanted, "committed", False)
    return jax.device_put(leaf, wanted.sharding) if is_committed else leaf


def _shardings(loaded: Loaded, shardings: Any) -> list[Any]:
    if shardings is None:
        return list(map(_sharding_of, loaded.wanted))
    options = Options(loaded.spec.namespace)
    static = tuple(i for i, leaf in enumerate(loaded.leaves) if not hasattr(leaf, "shape"))
    content = Content(loaded.spec, static, tuple(loaded.leaves[i] for i in static))
    prefix = Opened(shardings, options.namespace).tree
    found = treatments(_QUESTION, prefix, loaded.tree(), content, options, "tree")
    return content.all_leaves(found)


def _sharding_of(leaf: Any) -> Any:
    """The sharding of an array that was put somewhere on purpose, or of an outline."""
    if is_key(leaf) or jax_private.is_ref(leaf) or not getattr(leaf, "committed", True):
        return None
    return getattr(leaf, "sharding", None)


def _small_ones(leaves: Sequence[Leaf], numbers: Sequence[int]) -> dict[int, jax.Array]:
    """Those of these arrays that are small, on the default device.

    Many are handed to JAX at once: a call for each takes four times as long.
    """
    small = [i for i in numbers if leaves[i].nbytes <= _SMALL]
    found: dict[int, jax.Array] = {}
    for start in range(0, len(small), _AT_ONCE):
        some = small[start : start + _AT_ONCE]
        placed = jax.device_put([np.array(leaves[i]) for i in some])
        found.update(zip(some, placed, strict=True))
    return found


def _on_devices(array: Any, sharding: Any) -> jax.Array:
    # Copies: mapped memory may change with the file.
    if isinstance(sharding, jax.sharding.Sharding):
        return jax.make_array_from_callback(array.shape, sharding, lambda i: np.array(array[i]))
    placed: jax.Array = jax.device_put(np.array(array), sharding)
    return placed
