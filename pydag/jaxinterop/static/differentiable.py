# SPDX-License-Identifier: Apache-2.0
"""What JAX differentiates by: arrays and numbers whose type has a derivative."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pydag.jaxinterop.foreign import jax_private
from pydag.typing import Leaf

_known: dict[tuple[Any, bool], bool] = {}

_REF: type | None = getattr(jax, "Ref", None)
_NO_REFS = frozenset((jax_private.array_class, np.ndarray))
_TRACER: Any = jax.core.Tracer
_ARRAY_TYPE: Any = jax.core.ShapedArray


def is_ref(leaf: Any) -> bool:
    """Whether it is a mutable array of JAX's, traced or not, or the type of one."""
    if _REF is None or type(leaf) in _NO_REFS:  # asked of each leaf of each function that is traced
        return False
    if isinstance(leaf, _TRACER):
        if type(leaf.aval) is _ARRAY_TYPE:
            return False
    elif isinstance(leaf, jax.Array | np.ndarray):
        return False
    return isinstance(leaf, _REF) or hasattr(leaf, "inner_aval")


def holds_ref(leaves: Iterable[Any]) -> bool:
    """Whether `is_ref` holds of a leaf; asked of all leaves of each function that is traced."""
    if _REF is None:
        return False
    for leaf in leaves:
        if type(leaf) in _NO_REFS:
            continue
        if isinstance(leaf, _TRACER) and type(leaf.aval) is _ARRAY_TYPE:
            continue
        if is_ref(leaf):
            return True
    return False


def shape_of(leaf: Any) -> Any:
    """A description of an array of the shape and type of a leaf."""
    make: Any = jax.ShapeDtypeStruct
    return make(leaf.shape, leaf.dtype)


def is_differentiable(leaf: Leaf, allow_int: bool = False) -> bool:
    """Whether JAX differentiates by an array or a number of this type; by a ref it doesn't."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        return allow_int or isinstance(leaf, float | complex)
    known = _known.get((dtype, allow_int))
    if known is None:
        kind: Any = jax.dtypes.extended
        is_key = jnp.issubdtype(dtype, kind)
        known = not is_key and (allow_int or bool(jnp.issubdtype(dtype, np.inexact)))
        _known[dtype, allow_int] = known
    return known and not is_ref(leaf)
