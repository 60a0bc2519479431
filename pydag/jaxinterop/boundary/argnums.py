# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call divided into those that are differentiated by, and the others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import optree

from pydag import _core
from pydag.jaxinterop.prefixes.arguments import (
    Args,
    Chosen,
    Kwargs,
    as_numbers,
    by_argument,
    joined,
)
from pydag.jaxinterop.prefixes.treatments import COPIES, Question, Slot, shortened
from pydag.jaxinterop.static.bare_arrays import without_bare
from pydag.jaxinterop.static.differentiable import is_differentiable
from pydag.jaxinterop.static.state_variables import are_state
from pydag.jaxinterop.static.untraced import Options, Untraced, take_apart, untraced_of
from pydag.ops.select import select, where_there
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr
from pydag.typing import Leaf, Where

from .blame import type_text
from .call import Call, argument_paths
from .dag import rebuilt
from .derivatives import Structures, derivative
from .updates import NOTHING, Update

QUESTION = Question(
    "argnums",
    lambda by: "differentiated" if by else "not differentiated",
    "Differentiate by both arguments, or give one of them a copy; or differentiate by both, and "
    f"take jax.lax.stop_gradient of one inside.\n  {COPIES}",
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


def select_among(
    untraced: Untraced,
    leaves: Sequence[Leaf],
    can: Sequence[bool],
    wrt: Where,
    depth: int = 0,
    must_match: bool = True,
) -> list[bool]:
    """Whether each traced leaf is selected. Predicates are asked of those that can be, alone.

    Args:
        leaves: The traced ones.
        can: Whether each of them may be selected.
        depth, must_match: As in `pydag.ops.select.select`.
    """
    positions, shown = untraced.traced_positions(), [None] * untraced.spec.num_leaves
    for position, leaf, may_be in zip(positions, leaves, can, strict=True):
        shown[position] = leaf if may_be else None
    found = select(
        where_there(wrt),
        Listing.of(untraced.spec),
        shown,
        untraced.options.namespace,
        depth=depth,
        must_match=must_match,
    )
    return [found[position] for position in positions]


class Divided:
    """A call whose leaves are divided: `by` are those that are differentiated by.

    These are of the arguments `argnums`. Leaves of other types than JAX can differentiate by, and
    what `wrt` doesn't select, are passed through.

    Raises:
        SharingError: One that is differentiated by is in an argument that isn't meant, too.
        TypeError: There are arrays, but nothing to differentiate by.
        ValueError: `wrt` doesn't fit: a pattern that no path matches, a prefix of another form.
    """

    def __init__(
        self,
        argnums: Argnums,
        wrt: Where | None,
        args: Args,
        kwargs: Kwargs,
        options: Options,
        allow_int: bool = False,
    ) -> None:
        self.wanted = _wanted(argnums.numbers, len(args))
        self.call = Call.told_apart(args, kwargs, options)
        args, kwargs = self.call.tree
        tree = args[self.wanted[0]] if argnums.is_one else tuple(args[i] for i in self.wanted)
        self._tree, self._depth = tree, 0 if argnums.is_one else 1
        self._structures: Structures | None = None
        copies = None if options.static is None else self._copies()
        self.untraced, self._own = self._own_part(tree, copies, argnums.is_one)
        if not kwargs and self.wanted == tuple(range(len(args))):
            places: Sequence[int] = range(len(self._own))
        else:
            copies = copies or self._copies()
            places = self._places(copies, argnums.is_one)
        self.untraced.check_not_lazy("differentiated by", self._path)
        if not self._own and self.untraced.positions:
            raise TypeError(self._no_arrays(args))
        can = [is_differentiable(leaf, allow_int) for leaf in self._own]
        chosen = self._trained(can) if wrt is None else self._selected(wrt, can)
        self._chosen = [place if is_by else -1 for place, is_by in zip(places, chosen, strict=True)]
        picked = {place for place in self._chosen if place >= 0}
        if copies is not None:
            self._check_others(copies, picked, args, kwargs)
        leaves = self.call._leaves
        self.picked = sorted(picked)
        self.by = [leaves[i] for i in self.picked]
        self.others = [leaf for i, leaf in enumerate(leaves) if i not in picked]

    def _copies(self) -> Any:
        """The call, with a number for each leaf."""
        untraced = self.call._untraced
        return _core.unflatten(untraced.spec, map(Slot, range(untraced.spec.num_leaves)))

    def _own_part(self, tree: Any, copies: Any, is_one: bool) -> tuple[Untraced, Sequence[Leaf]]:
        """The wanted arguments, taken apart. In them is static what is static in the call."""
        options = self.call._untraced.options
        if copies is None:
            return take_apart(tree, options)
        static = frozenset(self.call._untraced.positions)
        numbers = [slot.index for slot in self._slots(copies, is_one)]
        positions = tuple(i for i, number in enumerate(numbers) if number in static)
        flattened, spec = options.flatten(tree)
        leaves = without_bare(flattened)
        untraced = untraced_of(leaves, spec, positions, options, "tree", positions)
        return untraced, [x for x, n in zip(leaves, numbers, strict=True) if n not in static]

    def _slots(self, copies: Any, is_one: bool) -> list[Slot]:
        args = copies[0]
        tree = args[self.wanted[0]] if is_one else tuple(args[i] for i in self.wanted)
        return self.call._untraced.options.leaves(tree)

    def _places(self, copies: Any, is_one: bool) -> list[int]:
        """For each traced leaf of the wanted arguments which one of the call's it is."""
        slots = self._slots(copies, is_one)
        numbers = {p: i for i, p in enumerate(self.call._untraced.traced_positions())}
        return [numbers[slots[p].index] for p in self.untraced.traced_positions()]

    def _check_others(self, copies: Any, picked: set[int], args: Args, kwargs: Kwargs) -> None:
        wanted, options = frozenset(self.wanted), self.call._untraced.options
        others = [arg for i, arg in enumerate(copies[0]) if i not in wanted]
        positions = self.call._untraced.traced_positions()
        by = {positions[place] for place in picked}
        if any(slot.index in by for slot in options.leaves([others, copies[1]])):
            by_argument(args, kwargs, wanted.__contains__, QUESTION, options, by)

    def _trained(self, can: Sequence[bool]) -> list[bool]:
        """What is differentiated by where nobody says by what."""
        if not any(can):
            return [True] * len(can)  # JAX says what it is that it can't differentiate by
        state = are_state(self.untraced.spec, self.untraced.traced_positions())
        chosen = [a and not b for a, b in zip(can, state, strict=True)]
        if not any(chosen):
            raise TypeError(
                "there is nothing to differentiate by: all that has a derivative is held by "
                "Variables that are no nnx.Param, which are state\n"
                "  Select what is meant by wrt=, such as wrt=nnx.Variable."
            )
        return chosen

    def _selected(self, wrt: Where, can: Sequence[bool]) -> list[bool]:
        if not self._own:
            return []
        found = select_among(self.untraced, self._own, can, wrt, self._depth)
        chosen = [a and b for a, b in zip(found, can, strict=True)]
        if not any(chosen):
            raise TypeError(self._nothing(found))
        return chosen

    def _no_arrays(self, args: Args) -> str:
        """The text of an error: the arguments hold nothing that JAX takes for an array."""
        places = " and ".join(f"args[{i}]" for i in self.wanted)
        shown = shortened(", ".join(short_repr(args[i]) for i in self.wanted))
        return (
            f"there is nothing to differentiate by: {places} holds no array and no number that is "
            f"data, {shown}\n"
            "  Pass the arrays in a list, a dict or an object of a registered class, such as "
            "list(params.values()) for a view; or name another argument by argnums."
        )

    def _nothing(self, selected: Sequence[bool]) -> str:
        """The text of an error: nothing that is selected can be differentiated by."""

        def described(wanted: bool) -> str:
            found = [
                f"{p}: {type_text(x)}"
                for (p, x), s in zip(own, selected, strict=True)
                if s is wanted
            ]
            more = f" and {len(found) - 8} more" if len(found) > 8 else ""
            return ", ".join(map(shortened, found[:8])) + more or "nothing"

        own = list(self._own_with_paths())
        return (
            "there is nothing to differentiate by: wrt selects no number or array of a type that "
            f"has a derivative\n  selected: {described(True)}\n  there is: {described(False)}"
        )

    def _own_with_paths(self) -> Iterator[tuple[str, Leaf]]:
        accessors = self.untraced.spec.accessors()
        for position, leaf in zip(self.untraced.traced_positions(), self._own, strict=True):
            yield self._path(accessors[position]), leaf

    def _path(self, accessor: optree.PyTreeAccessor) -> str:
        """The path of a leaf of the wanted arguments."""
        first = self.wanted[accessor[0].entry if self._depth else 0]
        return shortened(accessor[self._depth :].codify(f"args[{first}]"))

    def run(
        self,
        fun: Callable[..., Any],
        by: Sequence[Leaf],
        others: Sequence[Leaf],
        updated: Chosen = NOTHING,
    ) -> tuple[Any, Update]:
        """What a function returns for the call with these leaves, and what it changes."""
        call = rebuilt(self.call._untraced, joined(self.picked, by, others), Call)
        return call.run_and_update(fun, updated)

    def gradient(self, leaves: Iterable[Any]) -> Any:
        """What was computed for each of `by`, in the form of the arguments `argnums`.

        None stands at all other leaves.
        """
        found = dict(zip(self.picked, leaves, strict=True))
        if self._structures is None:
            self._structures = Structures.of(self._tree, self.untraced)
        own = [found.get(place) for place in self._chosen]
        return derivative(self.untraced, own, self._structures)

    def by_with_paths(self) -> Iterator[tuple[str, Leaf]]:
        """The leaves that are differentiated by, with their paths."""
        paths = argument_paths(self.call._untraced)
        return zip((paths[i] for i in self.picked), self.by, strict=True)
