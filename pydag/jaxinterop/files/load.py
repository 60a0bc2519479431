# SPDX-License-Identifier: Apache-2.0
"""Reading files and checkpoints into DAGs: `load`, `from_checkpoint`."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import jax
import numpy as np

import pydag._core as _core
from pydag.arrays.kinds import is_array
from pydag.files.fill import Filler
from pydag.files.load import read
from pydag.files.loaded import Loaded
from pydag.files.names import leaf_names
from pydag.files.path import check_path
from pydag.files.replacing import progress_bar
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.options import Options, path_texts
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.naming import warn_at_call
from pydag.jaxinterop.treatments.treatments import Question, treatments
from pydag.jaxinterop.typed import T
from pydag.public.tracebacks import short_tracebacks
from pydag.structure.listing import Listing, shorten
from pydag.typing import Dag, Leaf, Where

from .kinds import WEAK, Unwrapped, is_key, kind_of, outline, restored

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
    holders = Unwrapped(like, namespace or "")
    wanted, spec = _core.flatten_at(holders.tree, "tree", namespace=namespace or "")
    outlines = list(map(outline, wanted))
    outlined = None if like is None else (outlines, spec)
    loaded = read(path, outlined, only, strict, namespace, classes, functions)
    if like is not None:
        loaded.wanted = wanted
    for text in loaded.warnings:
        warn_at_call(text, UserWarning)
    given, kinds = _shardings(loaded, shardings), _kinds(loaded, None if like is None else wanted)
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
                leaf = small[i] if i in small else _on_devices(array, given[i])
                leaf = restored(kinds[i], leaf) if i in kinds else leaf
                was: Any = loaded.wanted[i]
                is_committed = is_key(was) and getattr(was, "committed", False)
                loaded.leaves[i] = jax.device_put(leaf, was.sharding) if is_committed else leaf
            if bar is not None:
                bar.update(array.nbytes)
    for i, leaf in enumerate(wanted):
        if loaded.leaves[i] is outlines[i]:
            loaded.leaves[i] = leaf  # nothing was found for it
    return cast(T, holders.wrap(loaded.tree()))


def _kinds(loaded: Loaded, wanted: Sequence[Any] | None) -> dict[int, str]:
    """What each leaf is to be that is more than an array of its type, by its number."""
    file, names = loaded.source, leaf_names(Listing.of(loaded.spec))[1]
    noted = file.kinds()
    if wanted is None:
        return {i: noted[name] for i, name in enumerate(names) if name in noted}
    kinds = {i: kind for i, kind in enumerate(map(kind_of, wanted)) if kind is not None}
    for i in loaded.from_file:
        kind, other = kinds.get(i), noted.get(names[i])
        if other == WEAK and kind is None:
            kinds[i] = WEAK
        elif kind == WEAK and other is None and file.text is not None and names[i] in file.entries:
            del kinds[i]  # it has become strongly typed since
        elif kind and other and kind.partition("key ")[2] != other.partition("key ")[2]:
            raise ValueError(
                f"{file.path!r}: {names[i]!r} doesn't fit `like`\n"
                f"  {file.path!r}: {other}\n  like: {kind}"
            )
    return kinds


def _shardings(loaded: Loaded, shardings: Any) -> list[Any]:
    if shardings is None:  # those of arrays that were put somewhere on purpose, and of outlines
        return [
            getattr(leaf, "sharding", None)
            if getattr(leaf, "committed", True) and not (is_key(leaf) or jax_private.is_ref(leaf))
            else None
            for leaf in loaded.wanted
        ]
    options = Options(loaded.spec.namespace)
    static = tuple(i for i, leaf in enumerate(loaded.leaves) if not hasattr(leaf, "shape"))
    content = Content(loaded.spec, static, tuple(loaded.leaves[i] for i in static))
    prefix = Unwrapped(shardings, options.namespace).tree
    found = treatments(_QUESTION, prefix, loaded.tree(), content, options, "tree")
    return content.all_leaves(found)


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


def _on_devices(array: Any, sharding: Any) -> Any:
    # Copies: mapped memory may change with the file.
    if isinstance(sharding, jax.sharding.Sharding):
        return jax.make_array_from_callback(array.shape, sharding, lambda i: np.array(array[i]))
    return jax.device_put(np.array(array), sharding)


_NUMBERS = (bool, int, float, complex)


def from_checkpoint(like: Dag, restored: Any, strict: bool = True, *, namespace: str = "") -> Dag:
    """`like` with the arrays of a checkpoint that somebody else wrote.

    Most writers give nested dicts and lists, in which an array that is shared here stands at each
    of its places, or at one of them. Any of its paths fits; where there are several, they must be
    equal. Attributes are found as keys, namedtuples as lists; a key may be a whole path, as in what
    orbax restores from a `Dag` without a target. A Variable of NNX is found with and without
    `value` at the end of its path, as in the pure dicts of its older and newer releases.

    Args:
        like: A DAG with arrays, or with `jax.ShapeDtypeStruct`s, in the places of arrays: a model,
            or a whole run with the states of optimizers.
        restored: What was read: dicts, lists, a `Dag`, any pytree. A `jax.ShapeDtypeStruct` in it
            is missing: orbax leaves one where a checkpoint has no array.
        strict: False: a missing name keeps the leaf of `like`, a surplus name is ignored, and a
            warning says which. Where none of the arrays fits, it is an error all the same.
        namespace: The registrations of this namespace count beside the global ones.

    Raises:
        ValueError: Something is missing or surplus; two copies of one array differ; a type or shape
            differs. The message lists the names.

    >>> w = jnp.ones(2)
    >>> model = from_checkpoint({"a": w, "b": w}, {"a": 2 * w, "b": 2 * w})
    >>> model["a"] is model["b"], model["a"].tolist()
    (True, [2.0, 2.0])
    """
    holders = Unwrapped(like, namespace)
    leaves, spec = _core.flatten_at(holders.tree, "tree", namespace=namespace)
    chosen = [True] * len(leaves)
    cure = "or cast and reshape what was restored"
    filler = Filler(Listing.of(spec), leaves, "the checkpoint", chosen, cure=cure)
    found, found_spec = _core.flatten_at(
        Unwrapped(restored, namespace).tree, "tree", namespace=namespace
    )
    listing = Listing.of(found_spec)
    described: dict[str, str] = {}
    for leaf, position in zip(found, listing.leaves, strict=True):
        array = np.asarray(leaf) if type(leaf) in _NUMBERS else leaf
        if not is_array(array):
            continue
        places: dict[int | None, str] = {}
        for slot in listing.slots_of(position):
            way = [listing.records[step] for step in listing.way(slot)]
            places.setdefault(filler.find_way(way), listing.path_text(slot, "restored"))
        has_numbers = hasattr(type(array), "__array__") or jax_private.is_ref(array)
        for place, name in places.items():
            if has_numbers:
                filler.put_at(place, name, array)
            elif place is not None:
                described[filler.leaf_names[place]] = f" ({type(array).__name__} alone)"
    if left_out := filler.check(strict, filler.surplus, described):
        warn_at_call(left_out, UserWarning)
    return holders.wrap(_core.unflatten(spec, filler.result()))
