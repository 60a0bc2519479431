# SPDX-License-Identifier: Apache-2.0
"""Arguments that are chosen by number and by name, and static ones among them."""

import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any

import pydag._core as _core
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.values import array_in_static
from pydag.structure.text import short_repr

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
CallTree = tuple[Args, Kwargs]
Spot = int | str
"""An argument of a call: its position or its name."""


def check_function(fun: Any) -> None:
    """Raises `TypeError` for an argument of a wrapper that can't be called."""
    if not callable(fun):
        raise TypeError(
            f"expected a function, and this can't be called: {short_repr(fun)}\n"
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
        parameters = enumerate(parameters_of(fun))
        both = [(i, p.name) for i, p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
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


def static_argument(
    value: Any, spot: Spot, options: Options, *, is_hashed: bool = True
) -> StaticArgument:
    """A static argument; `ValueError` if it holds an array, or can't be hashed and has to be."""
    where = spot_text(spot)
    found = array_in_static(value, options.namespace)
    if found is not None:
        raise ValueError(
            f"{where} is a static argument and holds an array: {where}{found.path()} is "
            f"{short_repr(found.item)}\n  It would be compiled in as a constant. Pass it as an "
            "ordinary argument, of a registered class: a module's numbers are static as they are."
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
