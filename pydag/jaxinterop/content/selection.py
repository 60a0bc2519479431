# SPDX-License-Identifier: Apache-2.0
"""Which leaves are differentiated or trained, by `wrt=` or without, and what a gradient holds.

*State* isn't differentiated or trained unless `wrt=` names it. In NNX that is what Variables hold,
other than `nnx.Param`s; or such a Variable (of a hijax type, which JAX doesn't open).

A gradient has the class, the sharing and the configuration of its tree. It has None at leaves
without a derivative, and where JAX sees configuration as leaves (equinox modules, records, dicts):
to add a gradient to a model would double a head count.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.foreign.flax_private import is_module_class
from pydag.jaxinterop.foreign.flax_private import variable_classes as classes_of_flax
from pydag.jaxinterop.naming import warn_at_call
from pydag.ops.select import is_prefix, select
from pydag.registry.classes import inherits
from pydag.registry.tables import WeakTable
from pydag.structure.listing import Listing
from pydag.structure.near import common_steps, pattern_of
from pydag.structure.reshared import apart
from pydag.typing import Dag, Leaf, Where

from .content import Content
from .leaves import is_array_type, is_like_array, is_number
from .options import Options, Roots, path_texts

hides_configuration: WeakTable[bool] = WeakTable()
"""Classes in whose instances JAX sees arrays alone, the rest being structure."""

variable_classes: list[tuple[type, type]] = []
"""Pairs of a class of variables and the class of those that are trained."""


def is_differentiable(leaf: Any, allow_int: bool = False) -> bool:
    """Whether an array, a number or another leaf has a derivative."""
    if type(leaf) is jax_private.ArrayImpl or isinstance(leaf, np.ndarray):
        dtype: Any = leaf.dtype  # type: ignore[attr-defined]  # narrowed to a bare class
    elif is_number(leaf):
        return isinstance(leaf, float | complex | np.inexact) or allow_int
    elif jax_private.is_ref(leaf):
        return False
    elif is_array_type(type_ := jax.typeof(leaf)):
        dtype = type_.dtype
    else:
        try:
            dtype = getattr(type_.to_tangent_aval(), "dtype", None)
        except Exception:  # it has no tangents
            return False
    if dtype is None or jnp.issubdtype(dtype, np.inexact):
        return True
    is_integer = dtype != jax.dtypes.float0 and not jnp.issubdtype(dtype, jax.dtypes.extended)
    return allow_int and is_integer


def are_no_state(content: Content, leaves: Sequence[Leaf]) -> Sequence[bool]:
    """Which of the traced leaves aren't state. What a Variable holds is at no other place."""
    found = [True] * len(leaves)
    if variable_classes:
        below = _core.leaves_below(
            content.spec,
            lambda cls: any(
                inherits(cls, variable) and not inherits(cls, trained)
                for variable, trained in variable_classes
            ),
        )
        found = [not is_below for is_below in content.traced_among(below)]
    classes = classes_of_flax()
    if classes is not None:
        for i, leaf in enumerate(leaves):
            if not is_like_array(leaf) and is_variable(leaf):
                found[i] = isinstance(leaf, classes[1])
    return found


def is_variable(leaf: Leaf) -> bool:
    """Whether a leaf is a Variable of NNX, or a tracer of one."""
    classes = classes_of_flax()
    return classes is not None and isinstance(leaf, classes[0])


def derivative(content: Content, found: Mapping[int, Leaf]) -> Dag:
    """The gradient, given its leaves by their positions among all of the tree's."""
    hidden = _core.leaves_below(content.spec, lambda cls: hides_configuration.get(cls, False))
    leaves: list[Any] = [found.get(i) for i in range(content.spec.num_leaves)]
    for i, value in zip(content.positions, content.values, strict=True):
        if hidden[i]:
            leaves[i] = value
    try:
        return _core.unflatten(content.spec, leaves)
    except Exception as error:
        if None in leaves:
            error.add_note(
                "This is a gradient, in which None stands at leaves without a derivative, and the "
                "class doesn't keep None when it is built.\n  Register the class by its fields "
                "(pydag.register_fields), so that no constructor runs; or select all that it "
                "holds (wrt=)."
            )
        raise


def zero_tangent(type_: Any) -> Any:
    """A zero tangent of what is of a type of JAX's."""
    if not is_array_type(type_):
        tangent = type_.to_tangent_aval()
        return zero_tangent(tangent) if is_array_type(tangent) else tangent.vspace_zero()
    if jnp.issubdtype(type_.dtype, np.inexact):
        return jnp.zeros(type_.shape, type_.dtype)
    return np.zeros(type_.shape, jax.dtypes.float0)


