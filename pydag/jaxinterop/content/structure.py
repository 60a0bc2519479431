# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a structure whatever its leaves are, found once for each that lives."""

import functools
import inspect
from typing import Any

import jax
from jax import tree_util

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.functools import partial
from pydag.jaxinterop.foreign.jax_private import function_in
from pydag.registry.class_table import inherits
from pydag.registry.weak_table import WeakTable
from pydag.structure.listing import Listing, Record
from pydag.structure.text import short_repr

from .leaves import is_array
from .paths import Roots, path_texts, way_text
from .values import ATOMS, check_value

# The nodes with which something may be wrong, by position; most structures have none.
_known: WeakTable[list[tuple[int, Record]]] = WeakTable()

_PLAIN = frozenset({dict, list, tuple})  # most structures of many nodes
_PARTIALS = (tree_util.Partial, partial)  # whose arguments are opened


def check_structure(spec: PyDagSpec, roots: Roots) -> None:
    """Checks what nodes hold besides children: it is no part of what JAX traces.

    Raises:
        TypeError: The function of a partial that JAX opens is no value, such as a method bound to a
            model; or a meta field holds an array.
    """
    known = _known.get(spec, None)
    if known is None:
        if _PLAIN.issuperset(_classes(spec)):
            return
        known = [
            (position, record)
            for position, record in enumerate(Listing.of(spec).records)
            if record.type in _PARTIALS or _array_in_meta(record, spec.namespace)
        ]
        _known.set(spec, known)
    for position, record in known:
        if record.type in _PARTIALS:
            function = _function(record.detail)
            if not _is_linear_map(function):
                check_value(function, functools.partial(_place, spec, position, roots, "func"))
            continue
        name, text = _array_in_meta(record, spec.namespace) or ("", "")
        raise TypeError(
            f"{_place(spec, position, roots, name)} is a meta field of {record.type}, and holds an "
            f"array: {text}\n  It would be a constant, neither traced nor trained, and stale when "
            "it changes. Make the field a data field; or keep the numbers there as a tuple."
        )


def _classes(spec: PyDagSpec) -> set[type]:
    """The classes of the nodes."""
    classes = set[type]()

    def see(cls: type) -> bool:
        classes.add(cls)
        return False

    _core.leaves_below(spec, see)  # asks once for each class
    return classes


def _function(detail: Any) -> Any:
    """The function of a partial whose arguments are opened; JAX and optree wrap a partial there."""
    if inherits(type(detail), functools.partial) or not hasattr(detail, "keywords"):
        return function_in(detail)
    return functools.partial(detail.func, *detail.args, **detail.keywords)


def _is_linear_map(function: Any) -> bool:
    """Whether `jax.linearize` made it: a partial that holds lists of JAX's own."""
    made: Any = getattr(function, "func", None)
    own = inspect.unwrap(jax.linearize).__globals__
    return getattr(made, "__globals__", None) is own and not hasattr(jax, made.__name__)


def _array_in_meta(record: Record, namespace: str) -> tuple[str, str] | None:
    """The first meta field of a node that holds an array, and which.

    Looked for in partials and in what pydag opens, such as modules; the core has found the arrays
    in builtin containers.
    """
    for name, value in (record.detail or ()) if record.kind == "fields" else ():
        waiting: list[tuple[str, Any]] = [] if type(value) in ATOMS else [(name, value)]
        for way, held in waiting:
            leaves, spec = _core.flatten(held, namespace=namespace)
            for i, leaf in enumerate(leaves):
                if is_array(leaf):
                    return name, f"{path_texts(spec, way)[i]} is {short_repr(leaf)}"
                if isinstance(leaf, functools.partial):
                    before = path_texts(spec, way)[i]
                    waiting += [(f"{before}.args", leaf.args)]
                    waiting += [(f"{before}.keywords", tuple(leaf.keywords.items()))]
    return None


def _place(spec: PyDagSpec, position: int, roots: Roots, attribute: str) -> str:
    listing = Listing.of(spec)
    return f"{way_text(listing, listing.way(position), roots)}.{attribute}"
