# SPDX-License-Identifier: Apache-2.0
"""Classes whose instances JAX sees as it sees a `Dag` of them."""

import contextlib
import weakref
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple, TypeVar

from jax import tree_util

from pydag.jaxinterop.boundary.arguments import joined
from pydag.jaxinterop.boundary.dag import keys_of
from pydag.jaxinterop.boundary.static import static_positions
from pydag.jaxinterop.boundary.static_part import Options, StaticPart, take_apart
from pydag.typing import Identity, Leaf

from .jax_registry import asked_pydag

C = TypeVar("C", bound=type)

# What JAX put into an instance of a registered class, where opening the instance would not tell:
# by its id.
_remembered: dict[int, "_Memory"] = {}


class _Memory(NamedTuple):
    ref: "weakref.ref[Any]"
    static_part: StaticPart
    leaves: Sequence[Leaf]

    def holds(self, node: Any) -> bool:
        """Whether this is about `node`, and it still has just these leaves."""
        if self.ref() is not node:
            return False
        statics = [static.value for static in self.static_part.statics]
        try:
            found = self.static_part.spec.flatten_up_to(node)
        except Exception:  # it was changed, and has another structure now
            return False
        return all(map(is_, found, joined(self.static_part.positions, statics, self.leaves)))


def _remember(node: Any, static_part: StaticPart, leaves: Sequence[Leaf]) -> None:
    place = id(node)

    def forget(ref: "weakref.ref[Any]") -> None:
        if place in _remembered and _remembered[place].ref is ref:
            del _remembered[place]

    with contextlib.suppress(TypeError):  # of a class with `__slots__` and without a weak reference
        _remembered[place] = _Memory(weakref.ref(node, forget), static_part, leaves)


def register(cls: C, *, namespace: str = "", identity: Identity = "all") -> C:
    """Make JAX see the instances of a class as it sees a `Dag` of them. Also a decorator.

    The leaves of an instance are then its distinct leaves, whatever function of plain JAX it is
    given to. One that JAX made has the structure of the one it was made from, whatever its leaves
    are, until it is changed.

    Args:
        cls: A class that is registered with pydag, and not with JAX.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    Raises:
        ValueError: The class is registered with JAX already.
        TypeError: When an instance is flattened: the class is no node of pydag's.

    >>> @register
    ... @pydag.register_fields
    ... class Pair:
    ...     def __init__(self, w):
    ...         self.a = self.b = w
    >>> jax.tree.map(lambda x: x + 1, Pair(jnp.zeros(()))).b
    Array(1., dtype=float32)
    """
    options = Options(namespace, identity)

    def flatten(node: Any) -> tuple[Sequence[Leaf], StaticPart]:
        known = _remembered.get(id(node))
        if known is not None and known.holds(node):
            return known.leaves, known.static_part
        static_part, leaves = take_apart(node, options)
        if static_part.spec.is_leaf():
            raise TypeError(
                f"{cls!r} is registered with pydag.jaxinterop but is no node of pydag's; register "
                "it there first, such as with pydag.register_fields"
            )
        return leaves, static_part

    def flatten_with_keys(node: Any) -> tuple[list[tuple[Any, Leaf]], StaticPart]:
        leaves, static_part = flatten(node)
        return list(zip(keys_of(static_part, ""), leaves, strict=True)), static_part

    def unflatten(static_part: StaticPart, leaves: Iterable[Leaf]) -> Any:
        leaves = tuple(leaves)
        node = static_part.build(leaves)
        if len(set(map(id, leaves))) < len(leaves) or static_positions(leaves):
            _remember(node, static_part, leaves)
        return node

    tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    asked_pydag.add(cls)
    return cls
