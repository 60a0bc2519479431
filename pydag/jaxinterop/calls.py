# SPDX-License-Identifier: Apache-2.0
"""A call of the user's function, on a tree of its own."""

import functools
import inspect
import re
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.content.content import take_apart
from pydag.jaxinterop.content.options import CALL, Options, path_texts
from pydag.jaxinterop.content.packed import Origins, unpack
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.naming import Source, named
from pydag.jaxinterop.notices.lost_tie import started_equal, warn_of_lost_ties
from pydag.jaxinterop.notices.lost_update import warn_of_lost_updates, warn_of_unchangeable
from pydag.jaxinterop.refs import Refs
from pydag.jaxinterop.treatments.arguments import CallTree, Chosen, StaticArgument, parameters_of
from pydag.jaxinterop.treatments.treatments import Question, treatments
from pydag.jaxinterop.updates.changes import VALUES, Changes, Given
from pydag.jaxinterop.updates.update import Update
from pydag.sharing.tie import num_unties
from pydag.structure.listing import Listing
from pydag.structure.reshared import matched
from pydag.structure.text import short_repr
from pydag.typing import Dag, Leaf

Starts = tuple[dict[int, Any], Sequence[Leaf]]
"""What `first_arrays` gave, and the leaves that stand for these arrays now."""


def first_arrays(leaves: Sequence[Leaf], num_shared: int) -> dict[int, Any]:
    """Weak references to arrays for `started_equal`; none without ties, which could be lost."""
    kinds = jax_private.ArrayImpl, np.ndarray
    found = enumerate(leaves if num_shared else ())
    return {i: weakref.ref(leaf) for i, leaf in found if isinstance(leaf, kinds)}


def run(
    fun: Callable[..., Any],
    tree: CallTree,
    options: Options,
    source: Source,
    *,
    updated: Chosen | None = None,
    donated: Collection[Leaf] = (),
    is_staged: bool = True,
    starts: Starts = ({}, ()),
    origin: CallTree | None = None,
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
    copies: dict[int, int] = {}  # equal numbers for containers that are one object to the caller
    if spots and origin is not None:
        ours, whole = Listing.of(given.spec), options.flatten(origin, CALL)[1]
        pairs = () if whole == given.spec else matched(ours, Listing.of(whole)) or ()
        kept = ((given.objects[i], j) for i, j in pairs if not ours.records[i].is_leaf)
        copies = {id(x): -1 - j for x, j in kept if not isinstance(x, VALUES)}
    args = [x.value if type(x) is StaticArgument else x for x in tree[0]]
    kwargs = {n: x.value if type(x) is StaticArgument else x for n, x in tree[1].items()}
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


def run_body(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
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
    by_position = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = [p.name for p in parameters_of(fun) if p.kind in by_position][: len(names)]
    return tuple(found) if len(found) == len(names) else names


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
    text, is_blamed = str(error), getattr(error, "__notes__", None)
    if is_blamed or not isinstance(error, TypeError) or "on the value" not in text:
        return
    owned, _ = _core.module_leaves(given.spec)
    pairs = zip(path_texts(given.spec, given.roots), given.leaves, strict=True)
    numbers = [
        path
        for i, (path, leaf) in enumerate(pairs)
        if i not in owned and isinstance(leaf, jax.core.Tracer) and not leaf.ndim
        if leaf.dtype == bool or jax.typeof(leaf).weak_type
        if re.search(rf"(?<!\w){re.escape(path)}(?!\w|\[|\.\w)", text)
    ]
    if numbers:
        error.add_note(
            f"These numbers are traced, as in any record or dict: {', '.join(numbers[:4])}\n"
            "  A module's numbers and flags are static (pj.Module, pydag.register_module); others "
            "by static= or static_argnums=. To decide by data: jax.numpy.where, cond or a loop."
        )


class Arguments:
    """The arguments of a call, taken apart.

    Args:
        args, kwargs: The arguments.
        passes_refs: Whether JAX is given the refs, too. Otherwise the function closes over them.

    Attributes:
        content: The arguments without their traced leaves.
        leaves: What JAX is given.
        refs: The refs that the function closes over.
    """

    def __init__(
        self, args: Any, kwargs: Any, options: Options, *, passes_refs: bool = True
    ) -> None:
        self._options, self._tree = options, (args, kwargs)
        self._all, self.content = take_apart(self._tree, options, CALL)
        options.check_selects(self._tree)
        self.refs = Refs(() if passes_refs else self._all)
        self.leaves = self.refs.without(self._all)

    def treatments(self, question: Question, prefix: Any) -> tuple[Any, ...]:
        """What a prefix of the arguments answers for each traced leaf."""
        return tuple(treatments(question, prefix, self._tree, self.content, self._options))

    def function(
        self,
        get: Callable[[], Callable[..., Any]],
        source: Source,
        pack: Callable[[Any, Origins], Any],
        updated: Chosen | None = None,
    ) -> Callable[..., Any]:
        """The function of leaves that JAX is given. It doesn't own those of this call.

        Args:
            get: Returns the user's function.
            pack: Makes of its result what JAX gets.
            updated: Which arguments are updated; None for a wrapper that has no such option.
        """
        content, options, refs = self.content, self._options, self.refs
        arrays = first_arrays(self._all, content.spec.num_shared)

        def flat(*leaves: Leaf) -> Any:
            inside = refs.among(leaves)
            tree: Any = content.build(inside)
            starts = arrays, inside
            result, update = run(get(), tree, options, source, updated=updated, starts=starts)
            packed = pack(result, Refs(inside).origins)
            return _core.make_updated(None, (packed, *update)) if updated else packed

        return named(flat, source, lambda: refs.without(content.paths(CALL)))

    def paths(self) -> Sequence[str]:
        """The path of each leaf that JAX is given."""
        return self.refs.without(self.content.paths(CALL))

    def finish(self, returned: Any) -> Any:
        """The result for the caller; updates the arguments."""
        return unpack(returned, Refs(self._all), self._tree)
