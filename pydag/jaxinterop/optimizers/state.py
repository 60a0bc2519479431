# SPDX-License-Identifier: Apache-2.0
"""The state of an optimizer: optax's, and which arrays of which structure it is for."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax import tree_util

from pydag.jaxinterop.content.leaves import copied
from pydag.jaxinterop.packed.dag import LeafKey
from pydag.registry.fields import register_fields
from pydag.typing import Leaf

from .nested import Trained


@register_fields(data_fields=["inner"], meta_fields=["trained"])
class OptimizerState:
    """Optax's state of nested dicts; this object forwards attributes and items to it."""

    def __init__(self, inner: Any, trained: Trained) -> None:
        self.inner, self.trained = inner, trained

    def __getattr__(self, name: str) -> Any:
        if name in ("inner", "trained") or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __getitem__(self, item: Any) -> Any:
        return self.inner[item]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return repr(self.inner)

    def _replace(self, **fields: Any) -> "OptimizerState":
        return OptimizerState(self.inner._replace(**fields), self.trained)


tree_util.register_pytree_with_keys(  # to JAX the paths are those of optax's state
    OptimizerState,
    lambda state: ([(LeafKey(""), state.inner)], state.trained),
    lambda trained, parts: OptimizerState(next(iter(parts)), trained),
    lambda state: ((state.inner,), state.trained),
)


def with_own_arrays(state: Any, elsewhere: Sequence[Leaf]) -> Any:
    """A state of optax with each array at one place, and no array that is also elsewhere.

    So it can be donated, and has one structure in all steps. (Its dicts have their keys in order,
    in whichever order a transformation fills them.)
    """
    leaves, structure = jax.tree.flatten(state)
    seen = set(map(id, elsewhere))
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, jax.Array | np.ndarray):
            if id(leaf) in seen:
                leaves[i] = copied(leaf)
            seen.add(id(leaf))
    return jax.tree.unflatten(structure, leaves)
