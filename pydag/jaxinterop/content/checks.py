# SPDX-License-Identifier: Apache-2.0
"""Checks of a tree: its static leaves are values, and it has no array that JAX wouldn't see."""

import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
from jax import tree_util

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.functools import partial
from pydag.jaxinterop.foreign.jax_private import function_in
from pydag.registry.latest import declared_fields
from pydag.registry.weak_table import WeakTable
from pydag.structure.listing import Listing, Record
from pydag.structure.reached import ATOMS
from pydag.structure.text import short_repr
from pydag.typing import Leaf

from .leaves import is_array, is_number
from .paths import Roots, path_texts, way_text
from .refused import check_value, refusal
from .values import array_beside, hidden, is_value, tracer_in

_PARTIALS = (tree_util.Partial, partial)  # whose arguments are opened
_Shim: Any = type(partial(functools.partial(print)).func)


def check(
    spec: PyDagSpec,
    roots: Roots,
    positions: Sequence[int],
    values: Sequence[Leaf],
    selected: Collection[int],
    is_result: bool,
) -> None:
    """Checks a structure, and its static leaves.

    Args:
        positions, values: The static leaves.
        selected: The positions of those that `static=` selects.

    Raises:
        TypeError: A static leaf is no value; in a result, it leads to a tracer. Or a node holds
            besides its children what is no value: a partial that JAX opens, its function, such as a
            method bound to a model; or a meta field, an array.
    """
    classes: dict[type, bool] = {}
    namespace = spec.namespace
    _core.leaves_below(spec, lambda cls: classes.setdefault(cls, _holds_more(cls, namespace)))
    if any(classes.values()):
        _check_nodes(spec, roots, is_result)
    examples = _core.one_of_each_class(values) if values else {}
    # Text and numbers are values.
    doubtful = [cls for cls, x in examples.items() if type(x) not in ATOMS and not is_number(x)]
    for number in _core.positions_of_classes(values, doubtful) if doubtful else ():
        i = positions[number]
        place = functools.partial(_leaf_text, spec, roots, i)
        _check_leaf(values[number], place, i in selected, is_result)


def _leaf_text(spec: PyDagSpec, roots: Roots, position: int) -> str:
    return path_texts(spec, roots)[position]


def _check_leaf(value: Leaf, place: Callable[[], str], is_selected: bool, is_result: bool) -> None:
    can_be = is_result and (is_selected or is_value(value))
    if can_be and (tracer := tracer_in(value)) is not None:
        where = place()
        raise TypeError(
            f"{where} is {short_repr(value)}, and leads to an array that is being traced: "
            f"{short_repr(tracer)}\n  That array is gone when the function returned. Return the "
            "array itself, or a jax.tree_util.Partial of it, which JAX opens."
        )
    if not is_selected:
        check_value(value, place)
        return
    if (found := hidden(value)) is not None:
        raise refusal(value, found, place())
    try:
        hash(value)
    except TypeError as error:
        what, cure = "", "or make it hashable, such as a tuple for a list"
        if is_array(value):
            what, cure = "an array and ", "and leave arrays to JAX"
        raise TypeError(
            f"{place()} is {what}selected by static=, and can't be hashed: {error}\n  What is "
            f"static is part of the key of the compiled function. Select configuration, {cure}."
        ) from None


_known: WeakTable[dict[str, bool]] = WeakTable()
"""For classes whether their nodes hold more than children, by namespace."""


def _holds_more(cls: type, namespace: str) -> bool:
    """Whether nodes of a class hold a function, or meta fields, beside their children."""
    answers = _known.get(cls, None)
    if answers is None:
        answers = {}
        _known.set(cls, answers)
    if namespace not in answers:
        flatten, *_ = _core.find_registration(cls, namespace) or (is_array,)
        has_meta = getattr(flatten, "has_meta_fields", False)
        if flatten is None:  # pydag opens it by its fields
            has_meta = bool(declared_fields(cls)[1])
        answers[namespace] = has_meta or cls in _PARTIALS
    return answers[namespace]


def _check_nodes(spec: PyDagSpec, roots: Roots, is_result: bool) -> None:
    listing = Listing.of(spec)
    for position, record in enumerate(listing.records):
        if record.type in _PARTIALS:
            function = _function(record.detail)
            if not is_linear_map(function):
                place = functools.partial(_node_text, listing, position, roots)
                _check_leaf(function, place, False, is_result)
        elif (found := _array_in_meta(record, spec.namespace)) is not None:
            where = _node_text(listing, position, roots, found[0])
            raise TypeError(
                f"{where} is a meta field of {record.type}, and holds an array: {found[1]}\n"
                "  It would be a constant, neither traced nor trained, and stale when it changes. "
                "Make the field a data field; or keep the numbers there as a tuple."
            )


def _node_text(listing: Listing, position: int, roots: Roots, attribute: str = "func") -> str:
    return f"{way_text(listing, listing.way(position), roots)}.{attribute}"


def _function(detail: Any) -> Any:
    """The function of a partial whose arguments are opened; JAX and optree wrap a partial there."""
    if type(detail) is _Shim:
        return functools.partial(detail.func, *detail.args, **detail.keywords)
    return function_in(detail)


def is_linear_map(function: Any) -> bool:
    """Whether JAX made it, such as `jax.linearize`: a partial that holds constants of JAX's own."""
    own = inspect.unwrap(jax.linearize).__globals__
    while isinstance(function, functools.partial):
        function = function_in(function.func)
    made: Any = inspect.unwrap(function)
    return getattr(made, "__globals__", None) is own and not hasattr(jax, made.__name__)


def _array_in_meta(record: Record, namespace: str) -> tuple[str, str] | None:
    """The first meta field of a node that holds an array, and which.

    Looked for in partials, in fields, and in what pydag opens, such as modules; the core has found
    the arrays in builtin containers.
    """
    for name, value in (record.detail or ()) if record.kind == "fields" else ():
        if type(value) not in ATOMS and (found := array_beside(value, namespace)) is not None:
            return name, f"{name}{found.path()} is {short_repr(found.item)}"
    return None
