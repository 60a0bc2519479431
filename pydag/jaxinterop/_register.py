# SPDX-License-Identifier: Apache-2.0
"""Classes whose instances JAX sees as it sees a `Dag` of them."""

import contextlib
import weakref
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple, TypeVar

from jax import tree_util

from pydag.typing import Identity, Leaf

from ._arguments import joined
from ._dag import keys_of
from ._form import Form, Options, take_apart
from ._registry import asked_pydag
from ._static import static_positions

C = TypeVar("C", bound=type)

# What JAX put into an instance of a registered class, where opening the instance would not tell:
# by its id.
_remembered: dict[int, "_Memory"] = {}


class _Memory(NamedTuple):
    ref: "weakref.ref[Any]"
    form: Form
    leaves: Sequence[Leaf]

    def holds(self, node: Any) -> bool:
        """Whether this is about `node`, and it still has just these leaves."""
        if self.ref() is not node:
            return False
        statics = [static.value for static in self.form.statics]
        try:
            found = self.form.spec.flatten_up_to(node)
        except Exception:  # it was changed, and has another structure now
            return False
        return all(map(is_, found, joined(self.form.positions, statics, self.leaves)))


def _remember(node: Any, form: Form, leaves: Sequence[Leaf]) -> None:
    place = id(node)

    def forget(ref: "weakref.ref[Any]") -> None:
        if place in _remembered and _remembered[place].ref is ref:
            del _remembered[place]

    with contextlib.suppress(TypeError):  # of a class with `__slots__` and without a weak reference
        _remembered[place] = _Memory(weakref.ref(node, forget), form, leaves)


def register(cls: C, *, namespace: str = "", identity: Identity = "all") -> C:
    """Make JAX see the instances of a class as it sees a `Dag` of them. Also a decorator.

    The leaves of an instance are then its distinct leaves, whatever function of plain JAX it is
    given to. One that JAX made has the structure of the one it was made from, whatever its leaves
    are, until it is changed.

    Args:
        cls: A class that is registered with pydag, and not with JAX.

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

    def flatten(node: Any) -> tuple[Sequence[Leaf], Form]:
        known = _remembered.get(id(node))
        if known is not None and known.holds(node):
            return known.leaves, known.form
        form, leaves = take_apart(node, options)
        if form.spec.is_leaf():
            raise TypeError(
                f"{cls!r} is registered with pydag.jaxinterop but is no node of pydag's; register "
                "it there first, such as with pydag.register_fields"
            )
        return leaves, form

    def flatten_with_keys(node: Any) -> tuple[list[tuple[Any, Leaf]], Form]:
        leaves, form = flatten(node)
        return list(zip(keys_of(form, ""), leaves, strict=True)), form

    def unflatten(form: Form, leaves: Iterable[Leaf]) -> Any:
        leaves = tuple(leaves)
        node = form.build(leaves)
        if len(set(map(id, leaves))) < len(leaves) or static_positions(leaves):
            _remember(node, form, leaves)
        return node

    tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    asked_pydag.add(cls)
    return cls
