# SPDX-License-Identifier: Apache-2.0
"""optree's `treespec_*` functions for specs with sharing, and how specs are made of specs.

The constructors take specs as children. Sharing within each child is kept; between children nothing
is shared, even if one spec is given twice. For sharing between children take the structure of a
tree that has it: `x = object(); dag_structure([x, x])`.
"""

import builtins
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsIndex, SupportsInt, TypeAlias

import optree

from pydag import _core
from pydag._core import PyDagSpec
from pydag.typing import Path

from .text import short_repr

SpecMap: TypeAlias = Callable[[PyDagSpec], PyDagSpec]
"""What a spec is transformed by."""

SpecItems: TypeAlias = Mapping[Any, PyDagSpec] | Iterable[tuple[Any, PyDagSpec]]
"""What a mapping of specs is made of."""


def dagspec_paths(spec: PyDagSpec, /) -> list[Path]:
    """The path of each distinct leaf; a shared one's is its anchor's.

    Args:
        spec: The spec.

    >>> w = object()
    >>> dagspec_paths(pydag.dag_structure({"b": w, "a": [w, 0]}))
    [('a', 0), ('a', 1)]
    """
    return spec.paths()


def dagspec_accessors(spec: PyDagSpec, /) -> list[optree.PyTreeAccessor]:
    """The accessor of each distinct leaf; a shared one's is its anchor's.

    Args:
        spec: The spec.

    >>> [a.codify("tree") for a in dagspec_accessors(pydag.dag_structure({"a": [7, 8]}))]
    ["tree['a'][0]", "tree['a'][1]"]
    """
    return spec.accessors()


def dagspec_entries(spec: PyDagSpec, /) -> list[Any]:
    """The entries of the root's slots.

    Args:
        spec: The spec.

    >>> dagspec_entries(pydag.dag_structure({"b": 1, "a": 2}))
    ['a', 'b']
    """
    return spec.entries()


def dagspec_entry(spec: PyDagSpec, index: SupportsInt | SupportsIndex, /) -> Any:
    """The entry of one of the root's slots.

    Args:
        spec: The spec.
        index: The index of the slot; a negative one counts from the end.

    Raises:
        IndexError: There is no such slot.

    >>> dagspec_entry(pydag.dag_structure({"b": 1, "a": 2}), -1)
    'b'
    """
    return spec.entry(index)


def dagspec_children(spec: PyDagSpec, /) -> list[PyDagSpec]:
    """The specs of what stands in the root's slots.

    Each is the structure of that child alone: what it shares with others is not in it.

    Args:
        spec: The spec.

    >>> n = [1]
    >>> dagspec_children(pydag.dag_structure((n, [n, n])))
    [PyDagSpec([*]), PyDagSpec([&0 [*], *0])]
    """
    return spec.children()


def dagspec_child(spec: PyDagSpec, index: SupportsInt | SupportsIndex, /) -> PyDagSpec:
    """The spec of what stands in one of the root's slots.

    Args:
        spec: The spec.
        index: The index of the slot; a negative one counts from the end.

    Raises:
        IndexError: There is no such slot.

    >>> dagspec_child(pydag.dag_structure([1, {"a": 2}]), 1)
    PyDagSpec({'a': *})
    """
    return spec.child(index)


def dagspec_one_level(spec: PyDagSpec, /) -> PyDagSpec | None:
    """The root with a leaf in each of its slots, never a shared one; None for a leaf.

    Args:
        spec: The spec.

    >>> n = [1]
    >>> dagspec_one_level(pydag.dag_structure({"b": n, "a": n}))
    PyDagSpec({'a': *, 'b': *})
    """
    return spec.one_level()


def dagspec_transform(
    spec: PyDagSpec,
    /,
    f_node: SpecMap | None = None,
    f_leaf: SpecMap | None = None,
) -> PyDagSpec:
    """The spec with other nodes and other leaves.

    What was one object stays one object, unless a tuple, which is a value, replaces it: then the
    parts of the tuple are shared.

    Args:
        spec: The spec.
        f_node: Called once for each distinct node (for a tuple at each of its occurrences), after
            all that it holds, with a spec of the node alone: a leaf in each of its slots, none of
            them shared. Returns a spec of one level with as many slots; what that shares among
            its slots doesn't count.
        f_leaf: Called once for each distinct leaf, with its spec. Returns any spec.

    Raises:
        TypeError: A function didn't return a spec.
        ValueError: A function returned a spec that doesn't fit.

    >>> n = [1]
    >>> spec = pydag.dag_structure({"b": n, "a": n})
    >>> dagspec_transform(spec, lambda s: dagspec_list(s.children()))
    PyDagSpec([&0 [*], *0])
    >>> dagspec_transform(spec, lambda s: dagspec_tuple(s.children()))
    PyDagSpec(((&0 *,), (*0,)))
    """
    return spec.transform(f_node, f_leaf)


