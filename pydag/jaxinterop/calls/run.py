# SPDX-License-Identifier: Apache-2.0
"""Runs the user's function on a tree of its own."""

import functools
import inspect
import re
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import CALL, path_texts
from pydag.jaxinterop.content.values import array_in_static
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.lost_tie import started_equal, warn_of_lost_ties
from pydag.jaxinterop.notices.lost_update import warn_of_lost_updates, warn_of_unchangeable
from pydag.jaxinterop.notices.source import Source
from pydag.jaxinterop.treatments.arguments import (
    Args,
    Chosen,
    Kwargs,
    Spot,
    parameters_of,
    spot_text,
)
from pydag.jaxinterop.updates.changes import VALUES, Changes, Given
from pydag.jaxinterop.updates.update import Update
from pydag.sharing.tie import num_unties
from pydag.structure.listing import Listing
from pydag.structure.reshared import matched
from pydag.structure.text import short_repr
from pydag.typing import Dag, Leaf


class StaticArgument:
    """A static argument: a leaf, whatever it is. It compares as a static value does."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StaticArgument):
            return NotImplemented
        return _core.is_same_value(self.value, other.value)

    def __hash__(self) -> int:
        return _core.value_hash(self.value)

    def _brief_repr(self) -> str:
        return short_repr(self.value)


def unwrapped(argument: Any) -> Any:
    """The argument as the user gave it."""
    return argument.value if type(argument) is StaticArgument else argument


def static_argument(
    value: Any, spot: Spot, options: Options, *, is_hashed: bool = True
) -> StaticArgument:
    """A static argument; `ValueError` if it holds an array, or can't be hashed and has to be."""
    where = spot_text(spot)
    found = array_in_static(value, options.namespace)
    if found is not None:
        raise ValueError(
            f"{where} is a static argument and holds an array: {where}{found.path()} is "
            f"{short_repr(found.item)}\n  It would be a constant, and stale when it changes. "
            "Pass it as an ordinary argument, of a registered class: a module's numbers are static "
            "as they are."
        )
    try:
        hash(value if is_hashed else None)
    except TypeError as error:
        raise ValueError(
            f"{where} is a static argument and can't be hashed: {error}\n  A static argument is "
            "part of the key of the compiled function. Pass a hashable value, such as a tuple for "
            "a list."
        ) from None
    return StaticArgument(value)


Starts = tuple[dict[int, Any], Sequence[Leaf]]
"""What `first_arrays` gave, and the leaves that stand for these arrays now."""


def first_arrays(leaves: Sequence[Leaf], num_shared: int) -> dict[int, Any]:
    """Weak references to arrays for `started_equal`; none without ties, which could be lost."""
    kinds = jax_private.ArrayImpl, np.ndarray
    found = enumerate(leaves if num_shared else ())
    return {i: weakref.ref(leaf) for i, leaf in found if isinstance(leaf, kinds)}


def run(
    fun: Callable[..., Any],
    tree: tuple[Args, Kwargs],
    options: Options,
    source: Source,
    *,
    updated: Chosen | None = None,
    donated: Collection[Leaf] = (),
    is_staged: bool = True,
    starts: Starts = ({}, ()),
    origin: tuple[Args, Kwargs] | None = None,
) -> tuple[Dag, Update]:
    """The result of a function, and what it writes into arguments that are updated.

    Args:
        tree: The arguments, made for this call.
        updated: Which arguments are updated; None for a wrapper that has no such option.
        is_staged: Whether the function is traced to be run later.
        origin: The caller's arguments, where an object of these may be two in `tree`.
    """
    spots = updated.spots(*tree) if updated else ()
    given = Given.of(tree, options, CALL)
    copies = _copies_of(origin, given) if spots and origin is not None else None
    args = tuple(map(unwrapped, tree[0]))
    kwargs = {name: unwrapped(argument) for name, argument in tree[1].items()}
    result = _called(functools.partial(fun, *args, **kwargs), given, source, starts)
    changes = Changes(given, spots, copies)
    update = Update()
    if spots:
        update = Update.of(changes, result, donated, is_staged)
        if changes.untouched:
            warn_of_unchangeable(given, changes.untouched, source)
    if changes.others and source.is_run:
        warn_of_lost_updates(changes, result, source, has_option=updated is not None)
    return result, update


