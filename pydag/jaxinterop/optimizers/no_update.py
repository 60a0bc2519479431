# SPDX-License-Identifier: Apache-2.0
"""What stands in a `Dag` of updates for what isn't trained."""

from typing import Any

import jax

from pydag.typing import Leaf


class NoUpdate:
    """Stands in a `Dag` of updates for what isn't trained: a parameter plus this is the parameter.

    So `optax.apply_updates`, which knows no None there, takes Dags. A node without children.
    """

    __slots__ = ()

    def __radd__(self, parameter: Any) -> Any:
        return parameter

    def __repr__(self) -> str:
        return "NoUpdate()"


jax.tree_util.register_pytree_node(NoUpdate, lambda _: ((), None), lambda _, __: NoUpdate())


def or_none(leaf: Leaf) -> Leaf:
    """An update; None where there is none."""
    is_none = type(leaf) is NoUpdate or getattr(leaf, "dtype", None) == jax.dtypes.float0
    return None if is_none else leaf
