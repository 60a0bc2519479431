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
    jax: Any = sys.modules.get("jax")
    known = getattr(jax, "Ref", None)
    if not isinstance(known, type):
        return False
    if isinstance(leaf, jax.core.Tracer):
        return hasattr(leaf.aval, "inner_aval")
    return isinstance(leaf, known)


def copy_of_leaf(leaf: Leaf) -> Leaf:
    """A copy of a leaf."""
    if is_ref(leaf):
        jax: Any = sys.modules["jax"]
        return jax.new_ref(leaf[...])
    return copy.copy(leaf)


def may_hold_refs() -> bool:
    """Whether there can be refs at all."""
    return hasattr(sys.modules.get("jax"), "Ref")


class Contents:
    """The new contents for the refs of a DAG that is updated.

    Args:
        target: The DAG.
        source: Has the new leaves. A ref in it is read.

    Raises:
        ValueError: A new content has another shape or dtype than the ref.
    """

    def __init__(self, target: Dag, source: Dag, options: dict[str, Any]) -> None:
        leaves, spec = _core.flatten(target, **options)
        self.source = source
        self._pairs: list[tuple[Any, Any]] = []
        refs = [i for i, leaf in enumerate(leaves) if is_ref(leaf)]
        if not refs:
            return
        found: Any = spec.flatten_up_to(source)
        for i in refs:
            new, ref = found[i], leaves[i]
            if new is not ref:
                _check_fits(ref, new, spec, i)
                self._pairs.append((ref, new[...] if is_ref(new) else new))
            found[i] = ref
        self.source = _core.unflatten(spec, found)

    def write(self) -> None:
        """Writes them."""
        for ref, content in self._pairs:
            ref[...] = content


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
