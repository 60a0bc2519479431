# SPDX-License-Identifier: Apache-2.0
"""The state of an optimizer for DAGs: optax's state, and the structure that it is for."""

from collections.abc import Iterable, Iterator
from typing import Any

import jax
from jax import tree_util

from pydag.jaxinterop.static.untraced import Untraced


class Structure:
    """The structure of the model; unknown in a state that optax makes of a placeholder.

    Optax maps over such a state and a real one at once, so it is equal to any.
    """

    __slots__ = ("untraced",)

    def __init__(self, untraced: Untraced | None) -> None:
        self.untraced = untraced

    def __eq__(self, other: object) -> bool:
        if type(other) is not Structure:
            return NotImplemented
        return None in (self.untraced, other.untraced) or self.untraced == other.untraced

    def __hash__(self) -> int:
        return hash(self.untraced)

    def __repr__(self) -> str:
        return "Structure()" if self.untraced is None else f"Structure({self.untraced})"


class OptimizerState:
    """Optax's state, whose attributes and items are reached as if it were that state itself.

    It knows the sharing of the model also where the transformation keeps nothing. As a pytree it
    has the children of optax's state, under the same keys.

    Args:
        inner: Optax's state.
        structure: Of the model.
    """

    __slots__ = ("__weakref__", "inner", "structure")

    def __init__(self, inner: Any, structure: Structure) -> None:
        self.inner, self.structure = inner, structure

    def __getattr__(self, name: str) -> Any:
        if name in OptimizerState.__slots__ or (name.startswith("__") and name.endswith("__")):
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

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.inner, self.structure.untraced)

    def _replace(self, **fields: Any) -> "OptimizerState":
        return self.like(self.inner._replace(**fields))

    def like(self, inner: Any) -> "OptimizerState":
        """Another state for the same structure."""
        return OptimizerState(inner, self.structure)


def _made(inner: Any, untraced: Untraced | None) -> OptimizerState:
    return OptimizerState(inner, Structure(untraced))


def _open(state: OptimizerState) -> tuple[list[tuple[Any, Any]], Any]:
    inner = state.inner
    found, spec = tree_util.tree_flatten_with_path(inner, is_leaf=lambda x: x is not inner)
    children = [(path[0] if path else tree_util.SequenceKey(0), child) for path, child in found]
    return children, (state.structure, spec)


def _open_without_keys(state: OptimizerState) -> tuple[list[Any], Any]:
    inner = state.inner
    children, spec = jax.tree.flatten(inner, is_leaf=lambda x: x is not inner)
    return children, (state.structure, spec)


def _close(aux: Any, children: Iterable[Any]) -> OptimizerState:
    structure, spec = aux
    return OptimizerState(spec.unflatten(children), structure)


tree_util.register_pytree_with_keys(OptimizerState, _open, _close, _open_without_keys)
