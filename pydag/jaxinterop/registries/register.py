# SPDX-License-Identifier: Apache-2.0
"""Classes whose instances JAX sees as it sees a `Dag` of them."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax import tree_util

import pydag._core as _core
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.derivative import hides_configuration
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.packed.dag import leaf_keys
from pydag.registry.fields import module_listeners
from pydag.typing import Identity, Leaf, Where

from .jax_registry import asked_pydag, entry_of

C = TypeVar("C", bound=type)
_BY_ITSELF = Options(), True


@with_wrapper_options
def register(
    cls: C, *, namespace: str = "", identity: Identity = "all", static: Where | None = None
) -> C:
    """Make JAX see the instances of a class as it sees a `Dag` of them. Also a decorator.

    The leaves of an instance are then its distinct leaves, whatever function of plain JAX it is
    given to.

    Args:
        cls: A class that is registered with pydag, and not with JAX.

    Raises:
        ValueError: The class is registered with JAX already, and not by `pydag.register_module`.
        TypeError: When an instance is flattened: the class is no node of pydag's.

    >>> @register
    ... @pydag.register_fields
    ... class Pair:
    ...     def __init__(self, w):
    ...         self.a = self.b = w
    >>> jax.tree.map(lambda x: x + 1, Pair(jnp.zeros(()))).b
    Array(1., dtype=float32)
    """
    _, is_by_itself = asked_pydag.get(cls, (None, False))
    if not is_by_itself:
        _tell_jax(cls)
    asked_pydag.set(cls, (Options(namespace, identity, static), False))
    return cls


def _tell_jax(cls: type) -> None:
    name = cls.__name__

    def flatten(node: Any) -> tuple[Sequence[Leaf], Content]:
        leaves, content = take_apart(node, asked_pydag.get(cls, _BY_ITSELF)[0], name)
        if content.spec.is_leaf():
            raise TypeError(
                f"{type(node)!r} is registered with pydag.jaxinterop but is no node of pydag's; "
                "register it there first, such as with pydag.register_fields"
            )
        return leaves, content

    def flatten_with_keys(node: Any) -> tuple[list[tuple[Any, Leaf]], Content]:
        leaves, content = flatten(node)
        return list(zip(leaf_keys(content), leaves, strict=True)), content

    def unflatten(content: Content, leaves: Iterable[Leaf]) -> Any:
        # JAX puts a bare `object()` at all leaves of a tree to count them.
        describe: Any = jax.ShapeDtypeStruct  # untyped
        found = [describe((), np.bool_) if type(x) is object else x for x in leaves]
        return content.build_mapped(found)

    tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    hides_configuration.set(cls, True)


def _tell_jax_of_module(cls: type) -> None:
    """Lets JAX see the instances of a class of modules, unless it knows the class."""
    if entry_of(cls) is None:
        _tell_jax(cls)
        asked_pydag.set(cls, _BY_ITSELF)


module_listeners.append(_tell_jax_of_module)
for _namespace, _cls in _core.registered_classes():
    if _namespace == "" and _core.is_module(_cls, ""):
        _tell_jax_of_module(_cls)