def dagspec_is_leaf(spec: PyDagSpec, /, *, strict: bool = True) -> bool:
    """Whether a spec is that of a leaf.

    Args:
        spec: The spec.
        strict: False: None, and a container without children, count as leaves, too.

    >>> spec = pydag.dag_structure(())
    >>> dagspec_is_leaf(spec), dagspec_is_leaf(spec, strict=False)
    (False, True)
    """
    if strict:
        return dagspec_is_strict_leaf(spec)
    return spec.num_nodes == 1


def dagspec_is_strict_leaf(spec: PyDagSpec, /) -> bool:
    """Whether a spec is that of a leaf, and not of a node without children.

    Args:
        spec: The spec.

    >>> dagspec_is_strict_leaf(pydag.dag_structure(1)), dagspec_is_strict_leaf(dagspec_none())
    (True, False)
    """
    return spec.num_nodes == 1 and spec.num_leaves == 1


def dagspec_is_one_level(spec: PyDagSpec, /) -> bool:
    """Whether the root is a node that holds only leaves, shared or not.

    Args:
        spec: The spec.

    >>> w = object()
    >>> [dagspec_is_one_level(pydag.dag_structure(tree)) for tree in (1, [], [w, w], [[]])]
    [False, True, True, False]
    """
    return spec.is_one_level()


def dagspec_is_prefix(spec: PyDagSpec, other_spec: PyDagSpec, /, *, strict: bool = False) -> bool:
    """Whether `other_spec` is `spec` with its leaves replaced by structures.

    What is one object in `spec` must be one in `other_spec`, which may share more. So whatever has
    the structure `other_spec` can be flattened up to `spec`. `a <= b` says the same; `a < b` is
    `strict=True`. As in optree, mappings of all kinds with the same keys fit one another, and two
    specs may be prefixes of each other and still differ, for example in the limit of a deque.

    Args:
        spec: The spec.
        other_spec: The one that it is held against.
        strict: `other_spec` must share more, or have a node where `spec` has a leaf.

    >>> n = [1]
    >>> untied, tied = pydag.dag_structure([[1], [2]]), pydag.dag_structure([n, n])
    >>> dagspec_is_prefix(untied, tied), dagspec_is_prefix(tied, untied)
    (True, False)
    """
    return spec.is_prefix(other_spec, strict=strict)


def dagspec_is_suffix(spec: PyDagSpec, other_spec: PyDagSpec, /, *, strict: bool = False) -> bool:
    """Whether `other_spec` is a prefix of `spec`: see `dagspec_is_prefix`.

    Args:
        spec: The spec.
        other_spec: The one that it is held against.
        strict: `spec` must share more, or have a node where `other_spec` has a leaf.

    >>> dagspec_is_suffix(pydag.dag_structure([1, [2]]), pydag.dag_structure([1, 2]))
    True
    """
    return spec.is_suffix(other_spec, strict=strict)


def dagspec_leaf(*, none_is_leaf: bool = False, namespace: str = "") -> PyDagSpec:
    """The spec of a leaf.

    Args:
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.

    >>> dagspec_leaf()
    PyDagSpec(*)
    """
    return _core.leaf_spec(none_is_leaf, namespace)


def dagspec_none(*, none_is_leaf: bool = False, namespace: str = "") -> PyDagSpec:
    """The spec of None: a node without children, or a leaf.

    Args:
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.

    >>> dagspec_none(), dagspec_none(none_is_leaf=True)
    (PyDagSpec(None), PyDagSpec(*, NoneIsLeaf))
    """
    if none_is_leaf:
        return dagspec_leaf(none_is_leaf=True, namespace=namespace)
    return _core.collect_specs(None, none_is_leaf, namespace)


def dagspec_tuple(
    iterable: Iterable[PyDagSpec] = (),
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
) -> PyDagSpec:
    """The spec of a tuple with these children.

    Args:
        iterable: The specs of the children.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.

    >>> dagspec_tuple([dagspec_leaf(), dagspec_none()])
    PyDagSpec((*, None))
    """
    return _core.collect_specs(tuple(iterable), none_is_leaf, namespace)


def dagspec_list(
    iterable: Iterable[PyDagSpec] = (),
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
) -> PyDagSpec:
    """The spec of a list with these children.

    Args:
        iterable: The specs of the children.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.

    >>> w = object()
    >>> pair = pydag.dag_structure([w, w])
    >>> dagspec_list([pair, pair])
    PyDagSpec([[&0 *, *0], [&1 *, *1]])
    """
    return _core.collect_specs(list(iterable), none_is_leaf, namespace)


def dagspec_dict(
    mapping: SpecItems = (),
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    **kwargs: PyDagSpec,
) -> PyDagSpec:
    """The spec of a dict with these children.

    Args:
        mapping: The specs of the values, by key: a mapping or an iterable of pairs.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        kwargs: More of them.

    >>> dagspec_dict({"b": dagspec_leaf()}, a=dagspec_list())
    PyDagSpec({'a': [], 'b': *})
    """
    return _core.collect_specs(dict(mapping, **kwargs), none_is_leaf, namespace)


