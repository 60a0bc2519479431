# SPDX-License-Identifier: Apache-2.0
"""What a gradient holds at each leaf of the tree that it is for.

A gradient has the class, the sharing and the configuration of its tree. It has None at leaves that
it isn't by; and where JAX sees configuration as leaves (equinox modules, records, dicts), because
adding a gradient to a model would double a head count.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag.registry.weak_table import WeakTable
from pydag.typing import Dag, Leaf

from .content import Content
from .leaves import is_array_type

hides_configuration: WeakTable[bool] = WeakTable()
"""Classes in whose instances JAX sees arrays alone, the rest being structure."""


def derivative(content: Content, found: Mapping[int, Leaf]) -> Dag:
    """The gradient, given its leaves by their positions among all of the tree's."""
    hidden = _core.leaves_below(content.spec, lambda cls: hides_configuration.get(cls, False))
    leaves: list[Any] = [found.get(i) for i in range(content.spec.num_leaves)]
    for i, value in zip(content.positions, content.values, strict=True):
        if hidden[i]:
            leaves[i] = value
    try:
        return _core.unflatten(content.spec, leaves)
    except Exception as error:
        if None in leaves:
            error.add_note(
                "This is a gradient, in which None stands for what it isn't by, and the class "
                "doesn't keep None when it is built.\n  Register the class by its fields "
                "(pydag.register_fields), so that no constructor runs; or differentiate by all "
                "that it holds (wrt=)."
            )
        raise


def zero_tangent(type_: Any) -> Any:
    """A zero tangent of what is of a type of JAX's."""
    if not is_array_type(type_):
        tangent = type_.to_tangent_aval()
        return zero_tangent(tangent) if is_array_type(tangent) else tangent.vspace_zero()
    if jnp.issubdtype(type_.dtype, np.inexact):
        return jnp.zeros(type_.shape, type_.dtype)
    return np.zeros(type_.shape, jax.dtypes.float0)
