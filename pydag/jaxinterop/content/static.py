# SPDX-License-Identifier: Apache-2.0
"""The static leaves of a tree, and what else in it JAX doesn't see: which, and checks of them."""

import collections
import functools
import inspect
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import jax
import numpy as np

import pydag._core as _core
from pydag.errors import SharingError
from pydag.functools import partial
from pydag.jaxinterop.foreign.jax_private import function_in
from pydag.registry.functions import on_clear
from pydag.registry.tables import WeakTable, declared_fields
from pydag.structure.listing import Listing
from pydag.structure.reached import ATOMS
from pydag.structure.text import short_repr
from pydag.typing import Leaf

from .leaves import KNOWN_DTYPES, is_class_traced, is_number, is_traced
from .options import Roots, path_text, way_text
from .refused import check_value
from .values import array_beside

_PARTIALS = (jax.tree_util.Partial, partial)  # whose arguments are opened
_Shim: Any = type(partial(functools.partial(print)).func)


def untraced(leaves: Sequence[Leaf]) -> Sequence[int]:
    """The positions of the leaves that JAX doesn't take for arrays, mostly found by class."""
    examples = _core.one_of_each_class(leaves)
    answers = {key: is_class_traced(example) for key, example in examples.items()}
    if id(np.ndarray) in answers:
        arrays = leaves if len(answers) == 1 else [x for x in leaves if type(x) is np.ndarray]
        answers[id(np.ndarray)] = _have_known_dtypes(arrays) or None
    if None in answers.values():
        return [i for i, leaf in enumerate(leaves) if not is_traced(leaf)]
    wrong = [cls for cls, is_known in answers.items() if not is_known]
    return _core.positions_of_classes(leaves, wrong) if wrong else ()


def _have_known_dtypes(arrays: Sequence[Any]) -> bool:
    dtypes = [array.dtype for array in arrays]
    if dtypes.count(dtypes[0]) == len(dtypes):  # mostly; to count is faster than to take each id
        dtypes = dtypes[:1]
    return KNOWN_DTYPES.issuperset(map(id, dtypes))


def static_positions(
    leaves: Sequence[Leaf],
    spec: _core.PyDagSpec,
    roots: Roots,
    selected: Sequence[int] = (),
    mixed: dict[int, SharingError] | None = None,
) -> tuple[int, ...]:
    """The positions of the static leaves of a tree.

    Args:
        roots: What errors call the tree.
        selected: The positions that `static=` selects.
        mixed: Takes the errors that would be raised, by position.
    """
    examples = _core.one_of_each_class(leaves)
    classes = [cls for cls, example in examples.items() if is_number(example)]
    numbers = _core.positions_of_classes(leaves, classes) if classes else []
    owned, by_some = leaves_of_modules(spec) if numbers else (frozenset[int](), frozenset[int]())
    for i in sorted(by_some.intersection(numbers)):
        if mixed is None:
            raise _two_owners(spec, i, roots)
        mixed[i] = _two_owners(spec, i, roots)
    return tuple(sorted({*owned.intersection(numbers), *selected, *untraced(leaves)}))


_MOST = 64  # leaves of a tree whose static leaves are remembered
_remembered: WeakTable[dict[tuple[type, ...], tuple[int, ...]]] = WeakTable()
"""Of a structure that lives, by the classes of its leaves."""
_alive = collections.deque[_core.PyDagSpec](maxlen=16)
"""The last structures of which something is remembered."""
on_clear.append(_alive.clear)


def remembered(leaves: Sequence[Leaf], spec: _core.PyDagSpec) -> tuple[int, ...] | None:
    """The positions of the static leaves, where no more than their classes decides; else None."""
    found = _remembered.get(spec, None) if len(leaves) <= _MOST else None
    positions = found.get(tuple(map(type, leaves))) if found else None
    if positions is None:
        return None
    arrays = [leaf for leaf in leaves if type(leaf) is np.ndarray]
    return positions if not arrays or _have_known_dtypes(arrays) else None


def remember(leaves: Sequence[Leaf], spec: _core.PyDagSpec, positions: tuple[int, ...]) -> None:
    """Remembers checked positions, if a check of other leaves of these classes would pass, too."""
    if len(leaves) > _MOST or _may_hold_arrays(spec):
        return
    for leaf in leaves:
        is_plain = type(leaf) in ATOMS or is_number(leaf) or is_class_traced(leaf)
        if not is_plain and type(leaf) is not np.ndarray:
            return
    known = _remembered.get(spec, {})
    if not known:
        _alive.append(spec)
    if len(known) < _MOST:
        _remembered.set(spec, {**known, tuple(map(type, leaves)): positions})


# Of a structure that lives: which leaves modules own, and which they own by one path of several.
_owned: WeakTable[tuple[frozenset[int], ...]] = WeakTable()


