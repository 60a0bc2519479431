# SPDX-License-Identifier: Apache-2.0
"""Tuples are values: an array to which tuples alone lead is a variable of its own at each place.

So `grad(f, argnums=(0, 1))(s, s)` are two partial derivatives, and `(h, c) = (z, z)` is a carry of
two arrays. A ref stays one object.
"""

from typing import Any

import jax
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.typing import Dag


class Variable:
    """Stands for an array while the tree that holds it is flattened: an object of its own."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def with_variables(tree: Dag, namespace: str) -> Dag:
    """The tree with a `Variable` for each array to which tuples alone lead."""
    if isinstance(tree, jax.Array | np.ndarray | jax.core.Tracer):
        return tree if jax_private.is_ref(tree) else Variable(tree)
    cls = type(tree)
    is_value = cls is tuple or (
        isinstance(tree, tuple)
        and _core.is_namedtuple_class(cls)
        and _core.find_registration(cls, namespace) is None
    )
    if not is_value:
        return tree
    return tuple.__new__(cls, [with_variables(item, namespace) for item in tree])
