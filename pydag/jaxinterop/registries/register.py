# SPDX-License-Identifier: Apache-2.0
"""Classes whose instances JAX sees as it sees a `Dag` of them."""

import contextlib
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from jax import tree_util

from pydag.jaxinterop.boundary.dag import keys_of
from pydag.jaxinterop.boundary.derivatives import opens_as_pydag
from pydag.jaxinterop.boundary.remembered import Remembered, may_hide
from pydag.jaxinterop.static.untraced import Options, Untraced, take_apart
from pydag.typing import Identity, Leaf, Where

from .jax_registry import asked_pydag

C = TypeVar("C", bound=type)

# What JAX put into an instance of a registered class, where opening the instance would not tell:
# by its id.
_remembered: dict[int, "_Memory"] = {}


class _Memory(NamedTuple):
    ref: "weakref.ref[Any]"
    remembered: Remembered


def _remember(node: Any, remembered: Remembered) -> None:
    place = id(node)

    def forget(ref: "weakref.ref[Any]") -> None:
        if place in _remembered and _remembered[place].ref is ref:
            del _remembered[place]

    with contextlib.suppress(TypeError):  # of a class with `__slots__` and without a weak reference
        _remembered[place] = _Memory(weakref.ref(node, forget), remembered)


def _memory_of(node: Any) -> Remembered | None:
    """What is known of an instance that nobody has changed since JAX made it."""
    known = _remembered.get(id(node))
    if known is None or known.ref() is not node:
        return None
    if known.remembered.holds(node):
        return known.remembered
    _remembered.pop(id(node), None)
    return None


def register(
    cls: C, *, namespace: str = "", identity: Identity = "all", static: Where | None = None
) -> C:
    """Make JAX see the instances of a class as it sees a `Dag` of them. Also a decorator.

    The leaves of an instance are then its distinct leaves, whatever function of plain JAX it is
    given to. One that JAX made has the structure of the one it was made from, whatever its leaves
    are, until it is changed.

    Args:
        cls: A class that is registered with pydag, and not with JAX.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.
        static: Not JAX's. Which leaves are static, not traced: a predicate, a class or several, a
            pattern of the path, a prefix of booleans, or a list of such, as in `pydag.dag_mask`.

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
    options = Options.of(namespace, identity, static)

    def flatten(node: Any) -> tuple[Sequence[Leaf], Untraced]:
        if (known := _memory_of(node)) is not None:
            return known.leaves, known.untraced
        untraced, leaves = take_apart(node, options, cls.__name__)
        if untraced.spec.is_leaf():
            raise TypeError(
                f"{cls!r} is registered with pydag.jaxinterop but is no node of pydag's; register "
                "it there first, such as with pydag.register_fields"
            )
        return leaves, untraced

    def flatten_with_keys(node: Any) -> tuple[list[tuple[Any, Leaf]], Untraced]:
        leaves, untraced = flatten(node)
        return list(zip(keys_of(untraced, ""), leaves, strict=True)), untraced

    def unflatten(untraced: Untraced, leaves: Iterable[Leaf]) -> Any:
        leaves = tuple(leaves)
        node = untraced.build(leaves)
        if may_hide(leaves) and (memory := Remembered.of(node, untraced, leaves)) is not None:
            _remember(node, memory)
        return node

    tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    asked_pydag.set(cls, True)
    opens_as_pydag(cls, options, _remember)
    return cls
