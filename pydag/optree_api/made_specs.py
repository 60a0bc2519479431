# SPDX-License-Identifier: Apache-2.0
"""Specs made of specs: optree's constructors, for specs with sharing.

They take specs as children. Sharing within each child is kept; between children nothing is shared,
even if a spec is given twice. To get sharing between children, use the structure of a tree with
that sharing: `x = object(); dag_structure([x, x])`.
"""

import builtins
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, Unpack

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.public.options import with_options
from pydag.structure.text import short_repr
from pydag.typing import SpecOptions

SpecItems: TypeAlias = Mapping[Any, PyDagSpec] | Iterable[tuple[Any, PyDagSpec]]
"""What a mapping of specs is made of."""


@with_options
def dagspec_leaf(*, none_is_leaf: bool = False, namespace: str = "") -> PyDagSpec:
    """The spec of a leaf.

    >>> dagspec_leaf()
    PyDagSpec(*)
    """
    return _core.leaf_spec(none_is_leaf=none_is_leaf, namespace=namespace)


@with_options
def dagspec_none(*, none_is_leaf: bool = False, namespace: str = "") -> PyDagSpec:
    """The spec of None: a node without children, or a leaf.

    >>> dagspec_none(), dagspec_none(none_is_leaf=True)
    (PyDagSpec(None), PyDagSpec(*, NoneIsLeaf))
    """
    if none_is_leaf:
        return dagspec_leaf(none_is_leaf=True, namespace=namespace)
    return _core.collect_specs(None, namespace=namespace)


@with_options
def dagspec_tuple(
    iterable: Iterable[PyDagSpec] = (), /, **options: Unpack[SpecOptions]
) -> PyDagSpec:
    """The spec of a tuple with these children.

    >>> dagspec_tuple([dagspec_leaf(), dagspec_none()])
    PyDagSpec((*, None))
    """
    return _core.collect_specs(tuple(iterable), **options)


@with_options
def dagspec_list(
    iterable: Iterable[PyDagSpec] = (), /, **options: Unpack[SpecOptions]
) -> PyDagSpec:
    """The spec of a list with these children.

    >>> w = object()
    >>> pair = pydag.dag_structure([w, w])
    >>> dagspec_list([pair, pair])
    PyDagSpec([[&0 *, *0], [&1 *, *1]])
    """
    return _core.collect_specs(list(iterable), **options)


@with_options
def dagspec_dict(
    mapping: SpecItems = (),
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    **kwargs: PyDagSpec,
) -> PyDagSpec:
    """The spec of a dict with these children.

    >>> dagspec_dict({"b": dagspec_leaf()}, a=dagspec_list())
    PyDagSpec({'a': [], 'b': *})
    """
    return _core.collect_specs(
        dict(mapping, **kwargs), none_is_leaf=none_is_leaf, namespace=namespace
    )


@with_options
def dagspec_namedtuple(
    namedtuple: tuple[PyDagSpec, ...], /, **options: Unpack[SpecOptions]
) -> PyDagSpec:
    """The spec of a namedtuple, from a namedtuple of specs.

    Args:
        namedtuple: It holds the specs of the children.

    >>> from collections import namedtuple
    >>> Point = namedtuple("Point", "x y")
    >>> dagspec_namedtuple(Point(dagspec_leaf(), dagspec_list()))
    PyDagSpec(Point(x=*, y=[]))
    """
    if not _core.is_namedtuple_class(type(namedtuple)):
        raise ValueError(f"Expected a namedtuple of PyDagSpec(s), got {short_repr(namedtuple)}.")
    return _core.collect_specs(namedtuple, **options)


@with_options
def dagspec_ordereddict(
    mapping: SpecItems = (),
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    **kwargs: PyDagSpec,
) -> PyDagSpec:
    """The spec of an `OrderedDict` with these children.

    >>> dagspec_ordereddict({"b": dagspec_leaf()}, a=dagspec_list())
    PyDagSpec(OrderedDict({'b': *, 'a': []}))
    """
    return _core.collect_specs(
        OrderedDict(mapping, **kwargs), none_is_leaf=none_is_leaf, namespace=namespace
    )


@with_options
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

    >>> dagspec_defaultdict(int, {"a": dagspec_leaf()})
    PyDagSpec(defaultdict(<class 'int'>, {'a': *}))
    """
    children = defaultdict(default_factory, mapping, **kwargs)
    return _core.collect_specs(children, none_is_leaf=none_is_leaf, namespace=namespace)


@with_options
def dagspec_deque(
    iterable: Iterable[PyDagSpec] = (), /, maxlen: int | None = None, **options: Unpack[SpecOptions]
) -> PyDagSpec:
    """The spec of a deque with these children.

    Args:
        maxlen: The limit of the deque; if there are more children, the last ones are kept.

    >>> dagspec_deque([dagspec_leaf()], maxlen=3)
    PyDagSpec(deque([*], maxlen=3))
    """
    return _core.collect_specs(deque(iterable, maxlen), **options)


@with_options
def dagspec_structseq(
    structseq: tuple[PyDagSpec, ...], /, **options: Unpack[SpecOptions]
) -> PyDagSpec:
    """The spec of a struct sequence, from a struct sequence of specs.

    Args:
        structseq: It holds the specs of the children.

    >>> import os
    >>> dagspec_structseq(os.terminal_size([dagspec_leaf(), dagspec_list()]))
    PyDagSpec(os.terminal_size(columns=*, lines=[]))
    """
    if not _core.is_structseq_class(type(structseq)):
        raise ValueError(
            f"Expected a PyStructSequence of PyDagSpec(s), got {short_repr(structseq)}."
        )
    return _core.collect_specs(structseq, **options)


@with_options
def dagspec_frozendict(
    mapping: SpecItems = (),
    /,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    **kwargs: PyDagSpec,
) -> PyDagSpec:
    """The spec of a `frozendict`, a class of Python 3.15 and newer, with these children.

    Raises:
        RuntimeError: This Python has no such class.
    """
    frozendict = getattr(builtins, "frozendict", None)
    if frozendict is None:
        raise RuntimeError(
            "`pydag.dagspec_frozendict` requires Python 3.15+ with `frozendict` support."
        )
    made = frozendict(mapping, **kwargs)  # pragma: no cover: Python 3.15
    return _core.collect_specs(  # pragma: no cover: Python 3.15
        made, none_is_leaf=none_is_leaf, namespace=namespace
    )


@with_options
def dagspec_from_collection(collection: Any, /, **options: Unpack[SpecOptions]) -> PyDagSpec:
    """The spec of a node of any kind, from a node whose children are specs.

    An object that is no node gives the spec of a leaf, and a `UserWarning`.

    Args:
        collection: It holds the specs of the children.

    Raises:
        ValueError: A child is not a spec, or the specs don't go together: they were made with
            another `none_is_leaf`, or in different namespaces.

    >>> dagspec_from_collection({"a": dagspec_leaf(), "b": dagspec_none()})
    PyDagSpec({'a': *, 'b': None})
    """
    return _core.collect_specs(collection, **options)