_MOST_PLACES = 20_000  # there may be astronomically many


class SharedSelectionWarning(UserWarning):
    """All that a selection selects is at places, too, that it doesn't select.

    Such as `wrt="*policy*"` of `{"policy": model, "reference": model}`: the object is selected
    at all of its places. There is no warning if the other places are in the same module.
    """


def selected(
    wrt: Where | None,
    content: Content,
    leaves: Sequence[Leaf],
    able: Sequence[bool],
    roots: Roots,
    options: Options,
    is_one: bool = False,
) -> Sequence[bool]:
    """Whether `wrt` selects each traced leaf of a tree; None selects all but state.

    Warns if it selects two leaves or more, and each is also at a place that it doesn't select, and
    that no module holds together with one that it selects.

    Args:
        able: Which of the traced leaves can be selected. Predicates are asked about these.
        is_one: Whether a prefix is one of the only item of the tree.
    """
    if wrt is None:
        return are_no_state(content, leaves)
    spec, positions, namespace = content.spec, content.traced_positions(), options.namespace
    able_leaves: list[Leaf] = [None] * spec.num_leaves
    for i, leaf, can_be in zip(positions, leaves, able, strict=True):
        able_leaves[i] = leaf if can_be else None
    if is_one and is_prefix(wrt, namespace):
        return content.traced_among(select(wrt, spec.child(0), able_leaves, namespace))
    depth, must_match = 0 if isinstance(roots, str) else 1, bool(leaves)
    how: Any = {"asked": _there, "depth": depth, "roots": roots, "must_match": must_match}
    flags = select(wrt, spec, able_leaves, namespace, **how)
    chosen = [i for i, can_be in zip(positions, able, strict=True) if can_be and flags[i]]
    _warn(wrt, chosen, spec, able_leaves, roots, depth)
    return content.traced_among(flags)


def _warn(
    where: Where,
    chosen: Collection[int],
    spec: _core.PyDagSpec,
    leaves: Any,
    roots: Roots,
    depth: int,
) -> None:
    is_predicate = callable(where) and not isinstance(where, type)  # it is asked about leaves
    if len(chosen) < 2 or not spec.num_shared or is_predicate or is_prefix(where, spec.namespace):
        return
    listing = Listing.of(spec)
    if sum(listing.num_ways()) > _MOST_PLACES:
        return
    numbers = itertools.count(1)
    places = apart(listing, spec, 0, lambda _, __, below: [next(numbers) for _ in below])
    picked = frozenset(chosen)
    each = [leaves[i] if i in picked else None for i in places.leaves]
    flags = select(where, places.spec, each, spec.namespace, asked=_there, depth=depth)
    inside = Listing.of(places.spec)
    ways = [inside.way(position) for position in inside.leaves]
    # For each leaf the places that it has by the selection, and all others; with outermost modules.
    found: dict[bool, dict[int, list[tuple[int, int | None]]]] = {True: {}, False: {}}
    for place, (leaf, flag) in enumerate(zip(places.leaves, flags, strict=True)):
        steps = ((step, inside.records[step].type) for step in (0, *ways[place]))
        module = next((i for i, cls in steps if is_module_class(cls, spec.namespace)), None)
        found[flag].setdefault(leaf, []).append((place, module))
    pairs, parts = list[tuple[int, int]](), dict[tuple[int, ...], list[list[int]]]()
    for leaf in sorted(picked):
        modules = {module for _, module in found[True][leaf]} - {None}
        far = [place for place, module in found[False].get(leaf, ()) if module not in modules]
        if not far:
            return
        own = found[True][leaf][0][0]
        pairs.append((own, far[0]))
        for place in far:
            start = ways[place][: len(common_steps([ways[own], ways[place]])) + 1]
            parts.setdefault(tuple(start), []).append(ways[place][depth:])
    given = where if type(where) is list else [where]
    if not all(isinstance(item, str) for item in given):
        given = [pattern_of(inside, [ways[own][depth:] for own, _ in pairs])]
    both = [*given, *(pattern_of(inside, part) for part in parts.values())]
    texts, (one, other) = path_texts(places.spec, roots), pairs[0]
    warn_at_call(
        f"wrt selects {texts[one]}, and with it {texts[other]}, which is the same object; and so "
        "on for all that it selects\n  If the two only start equal, make one of them a copy: "
        f"pj.tree.copy(...). If both are meant, select both: wrt={both}.",
        SharedSelectionWarning,
    )


def _there(leaves: Sequence[Leaf], _: _core.PyDagSpec) -> list[bool]:
    return [leaf is not None for leaf in leaves]
