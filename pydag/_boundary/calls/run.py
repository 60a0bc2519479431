# SPDX-License-Identifier: Apache-2.0
"""Runs the user's function on a tree of its own."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from pydag._boundary.content.content import Content
from pydag._boundary.content.options import Options
from pydag._boundary.content.paths import CALL
from pydag._boundary.content.values import comparable
from pydag._boundary.notices.lost_tie import warn_of_lost_ties
from pydag._boundary.notices.lost_update import warn_of_lost_updates
from pydag._boundary.notices.source import Source
from pydag._boundary.treatments.arguments import Chosen
from pydag._boundary.updates.changes import Given
from pydag._boundary.updates.update import Update, UpdatedArguments
from pydag.sharing.tie import num_unties
from pydag.typing import Dag, Leaf


class StaticArgument:
    """A static argument: a leaf, whatever it is. It compares as a static value does.

    Args:
        value: The argument.
    """

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value, self._key = value, comparable(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticArgument) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _unwrapped(argument: Any) -> Any:
    return argument.value if type(argument) is StaticArgument else argument


def run(
    fun: Callable[..., Any],
    content: Content,
    leaves: Sequence[Leaf],
    options: Options,
    source: Source,
    *,
    updated: Chosen | None = None,
    is_staged: bool = True,
) -> tuple[Dag, Update]:
    """The result of a function, and what it writes into arguments that are updated.

    Args:
        content: Of the call: `(args, kwargs)`.
        leaves: Its traced leaves.
        updated: Which arguments are updated; None for a wrapper that has no such option.
        is_staged: Whether the function is traced to be run later.
    """
    tree = content.build(leaves)
    given = Given.of(tree, options, CALL)
    own = None if not updated else UpdatedArguments(given, updated, is_staged)
    args, kwargs = tree
    args = tuple(map(_unwrapped, args))
    kwargs = {name: _unwrapped(argument) for name, argument in kwargs.items()}
    before = num_unties()
    try:
        result = fun(*args, **kwargs)
    except Exception as error:
        _blame_number(error, content, leaves)
        raise
    update = Update() if own is None else own.update(result)
    spots = () if own is None else own.spots
    has_option = updated is not None
    warn_of_lost_updates(
        given, given.changes(), result, source, updated=spots, has_option=has_option
    )
    if content.spec.num_shared and num_unties() == before:
        warn_of_lost_ties(args, kwargs, options, result, source)
    return result, update


def _blame_number(error: Exception, content: Content, leaves: Sequence[Leaf]) -> None:
    """Says which numbers are traced, where Python code needs the value of one."""
    wanted = jax.errors.ConcretizationTypeError | jax.errors.TracerArrayConversionError
    if not isinstance(error, wanted) or getattr(error, "__notes__", None):
        return
    numbers = [
        path
        for path, leaf in zip(content.paths(CALL), leaves, strict=True)
        if isinstance(leaf, jax.core.Tracer) and leaf.ndim == 0 and jax.typeof(leaf).weak_type
    ]
    if numbers:
        error.add_note(
            f"These numbers are traced: {', '.join(numbers[:4])}. A module's numbers are static "
            "(pj.Module, pydag.register_module); others by static= or static_argnums=. To decide "
            "by data: jax.numpy.where, cond or a loop."
        )
