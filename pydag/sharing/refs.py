# SPDX-License-Identifier: Apache-2.0
"""JAX's refs, mutable arrays, as leaves. JAX isn't imported: code with refs has imported it.

The copy of a ref has its own content. `copy.copy` would give another handle on the same content.
"""

import copy
import sys
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.typing import Dag, Leaf


def is_ref(leaf: Leaf) -> bool:
    """Whether a leaf is a ref, traced by JAX or not."""
    known = getattr(sys.modules.get("jax"), "Ref", None)
    return isinstance(known, type) and isinstance(leaf, known)


def copy_of_leaf(leaf: Leaf) -> Leaf:
    """A copy of a leaf."""
    if is_ref(leaf):
        jax: Any = sys.modules["jax"]
        return jax.new_ref(leaf[...])
    return copy.copy(leaf)


def may_hold_refs() -> bool:
    """Whether there can be refs at all."""
    return hasattr(sys.modules.get("jax"), "Ref")


def contents_of_refs(
    target: Dag, source: Dag, options: dict[str, Any]
) -> tuple[Dag, list[tuple[Any, Any]]]:
    """What an update of `target` writes: a source with the refs of `target`, and their contents.

    Raises:
        ValueError: A new content has another shape or dtype than the ref.
    """
    leaves, spec = _core.flatten(target, **options)
    refs = [i for i, leaf in enumerate(leaves) if is_ref(leaf)]
    if not refs:
        return source, []
    found: Any = spec.flatten_up_to(source)
    contents = []
    for i in refs:
        new, ref = found[i], leaves[i]
        if new is not ref:
            _check_fits(ref, new, spec, i)
            contents.append((ref, new[...] if is_ref(new) else new))
        found[i] = ref
    return _core.unflatten(spec, found), contents


def _check_fits(ref: Any, new: Any, spec: PyDagSpec, number: int) -> None:
    given: tuple[Any, ...] = tuple(getattr(new, name, None) for name in ("shape", "dtype"))
    if given == (ref.shape, ref.dtype):
        return
    shape, dtype = given
    shown = f"a {type(new).__qualname__}" if shape is None else f"{dtype}{list(shape)}"
    raise ValueError(
        f"{spec.accessors()[number].codify('target')} is a ref of {ref.dtype}{list(ref.shape)}, "
        f"and source has {shown} there\n"
        "  The content of a ref keeps its shape and dtype. Nothing was written."
    )
