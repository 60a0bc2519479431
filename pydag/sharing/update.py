# SPDX-License-Identifier: Apache-2.0
"""Changes the content of a DAG: replaces a part, fills in leaves, writes leaves in place."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, Unpack

import pydag._core as _core
from pydag.public.options import with_options
from pydag.sharing.refs import contents_of_refs, may_hold_refs
from pydag.typing import Dag, Identity, IsLeaf, KeywordOptions

T = TypeVar("T")

writer_finders: list[Callable[[type], Callable[[Any, Sequence[Any]], None] | None]] = []
"""Functions that return the writer for a class with a flatten function; None if there is none."""


def find_writer(cls: type) -> Callable[[Any, Sequence[Any]], None] | None:
    """The writer for instances of a class with a flatten function; None: they can't be written."""
    found = (find(cls) for find in writer_finders)
    return next((writer for writer in found if writer is not None), None)


def _is_frozen(cls: type) -> bool:
    """Whether instances of a class can't be changed: a frozen dataclass or attrs class."""
    if getattr(getattr(cls, "__dataclass_params__", None), "frozen", False):
        return True
    attrs = sys.modules.get("attr._make")
    return attrs is not None and cls.__setattr__ is getattr(attrs, "_frozen_setattrs", None)


@with_options
def dag_replace(
    tree: T, old: Any, new: Any, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> T:
    """A new tree with `new` in every slot that held the very object `old`.

    `new` isn't copied, and may hold `old`. What else it holds of the tree is the same object in the
    new tree: an adapter around a layer leaves a norm that the layer shares one object. The argument
    is unchanged.

    Args:
        old: A leaf or a container, found by `is`.
        new: The replacement.
        identity: ... They are replaced all the same.

    Raises:
        ValueError: The tree doesn't hold `old`, or `old` is a value, which has no identity.
        CycleError: `new` holds an object of the tree that holds `old`.

    >>> layer = [1.0]
    >>> model = {"encoder": layer, "decoder": layer, "head": [1.0]}
    >>> dag_replace(model, layer, [2.0])
    {'encoder': [2.0], 'decoder': [2.0], 'head': [1.0]}
    """
    result: T = _core.replace(tree, old, new, is_leaf=is_leaf, **options)
    return result


@with_options
def dag_combine(
    *trees: Dag, is_leaf: IsLeaf | None = None, namespace: str = "", identity: Identity = "all"
) -> Dag:
    """One tree from several with the same structure: at each place the first that isn't None.

    It puts the halves of a partition together. Containers have the sharing of the first tree; a
    leaf has the sharing of its own tree.

    Args:
        trees: At least one tree.
        is_leaf: ... Asked of the first tree.
        identity: ... Makes no difference here: only the sharing of containers counts.

    Raises:
        TypeError: There is no tree.
        ValueError: A tree has another structure than the first, with None as a leaf.
        SharingError: A tree has two different containers where the first has one.

    >>> dag_combine({"a": [1, None], "b": None}, {"a": [None, 2], "b": 3})
    {'a': [1, 2], 'b': 3}
    """
    if not trees:
        raise TypeError("dag_combine() takes one tree at least")
    if identity not in ("all", "nodes"):
        raise ValueError(f"identity must be 'all' or 'nodes', got {identity!r}")
    first, spec = _core.flatten(
        trees[0], is_leaf=is_leaf, none_is_leaf=True, namespace=namespace, identity="nodes"
    )
    others = enumerate(trees[1:], 1)
    columns = [first, *(_core.match_at(spec, tree, f"trees[{i}]") for i, tree in others)]
    chosen = (next((x for x in row if x is not None), None) for row in zip(*columns, strict=True))
    return _core.unflatten(spec, list(chosen))


@with_options
def dag_update(
    target: T, source: Dag, is_leaf: IsLeaf | None = None, **options: Unpack[KeywordOptions]
) -> T:
    """Write the leaves of `source` into the objects of `target`; returns `target`.

    Containers keep their identity, so code that holds a container sees the new leaves. Tuples can't
    be changed, so new tuples replace them. Either all leaves are written or none. Fields of
    registered classes are written without `__setattr__`. A ref of JAX in `target` keeps its
    identity, and its content is written once.

    Args:
        target: The DAG whose leaves are written over.
        source: A DAG with the structure of `target`. For one object of `target` it must have one
            object, or equal values.
        is_leaf: ... Asked of `target`.

    Raises:
        TypeError: The root is a leaf or a tuple; or a node would have to change that is an instance
            of a frozen dataclass or attrs class, or that a flatten function opens, other than a
            `Dag` or an optimizer's state of `pydag.jaxinterop`.
        ValueError: The trees have different structures, an array has another shape than the array
            that it replaces, or a content doesn't fit its ref.
        SharingError: `source` has two answers for one object.

    >>> layer = [1.0]
    >>> model = {"encoder": layer, "decoder": layer}
    >>> dag_update(model, {"encoder": [2.0], "decoder": [2.0]}) is model, layer
    (True, [2.0])
    """
    contents: list[tuple[Any, Any]] = []
    if may_hold_refs():
        source, contents = contents_of_refs(target, source, {"is_leaf": is_leaf, **options})
    _core.update(target, source, find_writer, _is_frozen, is_leaf=is_leaf, **options)
    for ref, content in contents:
        ref[...] = content
    return target
