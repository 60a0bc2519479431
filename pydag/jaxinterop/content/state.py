# SPDX-License-Identifier: Apache-2.0
"""Which leaves are state: nothing is differentiated by them, nor trained, unless `wrt=` names them.

In NNX these are the leaves that Variables hold, other than `nnx.Param`s.
"""

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.registry.class_table import inherits

variable_classes: list[tuple[type, type]] = []
"""Pairs of a class of variables and the class of those that are trained."""


def state_leaves(spec: PyDagSpec) -> frozenset[int]:
    """The leaves that are state. What a Variable holds is at no other place."""
    if not variable_classes:
        return frozenset()
    return frozenset(i for i, flag in enumerate(_core.leaves_below(spec, _is_state)) if flag)


def _is_state(cls: type) -> bool:
    return any(
        inherits(cls, variable) and not inherits(cls, trained)
        for variable, trained in variable_classes
    )
