# SPDX-License-Identifier: Apache-2.0
"""Arguments that describe arrays: whatever has a shape and a dtype stands for one, as in JAX."""

from typing import Any

import jax
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.messages.roots import CALL, Roots
from pydag.jaxinterop.prefixes.arguments import (
    Args,
    Chosen,
    Kwargs,
    unwrap_static,
    wrap_static,
)
from pydag.jaxinterop.static.leaves import is_traced
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf


def _description(leaf: Leaf) -> Leaf:
    """A `jax.ShapeDtypeStruct` for what isn't an array and has shape and dtype; else the leaf."""
    if isinstance(leaf, type | np.ndarray) or is_traced(leaf):
        return leaf
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None:
        return leaf
    is_weak = bool(getattr(leaf, "weak_type", False))
    try:
        make: Any = jax.ShapeDtypeStruct
        return make(shape, dtype, weak_type=is_weak)
    except (TypeError, ValueError):
        return leaf  # its shape and dtype aren't those of an array


# The classes of most leaves, which stand for themselves; looked up by class.
_ORDINARY = frozenset(map(id, (jax_private.array_class, np.ndarray, bool, int, float, complex)))


def described(tree: AnyDag, options: Options, roots: Roots) -> AnyDag:
    """The tree, with JAX's own descriptions of arrays: one for each object."""
    leaves, spec = options.flatten(tree, roots)
    if _ORDINARY.issuperset(map(id, map(type, leaves))):
        return tree
    found = list(map(_description, leaves))
    is_same = all(new is old for new, old in zip(found, leaves, strict=True))
    return tree if is_same else _core.unflatten(spec, found)


def described_call(
    args: Args, kwargs: Kwargs, options: Options, static: Chosen
) -> tuple[Args, Kwargs]:
    """`described`, for the arguments of a call; static ones stay as they are."""
    wrapped = wrap_static(static, args, kwargs)
    found: Any = described(wrapped, options, CALL)
    if found is wrapped:
        return args, kwargs
    return tuple(map(unwrap_static, found[0])), {k: unwrap_static(v) for k, v in found[1].items()}
