# SPDX-License-Identifier: Apache-2.0
"""Arguments that describe arrays: what has a shape and a dtype stands for one, as in JAX."""

from typing import Any

import jax
import numpy as np

import pydag._core as _core
from pydag.typing import Dag

from .leaves import untraced
from .options import Options
from .paths import Roots


def described(tree: Dag, options: Options, roots: Roots) -> Dag:
    """The tree with a `jax.ShapeDtypeStruct` for each leaf that describes an array otherwise."""
    leaves, spec = options.flatten(tree, roots)
    found = {i: _description(leaves[i]) for i in untraced(leaves)}
    if all(new is leaves[i] for i, new in found.items()):
        return tree
    return _core.unflatten(spec, [found.get(i, leaf) for i, leaf in enumerate(leaves)])


def _description(leaf: Any) -> Any:
    if isinstance(leaf, type | np.ndarray):  # an array of a dtype that JAX hasn't
        return leaf
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None:
        return leaf
    make: Any = jax.ShapeDtypeStruct
    try:
        return make(shape, dtype, weak_type=bool(getattr(leaf, "weak_type", False)))
    except (TypeError, ValueError):
        return leaf  # its shape and dtype aren't those of an array
