# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call divided into those that are differentiated by, and the others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pydag.typing import Leaf

from .arguments import Args, Kwargs, as_numbers, by_argument, joined
from .call import Call, argument_paths
from .dag import rebuilt
from .prefixes import Question
from .static_part import Options, take_apart

QUESTION = Question(
    "argnums",
    lambda by: "differentiated" if by else "not differentiated",
    "Differentiate by both arguments, or give one of them a copy.",
)


def _wanted(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Argument numbers counted from the front."""
    for number in numbers:
        if not -count <= number < count:
            raise TypeError(
                f"can't differentiate by the positional argument {number}: the function was "
                f"called with {count} positional arguments"
            )
    return tuple(number % count for number in numbers)


class Argnums(NamedTuple):
    """The arguments to differentiate by, as they were given."""

    numbers: tuple[int, ...]
    is_one: bool

    @classmethod
    def of(cls, argnums: int | Iterable[int]) -> "Argnums":
        return cls(as_numbers(argnums), not isinstance(argnums, Iterable))


class Divided:
    """A call whose leaves are divided. `by` are those of the arguments `argnums`."""

    def __init__(self, argnums: Argnums, args: Args, kwargs: Kwargs, options: Options) -> None:
        self.is_one = argnums.is_one
        self.wanted = _wanted(argnums.numbers, len(args))
        self.call = Call.of(args, kwargs, options)
        self.in_order = sorted(set(self.wanted))
        static_part, leaves = self.call._static_part, self.call._leaves
        if len(self.in_order) == len(args) and not kwargs:
            self.picked: Sequence[int] = range(len(leaves))
        else:
            is_by = by_argument(args, kwargs, self.in_order.__contains__, QUESTION, options)
            self.picked = [i for i, p in enumerate(static_part.traced_positions()) if is_by[p]]
        chosen = frozenset(self.picked)
        self.by = [leaves[i] for i in self.picked]
        self.others = [leaf for i, leaf in enumerate(leaves) if i not in chosen]
        self.static_part, _ = take_apart(tuple(args[i] for i in self.in_order), options)

    def run(self, fun: Callable[..., Any], by: Sequence[Leaf], others: Sequence[Leaf]) -> Any:
        """What a function returns for the call with these leaves."""
        call = rebuilt(self.call._static_part, joined(self.picked, by, others), Call)
        return call.run(fun)

    def gradient(self, leaves: Iterable[Any]) -> Any:
        """What was computed for each of `by`, in the form of the arguments `argnums`."""
        trees = dict(zip(self.in_order, self.static_part.build(leaves), strict=True))
        gradient = tuple(trees[i] for i in self.wanted)
        return gradient[0] if self.is_one else gradient

    def by_with_paths(self) -> Iterator[tuple[str, Leaf]]:
        """The leaves that are differentiated by, with their paths."""
        paths = argument_paths(self.call._static_part)
        return zip((paths[i] for i in self.picked), self.by, strict=True)
