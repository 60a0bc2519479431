# SPDX-License-Identifier: Apache-2.0
"""`Packed`: what a function returns to pydag through JAX.

A pytree of the core's, made and opened without Python code. Its leaves are arrays; its auxiliary
data says what else the result is made of: the structure, static leaves, and *origins*, objects of
the caller's that come back. So a ref that came in and goes out is the caller's own. An origin is
the number of a leaf of the call's arguments.

A `_core.Updated` is a `Packed` with what the call writes into its arguments beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

import pydag._core as _core
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.leaves import is_number
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.foreign import jax_private
from pydag.typing import Dag, Leaf

Packed = _core.Result

Origins = Mapping[int, int]
"""For each ref of the arguments of a call, by its id, which of all their leaves it is."""

_ARRAY, _NEW_REF = -1, -2  # in the place of an origin


def pack(
    tree: Dag,
    options: Options,
    origins: Origins,
    *,
    root: str = "result",
    makes_refs: bool = False,
    by_tuples: bool = False,
    others: Sequence[_core.PyDagSpec] = (),
) -> Any:
    """The result of a function, for JAX.

    Args:
        origins: The refs that the function was given.
        root: What errors call it.
        makes_refs: Whether a ref that the function made comes out as a fresh one.
        by_tuples: Whether an array that is reached through tuples only counts once per place.
        others: What is two objects in one of these structures is two in the result.
    """
    if not by_tuples and _is_plain(tree):
        return tree
    leaves, content = take_apart(tree, options, root, is_result=True, by_tuples=by_tuples)
    if others:
        content, picked = content.shared_with(others)
        leaves = [leaves[i] for i in picked]
    found, sources = without_refs(leaves, origins, makes_refs)
    return packed_of(content, found, sources)


def refs_among(content: Content, leaves: Sequence[Leaf]) -> dict[int, int]:
    """The refs among the traced leaves, as origins: by id, each with its position among all."""
    found = jax_private.ref_positions(leaves)
    positions = content.traced_positions() if found else ()
    return {id(leaves[i]): positions[i] for i in found}


def packed_of(content: Content, leaves: Sequence[Leaf], sources: tuple[int, ...] | None) -> Packed:
    """A result, given its parts; `sources` is None where no refs are among the leaves."""
    if sources is None and not content.positions:
        return _core.make_result(content.spec, leaves)
    statics = content if content.positions else None
    return _core.make_result((content.spec, sources, statics), leaves)


def packed_with(content: Content, leaves: Sequence[Leaf]) -> Packed:
    """A tree as an argument: the order of its dicts counts, and refs are leaves."""
    return _core.make_result((content.spec, None, content), leaves)


def _is_plain(tree: Dag) -> bool:
    """Whether JAX returns it as it is: a number, an array, or a tuple or list of arrays."""
    parts = tree if type(tree) in (tuple, list) else (tree,)
    if not all(isinstance(x, jax.Array) for x in parts) or jax_private.ref_positions(parts):
        return parts is not tree and is_number(tree)
    return len(set(map(id, parts))) == len(parts)


def without_refs(
    leaves: Sequence[Leaf], origins: Origins, makes_refs: bool
) -> tuple[Sequence[Leaf], tuple[int, ...] | None]:
    """The leaves of a result without the refs of the caller's, and the origin of each leaf."""
    if not jax_private.ref_positions(leaves):
        return leaves, None
    found, sources = [], []
    for leaf in leaves:
        source = origins.get(id(leaf), _ARRAY)
        if source == _ARRAY:
            if makes_refs and jax_private.is_ref(leaf) and jax_private.is_of_this_trace(leaf):
                source, leaf = _NEW_REF, leaf[...]
            found.append(leaf)
        sources.append(source)
    return found, tuple(sources)


def unpack(
    returned: Any,
    leaves: Sequence[Leaf],
    call: Any = None,
    new_ref: Callable[[Any], Any] | None = jax.new_ref,
) -> Dag:
    """The result for the caller. Once it is built, the arguments are updated.

    Args:
        returned: What JAX returned.
        leaves: All leaves of the arguments.
        call: The arguments, `(args, kwargs)`, of a function that may update some.
        new_ref: Makes a ref that the function made, given its content.
    """
    is_update = type(returned) is _core.Updated
    packed = _core.open_updated(returned)[0] if is_update else returned
    if _core.holds_refs(packed):
        result = _core.fill_result(packed, leaves, new_ref)
    else:
        result = _core.build_result(packed)
    return _core.update_arguments(returned, call, result) if is_update and call else result


def parts_of(packed: Packed) -> tuple[Sequence[Leaf], Content, tuple[int, ...] | None]:
    """Its leaves, its content, and the origin of each traced leaf; None where all are arrays."""
    leaves, structure = _core.open_result(packed)
    spec, sources, content = structure if type(structure) is tuple else (structure, None, None)
    return list(leaves), content or Content(spec, (), ()), sources


def _with_keys(packed: Packed) -> Any:
    leaves, content, sources = parts_of(packed)
    paths = content.paths("")
    if sources is not None:
        paths = [path for path, source in zip(paths, sources, strict=True) if source < 0]
    return list(zip(paths, leaves, strict=True)), _core.open_result(packed)[1]


if Packed not in jax_private.registry:
    jax.tree_util.register_pytree_with_keys(
        Packed, _with_keys, _core.make_result, _core.open_result
    )
    jax.tree_util.register_pytree_node(
        _core.Updated, lambda updated: (_core.open_updated(updated), None), _core.make_updated
    )
    jax.tree_util.register_pytree_node(_core.UpdatePlan, lambda plan: ((), plan), _core.keep_plan)
