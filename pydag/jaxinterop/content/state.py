# SPDX-License-Identifier: Apache-2.0
"""Which leaves are state: nothing is differentiated by them, nor trained, unless `wrt=` names them.

In NNX these are the leaves that Variables hold, other than `nnx.Param`s; or that are such Variables
(of a hijax type, which JAX doesn't open).
"""

from collections.abc import Sequence

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.foreign.flax_private import variable_classes as classes_of_flax
from pydag.registry.class_table import inherits
from pydag.typing import Leaf

from .leaves import is_like_array

variable_classes: list[tuple[type, type]] = []
"""Pairs of a class of variables and the class of those that are trained."""


def are_no_state(
    spec: PyDagSpec, positions: Sequence[int], leaves: Sequence[Leaf]
) -> Sequence[bool]:
    """Which of some leaves, at these positions, aren't state.

    What a Variable holds is at no other place.
    """
    found = [True] * len(leaves)
    if variable_classes:
        below = _core.leaves_below(spec, _is_state)
        found = [not below[i] for i in positions]
    classes = classes_of_flax()
    if classes is not None:
        for i, leaf in enumerate(leaves):
            if not is_like_array(leaf) and is_variable(leaf):
                found[i] = isinstance(leaf, classes[1])
    return found


def is_variable(leaf: Leaf) -> bool:
    """Whether a leaf is a Variable of NNX, or a tracer of one."""
    classes = classes_of_flax()
    return classes is not None and isinstance(leaf, classes[0])


def _is_state(cls: type) -> bool:
    return any(
        inherits(cls, variable) and not inherits(cls, trained)
        for variable, trained in variable_classes
    )
