# SPDX-License-Identifier: Apache-2.0
"""What a file holds for objects of pydag and JAX, and how they are made again.

A `Dag` is written as its tree: so an array that the model holds, too, is written once. The state of
an optimizer is written as optax's. A random key is written as its numbers, a ref as its content.
What a leaf was is noted beside the structure.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.content.dag import Dag as PackedDag
from pydag.jaxinterop.content.dag import dag_of
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.optimizers.state import OptimizerState
from pydag.typing import Dag, Identity, Leaf

_REF = "ref"
_KEY = "key "  # and the name of the generator
WEAK = "weakly typed"


_HOLDERS: dict[type, tuple[Callable[[Any], Dag], Callable[[Any, Dag], Any]]] = {
    PackedDag: (
        lambda dag: dag.tree,
        lambda dag, tree: dag_of(dag.parts()[1], dag.parts()[1].match(tree, "tree"), dag._options),
    ),
    OptimizerState: (lambda s: s.inner, lambda s, inner: OptimizerState(inner, s.trained)),
}
"""Classes that hold a tree and are no nodes to a file: how to open an object, and remake it."""


class Unwrapped:
    """A tree that may have holders; its `.tree` has none."""

    def __init__(self, tree: Dag, namespace: str, identity: Identity = "all") -> None:
        self._leaves, self._spec = _core.flatten_at(
            tree,
            "tree",
            is_leaf=lambda x: type(x) in _HOLDERS,
            namespace=namespace,
            identity=identity,
        )
        self._inner = {
            i: Unwrapped(_HOLDERS[type(leaf)][0](leaf), namespace, identity)
            for i, leaf in enumerate(self._leaves)
            if type(leaf) in _HOLDERS
        }
        self.tree = tree
        if self._inner:
            trees = [
                self._inner[i].tree if i in self._inner else x for i, x in enumerate(self._leaves)
            ]
            self.tree = _core.unflatten(self._spec, trees)

    def wrap(self, tree: Dag) -> Dag:
        """A tree like this one, with holders again."""
        if not self._inner:
            return tree
        found = self._spec.flatten_up_to(tree)
        for i, inner in self._inner.items():
            holder = self._leaves[i]
            found[i] = _HOLDERS[type(holder)][1](holder, inner.wrap(found[i]))
        return _core.unflatten(self._spec, found)


def is_plain(leaf: Leaf) -> bool:
    """Whether a leaf is an ordinary array of JAX, about which nothing is noted."""
    is_array: bool = type(leaf) is jax_private.ArrayImpl
    return is_array and not leaf.weak_type and isinstance(leaf.dtype, np.dtype)


def is_key(leaf: Leaf) -> bool:
    """Whether a leaf is a typed random key, or describes one."""
    dtype: Any = getattr(leaf, "dtype", None)
    is_plain_dtype = dtype is None or isinstance(dtype, np.dtype)  # quicker than to ask JAX
    return not is_plain_dtype and bool(jnp.issubdtype(dtype, jax.dtypes.prng_key))


def kind_of(leaf: Leaf) -> str | None:
    """What is noted of a leaf that is more than an array of its type; None of all others."""
    if getattr(leaf, "weak_type", False) and not jax_private.is_ref(leaf):
        return WEAK
    kinds = [_REF] if jax_private.is_ref(leaf) else []
    if is_key(leaf):
        names: list[str] = []
        jax.eval_shape(
            lambda key: names.append(str(jax.random.key_impl(key))),
            jax_private.describe(leaf.shape, leaf.dtype),
        )
        kinds.append(_KEY + names[0])
    return " of ".join(kinds) or None


def content(leaf: Leaf) -> Any:
    """The array that is written for a leaf."""
    inside = jax_private.read(leaf)
    return jax.random.key_data(inside) if is_key(inside) else inside


def outline(leaf: Leaf) -> Any:
    """The shape and dtype of the array that is written for a leaf."""
    if is_key(leaf):
        return jax.eval_shape(jax.random.key_data, jax_private.describe(leaf.shape, leaf.dtype))
    return jax_private.describe(leaf.shape, leaf.dtype) if jax_private.is_ref(leaf) else leaf


def restored(kind: str, array: jax.Array) -> Any:
    """The leaf of a kind that an array was written for."""
    if kind == WEAK:
        return jax_private.convert_element_type(array, array.dtype, weak_type=True)
    *outer, inner = kind.split(" of ")
    leaf: Any = array
    if inner.startswith(_KEY):
        leaf = jax.random.wrap_key_data(array, impl=inner.removeprefix(_KEY))
    return jax.new_ref(leaf) if _REF in (*outer, inner) else leaf
