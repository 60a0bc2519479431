# SPDX-License-Identifier: Apache-2.0
"""Arguments that are chosen by number and by name."""

import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any

from pydag.structure.text import short_repr

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Spot = int | str
"""An argument of a call: its position or its name."""


def check_function(fun: Any) -> None:
    """Raises `TypeError` for an argument of a wrapper that can't be called."""
    if not callable(fun):
        raise TypeError(
            f"a function is transformed, and this can't be called: {short_repr(fun)}\n"
            "  Pass the function itself, not what it returned."
        )


def parameters_of(fun: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function; empty if its signature can't be read."""
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return []


def numbers_of(given: Any) -> tuple[int, ...]:
    """The positions that a user gave: one, several or None."""
    is_several = isinstance(given, Iterable) and not isinstance(given, str)
    items = tuple(given) if is_several else () if given is None else (given,)
    try:
        return tuple(map(operator.index, items))
    except TypeError:
        raise TypeError(
            f"an argument is chosen by its position, and {short_repr(given)} can't be interpreted "
            "as an integer\n  Positions count from 0. Where a function takes names, they are "
            "another option, such as donate_argnames; parts of an argument are selected by wrt= or "
            "static=."
        ) from None


def names_of(given: Any) -> tuple[str, ...]:
    """The names that a user gave: one, several or None."""
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


class Chosen(frozenset[Spot]):
    """Arguments of a function that were chosen, by position or name, however they are passed."""

    @classmethod
    def of(cls, fun: Callable[..., Any], numbers: Any, names: Any) -> "Chosen":
        """The chosen arguments. If only one kind is given, the signature tells the other."""
        chosen = cls((*numbers_of(numbers), *names_of(names)))
        if (numbers is None) == (names is None):
            return chosen
        both = [
            (i, p.name)
            for i, p in enumerate(parameters_of(fun))
            if p.kind is p.POSITIONAL_OR_KEYWORD
        ]
        if names is None:
            named = (name for i, name in both if not chosen.isdisjoint((i, i - len(both))))
            return cls(chosen.union(named))
        return cls(chosen.union(i for i, name in both if name in chosen))

    def spots(self, args: Args, kwargs: Kwargs) -> frozenset[Spot]:
        """The chosen arguments among those of a call."""
        count = len(args)
        known = {spot + count if isinstance(spot, int) and spot < 0 else spot for spot in self}
        return frozenset(known.intersection((*range(count), *kwargs)))


def spot_text(spot: Spot) -> str:
    """How paths into an argument begin."""
    return f"args[{spot}]" if isinstance(spot, int) else f"kwargs[{spot!r}]"


def pick(call: tuple[Args, Kwargs], spots: Iterable[Spot]) -> tuple[Any, ...]:
    """Some arguments of a call."""
    args, kwargs = call
    return tuple(args[spot] if isinstance(spot, int) else kwargs[spot] for spot in spots)
