# SPDX-License-Identifier: Apache-2.0
"""States of flax.nnx: `nnx.Optimizer` begins with variables, and updates with their values."""

import sys
from typing import Any

import jax


def is_state(tree: Any) -> bool:
    """Whether it is what `nnx.state` gives."""
    state = getattr(sys.modules.get("flax.nnx"), "State", None)
    return state is not None and type(tree) is state


def as_values(tree: Any) -> Any:
    """A state of flax.nnx with the values of its variables in their places; else the tree."""
    if not is_state(tree):
        return tree
    nnx: Any = sys.modules["flax.nnx"]
    variable = nnx.Variable
    found = jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, variable))
    return nnx.as_pure(tree) if any(isinstance(x, variable) for x in found) else tree
