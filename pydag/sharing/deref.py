# SPDX-License-Identifier: Apache-2.0
"""Writes sharing out in an ordinary pytree, and reads it back; for `to_treespec`, as optree's."""

import functools
import sys
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack, cast

import optree

import pydag._core as _core
from pydag.public.options import with_options
from pydag.registry.fields import register_fields
from pydag.registry.optree_private import GLOBAL_NAMESPACE
from pydag.structure.text import fields_repr, short_repr
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
def deref(tree: Dag, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]) -> Any:
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
def reref(tree: Any, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]) -> Dag:
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


State: TypeAlias = tuple[Any, ...]
"""What `optree.PyTreeSpec.__getstate__` returns."""


def open_as_optree(
    cls: type, flatten: Any, unflatten: Any, namespace: str, given: tuple[Any, Any]
) -> tuple[Any, Any] | str:
    """(aux_data, entries) of a registered node in optree; or the reason, in words, for its lack.

    Args:
        flatten: The class's flatten function in pydag; None: the core opens the class itself.
        given: (aux_data, entries); without a function (an object, what stands in its slots).
    """
    entry = optree.register_pytree_node.get(cls, namespace=namespace)
    if entry is None or entry.kind != optree.PyTreeKind.CUSTOM:
        return f"optree doesn't know the class {short_repr(cls)}: register it there, too."
    if flatten is not None:
        is_same = entry.flatten_func is flatten and entry.unflatten_func is unflatten
        return given if is_same else f"optree opens the class {short_repr(cls)} by other functions."
    obj, slots = given
    children, aux_data, *entries = entry.flatten_func(obj)
    if [id(child) for child in children] != [id(slot) for slot in slots]:
        return f"optree finds other children in the class {short_repr(cls)}."
    return aux_data, tuple(entries[0]) if entries and entries[0] is not None else None


def from_state(state: State) -> optree.PyTreeSpec:
    """The PyTreeSpec with this state; no function of the user's runs."""
    _check_format()
    spec: Any = optree.PyTreeSpec.__new__(optree.PyTreeSpec)
    spec.__setstate__(state)
    return cast("optree.PyTreeSpec", spec)


@functools.cache
def _check_format() -> None:
    """Raises if specs of the installed optree have another state than the core writes."""
    sample = [
        {"b": 0, "a": None},
        OrderedDict(k=0),
        defaultdict(int, k=0),
        (deque(maxlen=2), Alias(7)),
    ]
    leaf = (1, 0, None, None, None, 1, 1, None)
    nodes = (
        *((2, 0, None, None, None, 0, 1, None), leaf),
        (5, 2, ["a", "b"], None, None, 1, 3, {"b": None, "a": None}),
        *(leaf, (7, 1, ["k"], None, None, 1, 2, None)),
        *(leaf, (8, 1, (int, ["k"]), None, None, 1, 2, {"k": None})),
        *((9, 0, 2, None, None, 0, 1, None), (0, 0, 7, (), Alias, 0, 1, None)),
        *((3, 2, None, None, None, 0, 3, None), (4, 4, None, None, None, 3, 11, None)),
    )
    found: Any = optree.tree_structure(cast("Any", sample))
    if found.__getstate__() != (nodes, False, ""):  # pragma: no cover: another optree
        raise RuntimeError(f"pydag can't make a PyTreeSpec of optree {optree.__version__}")
