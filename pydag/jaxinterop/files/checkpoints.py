# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that others wrote, read into a DAG."""

from typing import Any

import numpy as np

import pydag._core as _core
from pydag.files.arrays import is_array
from pydag.files.fill import Filler
from pydag.jaxinterop.foreign.jax_private import is_ref
from pydag.jaxinterop.notices.source import warn_at_call
from pydag.structure.listing import Listing
from pydag.typing import Dag

from .opened import Opened

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
    opened = Opened(like, namespace)
    leaves, spec = _core.flatten_at(opened.tree, "tree", namespace=namespace)
    chosen = [True] * len(leaves)
    cure = "or cast and reshape what was restored"
    filler = Filler(Listing.of(spec), leaves, "the checkpoint", chosen, cure=cure)
    found, found_spec = _core.flatten_at(
        Opened(restored, namespace).tree, "tree", namespace=namespace
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
        has_numbers = hasattr(type(array), "__array__") or is_ref(array)
        for place, name in places.items():
            if has_numbers:
                filler.put_at(place, name, array)
            elif place is not None:
                described[filler.leaf_names[place]] = f" ({type(array).__name__} alone)"
    if left_out := filler.check(strict, filler.surplus, described):
        warn_at_call(left_out, UserWarning)
    return opened.close(_core.unflatten(spec, filler.result()))
