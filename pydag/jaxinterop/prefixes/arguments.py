# SPDX-License-Identifier: Apache-2.0
"""Which arguments of a call are meant, by number and by name."""

import inspect
import operator
from collections.abc import Callable, Container, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import optree

from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.roots import CALL, place_text
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.untraced import Options
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr

from .treatments import Question, treatments

Spot = int | str
"""A positional argument by its number, or a keyword argument by its name."""

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


def as_numbers(numbers: int | Iterable[int] | None) -> tuple[int, ...]:
    """`argnums` of any form as a tuple; TypeError for anything but integers."""
    if numbers is None:
        return ()
    is_several = isinstance(numbers, Iterable) and not isinstance(numbers, str)
    several: Any = numbers if is_several else (numbers,)
    return tuple(_as_number(number) for number in several)


def _as_number(number: Any) -> int:
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(
            f"an argument is chosen by its position, and {short_repr(number)} can't be interpreted "
            "as an integer\n"
            "  Positions count from 0. Where a function takes names, they are another option, such "
            "as donate_argnames; parts of an argument are selected by wrt= or static=."
        ) from None


def as_names(names: str | Iterable[str] | None) -> tuple[str, ...]:
    """`argnames` of any form as a tuple."""
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


class Chosen(NamedTuple):
    """Arguments chosen by number (negative ones count from the end) and by name."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        fun: Callable[..., Any],
        numbers: int | Iterable[int] | None,
        names: str | Iterable[str] | None,
    ) -> "Chosen":
        """Where only numbers or only names are given, the signature tells the other."""
        chosen = cls(as_numbers(numbers), as_names(names))
        if (numbers is None) == (names is None):
            return chosen
        try:
            parameters = inspect.signature(fun).parameters.values()
        except (ValueError, TypeError):
            return chosen
        both = [
            (i, parameter.name)
            for i, parameter in enumerate(parameters)
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        if names is None:
            return cls(chosen.numbers, tuple(name for i, name in both if i in chosen.numbers))
        return cls(tuple(i for i, name in both if name in chosen.names), chosen.names)

    def spots(self, args: Args, kwargs: Kwargs) -> AbstractSet[Spot]:
        """Which arguments of this call are meant."""
        if not self.numbers and not self.names:
            return frozenset()
        count = len(args)
        numbers: set[Spot] = {i + count if i < 0 else i for i in self.numbers}
        return numbers.intersection(range(count)).union(n for n in self.names if n in kwargs)


def argument_text(accessor: optree.PyTreeAccessor) -> str:
    """A path into `(args, kwargs)` as a Python expression, such as `args[0]['layers'][3].w`."""
    return place_text(accessor, CALL)


def roots_of(listing: Listing, spots: Iterable[Spot]) -> Iterator[int]:
    """Where the arguments are in the listing of `(args, kwargs)`."""
    args, kwargs = listing.children(0)
    positional, named = listing.children(args), listing.named_children(kwargs)
    for spot in spots:
        yield positional[spot] if isinstance(spot, int) else named[spot]


def leaves_of(spec: PyDagSpec, spots: Iterable[Spot]) -> frozenset[int]:
    """The leaves of some arguments of a call, by their positions among all.

    Args:
        spec: Of `(args, kwargs)`.
    """
    listing = Listing.of(spec)
    return frozenset(listing.leaves_below(*roots_of(listing, spots)))


def wrap_static(chosen: Chosen, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """Static arguments as leaves, which the walk won't open."""
    spots = chosen.spots(args, kwargs)
    return (
        tuple(Static(arg) if i in spots else arg for i, arg in enumerate(args)),
        {name: Static(arg) if name in spots else arg for name, arg in kwargs.items()},
    )


def unwrap_static(argument: Any) -> Any:
    """A static argument as it was given."""
    return argument.value if type(argument) is Static else argument


def by_argument(
    args: Args,
    kwargs: Kwargs,
    treatment: Callable[[Spot], Any],
    question: Question,
    options: Options,
    only: Container[int] | None = None,
) -> list[Any]:
    """The treatment of each distinct leaf of `(args, kwargs)`, where arguments are treated whole.

    Args:
        only: The leaves that are meant, by their numbers; the others have no treatment.

    Raises:
        SharingError: Two arguments with different treatments hold one traced leaf.
    """
    return treatments(
        {"args": args, "kwargs": kwargs},
        {
            "args": tuple(map(treatment, range(len(args)))),
            "kwargs": {name: treatment(name) for name in kwargs},
        },
        question,
        options,
        only,
    )
