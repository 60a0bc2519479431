# SPDX-License-Identifier: Apache-2.0
"""optree's `treespec_*` functions that describe a spec, for specs with sharing."""

from collections.abc import Callable
from typing import Any, SupportsIndex, SupportsInt, TypeAlias

import optree

from pydag._core import PyDagSpec
from pydag.public.options import with_options
from pydag.typing import Path

SpecMap: TypeAlias = Callable[[PyDagSpec], PyDagSpec]
"""What a spec is transformed by."""


@with_options
def dagspec_paths(spec: PyDagSpec, /) -> list[Path]:
    """The path of each distinct leaf; a shared leaf has the path of its anchor.

    >>> w = object()
    >>> dagspec_paths(pydag.dag_structure({"b": w, "a": [w, 0]}))
    [('a', 0), ('a', 1)]
    """
    return spec.paths()


@with_options
def dagspec_accessors(spec: PyDagSpec, /) -> list[optree.PyTreeAccessor]:
    """The accessor of each distinct leaf; a shared leaf has the accessor of its anchor.

    >>> [a.codify("tree") for a in dagspec_accessors(pydag.dag_structure({"a": [7, 8]}))]
    ["tree['a'][0]", "tree['a'][1]"]
    """
    return spec.accessors()


@with_options
def dagspec_entries(spec: PyDagSpec, /) -> list[Any]:
    """The entries of the root's slots.

    >>> dagspec_entries(pydag.dag_structure({"b": 1, "a": 2}))
    ['a', 'b']
    """
    return spec.entries()


@with_options
def dagspec_entry(spec: PyDagSpec, index: SupportsInt | SupportsIndex, /) -> Any:
    """The entry of one of the root's slots.

    Raises:
        IndexError: There is no such slot.

    >>> dagspec_entry(pydag.dag_structure({"b": 1, "a": 2}), -1)
    'b'
    """
    return spec.entry(index)


@with_options
def dagspec_children(spec: PyDagSpec, /) -> list[PyDagSpec]:
    """The specs of the root's children, one for each slot.

    Each is the structure of that child alone, without its sharing with other children.

    >>> n = [1]
    >>> dagspec_children(pydag.dag_structure((n, [n, n])))
    [PyDagSpec([*]), PyDagSpec([&0 [*], *0])]
    """
    return spec.children()


@with_options
def dagspec_child(spec: PyDagSpec, index: SupportsInt | SupportsIndex, /) -> PyDagSpec:
    """The spec of the child in one of the root's slots.

    Raises:
        IndexError: There is no such slot.

    >>> dagspec_child(pydag.dag_structure([1, {"a": 2}]), 1)
    PyDagSpec({'a': *})
    """
    return spec.child(index)


@with_options
def dagspec_one_level(spec: PyDagSpec, /) -> PyDagSpec | None:
    """The root with an unshared leaf in each of its slots; None for a leaf.

    >>> n = [1]
    >>> dagspec_one_level(pydag.dag_structure({"b": n, "a": n}))
    PyDagSpec({'a': *, 'b': *})
    """
    return spec.one_level()


@with_options
def dagspec_transform(
    spec: PyDagSpec, /, f_node: SpecMap | None = None, f_leaf: SpecMap | None = None
) -> PyDagSpec:
    """The spec with other nodes and other leaves.

    One object remains one object, unless a tuple, which is a value, replaces it: then the parts of
    the tuple are shared.

    Args:
        f_node: Called once for each distinct node (for a tuple at each of its occurrences), after
            everything below it, with a spec of the node alone: an unshared leaf in each slot.
            Returns a spec of one level with as many slots. Sharing among its slots is ignored.
        f_leaf: Called once for each distinct leaf, with its spec. Returns any spec.

    Raises:
        TypeError: A function didn't return a spec.
        ValueError: A function returned a spec that doesn't fit.

    >>> n = [1]
    >>> spec = pydag.dag_structure({"b": n, "a": n})
    >>> dagspec_transform(spec, lambda s: pydag.dagspec_list(s.children()))
    PyDagSpec([&0 [*], *0])
    >>> dagspec_transform(spec, lambda s: pydag.dagspec_tuple(s.children()))
    PyDagSpec(((&0 *,), (*0,)))
    """
    return spec.transform(f_node, f_leaf)


@with_options
def dagspec_is_leaf(spec: PyDagSpec, /, *, strict: bool = True) -> bool:
    """Whether a spec is that of a leaf.

    Args:
        strict: False: None and a container without children also count as leaves.

    >>> spec = pydag.dag_structure(())
    >>> dagspec_is_leaf(spec), dagspec_is_leaf(spec, strict=False)
    (False, True)
    """
    if strict:
        return dagspec_is_strict_leaf(spec)
    return spec.num_nodes == 1


@with_options
def dagspec_is_strict_leaf(spec: PyDagSpec, /) -> bool:
    """Whether a spec is that of a leaf, and not of a node without children.

    >>> dagspec_is_strict_leaf(pydag.dag_structure(1)), dagspec_is_strict_leaf(pydag.dagspec_none())
    (True, False)
    """
    return spec.num_nodes == 1 and spec.num_leaves == 1


@with_options
def dagspec_is_one_level(spec: PyDagSpec, /) -> bool:
    """Whether the root is a node and all its children are leaves, shared or not.

    >>> w = object()
    >>> [dagspec_is_one_level(pydag.dag_structure(tree)) for tree in (1, [], [w, w], [[]])]
    [False, True, True, False]
    """
    return spec.is_one_level()


@with_options
def dagspec_is_prefix(spec: PyDagSpec, other_spec: PyDagSpec, /, *, strict: bool = False) -> bool:
    """Whether `other_spec` is `spec` with its leaves replaced by structures.

    An object of `spec` must be one object in `other_spec`, which may share more. So a tree with the
    structure `other_spec` can be flattened up to `spec`. `a <= b` means the same; `a < b` means
    `strict=True`. As in optree, mappings of all kinds with the same keys fit one another, and two
    specs may be prefixes of each other and still differ, for example in the limit of a deque.

    Args:
        strict: `other_spec` must share more, or have a node where `spec` has a leaf.

    >>> n = [1]
    >>> untied, tied = pydag.dag_structure([[1], [2]]), pydag.dag_structure([n, n])
    >>> dagspec_is_prefix(untied, tied), dagspec_is_prefix(tied, untied)
    (True, False)
    """
    return spec.is_prefix(other_spec, strict=strict)


@with_options
def dagspec_is_suffix(spec: PyDagSpec, other_spec: PyDagSpec, /, *, strict: bool = False) -> bool:
    """Whether `other_spec` is a prefix of `spec`: see `dagspec_is_prefix`.

    Args:
        strict: `spec` must share more, or have a node where `other_spec` has a leaf.

    >>> dagspec_is_suffix(pydag.dag_structure([1, [2]]), pydag.dag_structure([1, 2]))
    True
    """
    return spec.is_suffix(other_spec, strict=strict)