def leaves_of_modules(spec: _core.PyDagSpec) -> tuple[frozenset[int], ...]:
    """The positions of leaves that modules own by all paths, and by some of several."""
    known = _owned.get(spec, None)
    if known is None:
        known = tuple(map(frozenset, _core.module_leaves(spec)))
        _owned.set(spec, known)
    return known


def _two_owners(spec: _core.PyDagSpec, leaf: int, roots: Roots) -> SharingError:
    listing = Listing.of(spec)
    found: dict[bool, str] = {}
    for way, _ in zip(listing.ways(listing.leaves[leaf]), range(256), strict=False):
        owners = [listing.records[listing.target(step)] for step in way]
        registered = [o.type for o in owners if o.kind in ("fields", "custom type")]
        is_owned = bool(registered) and _core.is_module(registered[-1], spec.namespace)
        found.setdefault(is_owned, way_text(listing, way, roots))
    return SharingError(
        "one number is both a module's configuration and data\n"
        f"  {found.get(True, 'along one path')} is static: a module holds it\n"
        f"  {found.get(False, 'along another')} is traced: no module holds it there\n"
        "  The container that holds it is one object at both places: give one of them a copy."
    )


def check(
    spec: _core.PyDagSpec,
    roots: Roots,
    positions: Sequence[int],
    values: Sequence[Leaf],
    selected: Collection[int],
    is_result: bool,
) -> None:
    """Checks a structure, and its static leaves; `static=` has selected those at some positions."""
    if _may_hold_arrays(spec):
        listing = Listing.of(spec)
        check_nodes(listing, range(len(listing.records)), roots, spec.namespace, is_result)
    examples = _core.one_of_each_class(values) if values else {}
    # Text and numbers are values.
    doubtful = [cls for cls, x in examples.items() if type(x) not in ATOMS and not is_number(x)]
    for number in _core.positions_of_classes(values, doubtful) if doubtful else ():
        i = positions[number]
        place = functools.partial(path_text, spec, roots, i)
        check_value(values[number], place, i in selected, is_result)


def _may_hold_arrays(spec: _core.PyDagSpec) -> bool:
    """Whether a node has more than its children."""
    classes: dict[type, bool] = {}
    namespace = spec.namespace
    _core.leaves_below(spec, lambda cls: classes.setdefault(cls, _holds_more(cls, namespace)))
    return any(classes.values())


_known: WeakTable[dict[str, bool]] = WeakTable()
"""For classes whether their nodes hold more than children, by namespace."""


def _holds_more(cls: type, namespace: str) -> bool:
    """Whether nodes of a class hold a function, or meta fields, beside their children."""
    answers = _known.get(cls, {})
    if namespace not in answers:
        flatten, *_ = _core.find_registration(cls, namespace) or ("none",)
        has_meta = getattr(flatten, "has_meta_fields", False)
        if flatten is None:  # pydag opens it by its fields
            has_meta = bool(declared_fields(cls)[1])
        answers[namespace] = has_meta or cls in _PARTIALS
        _known.set(cls, answers)
    return answers[namespace]


def check_nodes(
    listing: Listing,
    positions: Iterable[int],
    roots: Roots,
    namespace: str,
    is_result: bool = False,
) -> None:
    """Checks what nodes at some positions hold besides their children; raises as `check` does."""
    for position in positions:
        record = listing.records[position]
        if record.type in _PARTIALS:
            function = detail = record.detail  # JAX and optree wrap a partial there
            if type(detail) is _Shim:
                function = functools.partial(detail.func, *detail.args, **detail.keywords)
            if not is_linear_map(function := function_in(function)):
                place = functools.partial(_node_text, listing, position, roots, "func")
                check_value(function, place, is_result=is_result)
            continue
        # The core has found the arrays in builtin containers: not those in partials, in fields, and
        # in what pydag opens, such as modules.
        for name, value in (record.detail or ()) if record.kind == "fields" else ():
            if type(value) in ATOMS or (found := array_beside(value, namespace)) is None:
                continue
            where = _node_text(listing, position, roots, name)
            raise TypeError(
                f"{where} is a meta field of {record.type}, and holds an array: "
                f"{name}{found.path()} is {short_repr(found.item)}\n"
                "  It would be compiled in as a constant, neither traced nor trained. "
                "Make the field a data field; or keep the numbers there as a tuple."
            )


def _node_text(listing: Listing, position: int, roots: Roots, attribute: str) -> str:
    return f"{way_text(listing, listing.way(position), roots)}.{attribute}"


def is_linear_map(function: Any) -> bool:
    """Whether JAX made it, such as `jax.linearize`: a partial that holds constants of JAX's own."""
    own = inspect.unwrap(jax.linearize).__globals__
    while isinstance(function, functools.partial):
        function = function_in(function.func)
    made: Any = inspect.unwrap(function)
    return getattr(made, "__globals__", None) is own and not hasattr(jax, made.__name__)
