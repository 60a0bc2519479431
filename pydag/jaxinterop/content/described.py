# SPDX-License-Identifier: Apache-2.0
"""Arguments that describe arrays: what has a shape and a dtype stands for one, as in JAX."""

from typing import Any

import jax

import pydag._core as _core
from pydag.typing import Dag

from .leaves import is_traced
from .options import Options
from .paths import Roots


def described(tree: Dag, options: Options, roots: Roots) -> Dag:
    """The tree with a `jax.ShapeDtypeStruct` for each leaf that describes an array otherwise."""
    leaves, spec = options.flatten(tree, roots)
    found = list(map(_description, leaves))
    is_same = all(new is old for new, old in zip(found, leaves, strict=True))
    return tree if is_same else _core.unflatten(spec, found)


def _description(leaf: Any) -> Any:
    if isinstance(leaf, type) or is_traced(leaf):
        return leaf
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None:
        return leaf
    make: Any = jax.ShapeDtypeStruct
    try:
        return make(shape, dtype, weak_type=bool(getattr(leaf, "weak_type", False)))
    except (TypeError, ValueError):
        return leaf  # its shape and dtype aren't those of an array
