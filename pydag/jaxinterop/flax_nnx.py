# SPDX-License-Identifier: Apache-2.0
"""States of flax.nnx: `nnx.Optimizer` begins with variables, and updates with their values."""

import sys
from typing import Any

import jax


def as_values(tree: Any) -> Any:
    """A state of flax.nnx with the values of its variables in their places; else the tree."""
    nnx: Any = sys.modules.get("flax.nnx")
    state, variable = getattr(nnx, "State", None), getattr(nnx, "Variable", None)
    if state is None or variable is None or type(tree) is not state:
        return tree
    found = jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, variable))
    return nnx.as_pure(tree) if any(isinstance(x, variable) for x in found) else tree
