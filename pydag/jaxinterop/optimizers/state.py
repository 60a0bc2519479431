# SPDX-License-Identifier: Apache-2.0
"""The state of an optimizer for DAGs: optax's state, and the structure that it is for."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
from jax import tree_util

from pydag.jaxinterop.foreign import optax_private
from pydag.jaxinterop.packed.dag import Dag, rebuilt
from pydag.jaxinterop.static.paths import opens_with_names
from pydag.jaxinterop.static.untraced import Untraced

_MOST_LEVELS = 1000


class Structure:
    """The structure of the model; unknown in a state that optax makes of a placeholder.

    Optax maps over such a state and a real one at once, so it is equal to any.

    Args:
        untraced: The structure.
        chosen: Whether each traced leaf is trained, where only `init` saw what tells that: NNX
            begins with Variables, and updates by their values.
    """

    __slots__ = ("chosen", "untraced")

    def __init__(self, untraced: Untraced | None, chosen: tuple[bool, ...] | None = None) -> None:
        self.untraced, self.chosen = untraced, chosen

    def __eq__(self, other: object) -> bool:
        if type(other) is not Structure:
            return NotImplemented
        if None in (self.untraced, other.untraced):
            return True
        return self.untraced == other.untraced and self.chosen == other.chosen

    def __hash__(self) -> int:
        return hash(self.untraced)

    def __repr__(self) -> str:
        return "Structure()" if self.untraced is None else f"Structure({self.untraced})"

    def _brief_repr(self) -> str:
        return "for a model of " + ("any kind" if self.untraced is None else self.untraced.size())


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

    @property  # type: ignore[misc]  # of objects nobody sets it
    def __class__(self) -> type:
        """What `isinstance` asks, too: `optax.tree.get` has to find the names of optax's state.

        To all others it is a class of its own. Flax would make a new state by its fields alone.
        """
        return type(self.inner if optax_private.searches_states(sys._getframe(1)) else self)

    def __getattr__(self, name: str) -> Any:
        if name in OptimizerState.__slots__ or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        value = getattr(self.inner, name)
        if type(value) is Dag:
            given = optax_private.params_for_evaluation(sys._getframe(1))
            return value if given is None else _beside(value, given)
        return value

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
        return _made, (self.inner, self.structure.untraced, self.structure.chosen)

    def _replace(self, **fields: Any) -> "OptimizerState":
        return self.like(self.inner._replace(**fields))

    def _write_children(self, children: Iterable[Any]) -> None:
        """Takes other children: `update_argnums` writes into a state by this."""
        self.inner = _open_without_keys(self)[1][1].unflatten(children)

    def like(self, inner: Any) -> "OptimizerState":
        """Another state for the same structure."""
        return OptimizerState(inner, self.structure)


def _beside(dag: Dag, params: Any) -> Dag:
    """A Dag of the state, in the form in which optax can map over it and the parameters.

    A parameter that isn't trained has nothing in the state. The parameter itself stands there: it
    is the average of what doesn't change.

    Raises:
        TypeError: The parameters are no Dag, which that map would untie, if it could be.
    """
    if type(params) is not Dag:
        raise TypeError(
            "optax.contrib.schedule_free_eval_params was given a model and a state of "
            "pydag.jaxinterop.optimizer, which has a Dag of the model\n"
            f"  params: an object of {type(params)!r}\n  state.z: a Dag of {dag.spec}\n"
            "  Give it a Dag, too: schedule_free_eval_params(state, "
            "pydag.jaxinterop.Dag(model)).tree is the model, shared as it was."
        )
    (own, leaves), (other, values) = dag._take_apart(), params._take_apart()
    if own.content != other.content:
        return dag  # JAX says what differs
    pairs = zip(leaves, values, strict=True)
    return rebuilt(own, [value if leaf is None else leaf for leaf, value in pairs])


def _made(
    inner: Any, untraced: Untraced | None, chosen: tuple[bool, ...] | None = None
) -> OptimizerState:
    return OptimizerState(inner, Structure(untraced, chosen))


class _Level(NamedTuple):
    """One level of optax's states of one class and length, whose items are its children to JAX."""

    names: Sequence[Any]
    spec: Any


_levels: dict[tuple[type, int], _Level] = {}


def _level_of(inner: Any) -> _Level | None:
    """The level of a tuple or namedtuple; None for others, which JAX has to open each time."""
    if not isinstance(inner, tuple):
        return None
    kind = type(inner), len(inner)
    known = _levels.get(kind)
    if known is None:
        found, spec = tree_util.tree_flatten_with_path(inner, is_leaf=lambda x: x is not inner)
        keys = [path[0] for path, _ in found if path]
        if [id(child) for _, child in found] != list(map(id, inner)):
            return None  # JAX opens this class in another way
        names = tuple(getattr(key, "name", getattr(key, "idx", None)) for key in keys)
        if len(names) != len(inner) or None in names or len(_levels) >= _MOST_LEVELS:
            return None
        known = _levels[kind] = _Level(names, spec)
    return known


def _open(state: OptimizerState) -> tuple[list[tuple[Any, Any]], Any]:
    inner = state.inner
    found, spec = tree_util.tree_flatten_with_path(inner, is_leaf=lambda x: x is not inner)
    children = [(path[0] if path else tree_util.SequenceKey(0), child) for path, child in found]
    return children, (state.structure, spec)


def _open_without_keys(state: OptimizerState) -> tuple[Sequence[Any], Any]:
    inner = state.inner
    if (level := _level_of(inner)) is not None:
        return inner, (state.structure, level.spec)
    children, spec = jax.tree.flatten(inner, is_leaf=lambda x: x is not inner)
    return children, (state.structure, spec)


def _open_with_names(state: OptimizerState) -> tuple[Sequence[Any], Any, Sequence[Any]]:
    inner = state.inner
    if (level := _level_of(inner)) is not None:
        return inner, (state.structure, level.spec), level.names
    found, aux = _open(state)
    names = (getattr(key, "name", getattr(key, "idx", getattr(key, "key", 0))) for key, _ in found)
    return [child for _, child in found], aux, tuple(names)


def _close(aux: Any, children: Iterable[Any]) -> OptimizerState:
    structure, spec = aux
    return OptimizerState(spec.unflatten(children), structure)


opens_with_names.set(OptimizerState, _open_with_names)
tree_util.register_pytree_with_keys(OptimizerState, _open, _close, _open_without_keys)
