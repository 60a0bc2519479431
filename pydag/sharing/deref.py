# SPDX-License-Identifier: Apache-2.0
"""Writes sharing out in an ordinary pytree, and reads it back."""

import sys
from dataclasses import dataclass
from typing import Any, Unpack

import optree

import pydag._core as _core
from pydag.public.options import with_options
from pydag.registry.fields import register_fields
from pydag.registry.optree_private import GLOBAL_NAMESPACE
from pydag.structure.text import fields_repr
from pydag.typing import Dag, IsLeaf, KeywordOptions


@dataclass(frozen=True, slots=True)
class Anchor:
    """The first occurrence of a shared object in a derefed tree.

    Args:
        index: The number of the object, in this tree.
        value: The object, itself derefed.
    """

    index: int
    value: Any

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class Alias:
    """Each later occurrence of the object of `Anchor(index, ...)`: a node without children.

    Args:
        index: The number of the object, in this tree.
    """

    index: int


@dataclass(frozen=True, slots=True)
class Node:
    """Replaces, in a derefed tree, a node of a class that plain JAX could not open.

    Args:
        type: The class.
        aux_data: The aux_data of the class's flatten function; for `register_fields` `(names
            of the data fields, values of the meta fields)`, for a deque its `maxlen`.
        children: The parts, themselves derefed.
    """

    type: type
    aux_data: Any
    children: tuple[Any, ...]

    __repr__ = fields_repr


register_fields(Anchor, ("value",), ("index",))
register_fields(Alias, (), ("index",))
register_fields(Node, ("children",), ("type", "aux_data"))
_core.set_deref_classes(Anchor, Alias, Node)


class _ChildEntry(optree.PyTreeEntry):
    """The place of a child of a `Node` in optree's accessors."""

    def __call__(self, obj: Any) -> Any:
        return obj.children[self.entry]

    def codify(self, node: str = "") -> str:
        return f"{node}.children[{self.entry!r}]"


# class, (object) -> (children, aux_data, names of the children), (aux_data, children) -> object
_RULES: tuple[tuple[Any, Any, Any], ...] = (
    (Anchor, lambda x: ((x.value,), x.index, ("value",)), lambda index, c: Anchor(index, *c)),
    (Alias, lambda x: ((), x.index, ()), lambda index, _: Alias(index)),
    (
        Node,
        lambda x: (x.children, (x.type, x.aux_data), None),
        lambda aux, c: Node(aux[0], aux[1], tuple(c)),
    ),
)
for _cls, _flatten, _unflatten in _RULES:
    optree.register_pytree_node(
        _cls,
        _flatten,
        _unflatten,
        path_entry_type=_ChildEntry if _cls is Node else optree.GetAttrEntry,
        namespace=GLOBAL_NAMESPACE,
    )

_jax_knows = False


def _tell_jax() -> None:
    """Registers the three classes with JAX, once it is loaded."""
    global _jax_knows
    tree_util = getattr(sys.modules.get("jax"), "tree_util", None)
    if _jax_knows or tree_util is None:
        return
    _jax_knows = True
    for cls, flatten, unflatten in _RULES:
        tree_util.register_pytree_node(cls, lambda x, f=flatten: f(x)[:2], unflatten)


@with_options
def deref(
    tree: Dag,
    is_leaf: IsLeaf | None = None,
    **options: Unpack[KeywordOptions],
) -> Any:
    """The DAG as an ordinary pytree, in which every distinct leaf appears once.

    The first occurrence of a shared object becomes `Anchor(index, value)`, each later occurrence
    `Alias(index)`. A node that JAX could not open (of a class that is registered with pydag, a
    deque, a struct sequence) becomes `Node(type, aux_data, children)`. Unshared parts are left
    unchanged, and so is a tree that is derefed already.

    Raises:
        CycleError: An object contains itself.

    >>> w = [1.0]
    >>> deref({"a": w, "b": w})
    {'a': Anchor(index=0, value=[1.0]), 'b': Alias(index=0)}
    """
    _tell_jax()
    return _core.deref(tree, is_leaf=is_leaf, **options)


@with_options
def reref(
    tree: Any,
    is_leaf: IsLeaf | None = None,
    **options: Unpack[KeywordOptions],
) -> Dag:
    """The inverse of `deref`: restores the sharing of a derefed tree.

    Anchors and aliases may come in any order.

    Args:
        tree: A derefed tree, or a container of trees that were derefed together.

    Raises:
        SharingError: An alias has no anchor, or two different anchors have the same index.
        CycleError: An object contains itself.

    >>> out = reref({"b": Alias(0), "a": Anchor(0, [1.0])})
    >>> out, out["a"] is out["b"]
    ({'b': [1.0], 'a': [1.0]}, True)
    """
    return _core.reref(tree, is_leaf=is_leaf, **options)