def _copies_of(origin: Dag, given: Given) -> dict[int, int]:
    """Equal numbers for containers of a tree that are one object in the caller's, by their ids."""
    _, whole = given.options.flatten(origin, given.roots)
    ours, objects = Listing.of(given.spec), given.objects
    pairs = () if whole == given.spec else matched(ours, Listing.of(whole)) or ()
    kept = ((i, j) for i, j in pairs if not ours.records[i].is_leaf)
    return {id(objects[i]): -1 - j for i, j in kept if not isinstance(objects[i], VALUES)}


def run_body(
    fun: Callable[..., Any],
    args: Args,
    options: Options,
    source: Source,
    *names: str,
    starts: Starts = ({}, ()),
) -> Dag:
    """The result of the body of a loop. Messages use the names that `names_in_body` finds."""
    given = Given.of(args, options, names_in_body(fun, *names))
    result = _called(functools.partial(fun, *args), given, source, starts)
    changes = Changes(given)
    if changes.others:
        warn_of_lost_updates(changes, result, source)
    return result


def pair_of(result: Any, who: str, what: str) -> Any:
    """The result of a function; raises `TypeError` if it is no pair."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(f"{who} must return a pair {what}, got {short_repr(result)}")
    return result


def names_in_body(fun: Callable[..., Any], *names: str) -> tuple[str, ...]:
    """The names of the parameters of a body; these names if its signature can't be read."""
    found = [p.name for p in parameters_of(fun) if p.kind in _POSITIONAL][: len(names)]
    return tuple(found) if len(found) == len(names) else names


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _called(call: Callable[[], Dag], given: Given, source: Source, starts: Starts) -> Dag:
    """The result of a function. Warns of lost ties."""
    before = num_unties()
    try:
        result = call()
    except Exception as error:
        _blame_number(error, given)
        raise
    is_leaf = _core.is_leaf(result, namespace=given.options.namespace)
    if given.spec.num_shared and not is_leaf and num_unties() == before:
        warn_of_lost_ties(given, result, source, functools.partial(started_equal, *starts))
    arrays, _ = starts
    for place, known in list(arrays.items()):  # threads may change it
        if not isinstance(known, bool):
            arrays.pop(place, None)  # answers alone are kept
    return result


def _blame_number(error: Exception, given: Given) -> None:
    """Adds how numbers become static to an error about code that needs the value of a number."""
    text = str(error)
    is_other = not isinstance(error, TypeError) or "on the value" not in text
    if is_other or getattr(error, "__notes__", None):
        return
    owned, _ = _core.module_leaves(given.spec)
    paths = path_texts(given.spec, given.roots)
    numbers = [
        path
        for i, (path, leaf) in enumerate(zip(paths, given.leaves, strict=True))
        if i not in owned and _may_be_number(leaf)
        if re.search(rf"(?<!\w){re.escape(path)}(?!\w|\[|\.\w)", text)
    ]
    if numbers:
        error.add_note(
            f"These numbers are traced, as in any record or dict: {', '.join(numbers[:4])}\n"
            "  A module's numbers and flags are static (pj.Module, pydag.register_module); others "
            "by static= or static_argnums=. To decide by data: jax.numpy.where, cond or a loop."
        )


def _may_be_number(leaf: Any) -> bool:
    is_scalar = isinstance(leaf, jax.core.Tracer) and not leaf.ndim
    return is_scalar and (leaf.dtype == bool or bool(jax.typeof(leaf).weak_type))