def dagspec_namedtuple(
    namedtuple: tuple[PyDagSpec, ...],
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
) -> PyDagSpec:
    """The spec of a namedtuple, from one whose items are specs.

    Args:
        namedtuple: It holds the specs of the children.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.

    >>> from collections import namedtuple
    >>> Point = namedtuple("Point", "x y")
    >>> dagspec_namedtuple(Point(dagspec_leaf(), dagspec_list()))
    PyDagSpec(Point(x=*, y=[]))
    """
    if not _core.is_namedtuple_class(type(namedtuple)):
        raise ValueError(f"Expected a namedtuple of PyDagSpec(s), got {short_repr(namedtuple)}.")
    return _core.collect_specs(namedtuple, none_is_leaf, namespace)


def dagspec_ordereddict(
    mapping: SpecItems = (),
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    **kwargs: PyDagSpec,
) -> PyDagSpec:
    """The spec of an `OrderedDict` with these children.

    Args:
        mapping: The specs of the values, by key: a mapping or an iterable of pairs.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        kwargs: More of them.

    >>> dagspec_ordereddict({"b": dagspec_leaf()}, a=dagspec_list())
    PyDagSpec(OrderedDict({'b': *, 'a': []}))
    """
    return _core.collect_specs(OrderedDict(mapping, **kwargs), none_is_leaf, namespace)


def dagspec_defaultdict(
    default_factory: Callable[[], Any] | None = None,
    mapping: SpecItems = (),
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    **kwargs: PyDagSpec,
) -> PyDagSpec:
    """The spec of a `defaultdict` with this factory and these children.

    Args:
        default_factory: The factory, or None.
        mapping: The specs of the values, by key: a mapping or an iterable of pairs.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        kwargs: More of them.

    >>> dagspec_defaultdict(int, {"a": dagspec_leaf()})
    PyDagSpec(defaultdict(<class 'int'>, {'a': *}))
    """
    children = defaultdict(default_factory, mapping, **kwargs)
    return _core.collect_specs(children, none_is_leaf, namespace)


def dagspec_deque(
    iterable: Iterable[PyDagSpec] = (),
    /,
    maxlen: int | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
) -> PyDagSpec:
    """The spec of a deque with these children.

    Args:
        iterable: The specs of the children.
        maxlen: The limit of the deque; of more children the last ones stay.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.

    >>> dagspec_deque([dagspec_leaf()], maxlen=3)
    PyDagSpec(deque([*], maxlen=3))
    """
    return _core.collect_specs(deque(iterable, maxlen), none_is_leaf, namespace)


def dagspec_structseq(
    structseq: tuple[PyDagSpec, ...],
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
) -> PyDagSpec:
    """The spec of a struct sequence, from one whose items are specs.

    Args:
        structseq: It holds the specs of the children.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.

    >>> import os
    >>> dagspec_structseq(os.terminal_size([dagspec_leaf(), dagspec_list()]))
    PyDagSpec(os.terminal_size(columns=*, lines=[]))
    """
    if not _core.is_structseq_class(type(structseq)):
        raise ValueError(
            f"Expected a PyStructSequence of PyDagSpec(s), got {short_repr(structseq)}."
        )
    return _core.collect_specs(structseq, none_is_leaf, namespace)


def dagspec_frozendict(
    mapping: SpecItems = (),
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    **kwargs: PyDagSpec,
) -> PyDagSpec:
    """The spec of a `frozendict` with these children; Python has the class from 3.15 on.

    Args:
        mapping: The specs of the values, by key: a mapping or an iterable of pairs.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.
        kwargs: More of them.

    Raises:
        RuntimeError: This Python has no such class.
    """
    frozendict = getattr(builtins, "frozendict", None)
    if frozendict is None:
        raise RuntimeError(
            "`pydag.dagspec_frozendict` requires Python 3.15+ with `frozendict` support."
        )
    return _core.collect_specs(frozendict(mapping, **kwargs), none_is_leaf, namespace)


def dagspec_from_collection(
    collection: Any,
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
) -> PyDagSpec:
    """The spec of a node of any kind, from one in whose slots specs stand.

    An object that is no node gives the spec of a leaf, and a `UserWarning`.

    Args:
        collection: It holds the specs of the children.
        none_is_leaf: True makes None a leaf; otherwise it is a node without children.
        namespace: Classes registered in this namespace are nodes, too.

    Raises:
        ValueError: Something else than a spec stands in a slot, or the specs don't go together:
            they were made with another `none_is_leaf`, or in different namespaces.

    >>> dagspec_from_collection({"a": dagspec_leaf(), "b": dagspec_none()})
    PyDagSpec({'a': *, 'b': None})
    """
    return _core.collect_specs(collection, none_is_leaf, namespace)
